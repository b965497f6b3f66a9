"""The cluster of a command on connectors: its clients, and the current state of each connector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from connectctl.ops.clients.protocols import Clients, ConnectCalls, KafkaReads
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.operations.cluster.group_workers import refuse_unknown
from connectctl.ops.operations.connectors import observe


@dataclass(frozen=True)
class ConnectorAccess:
    """The clients of a command. Without brokers, ``kafka`` and ``group`` are None.

    ``facts`` reads the facts that determine the state of connectors besides the statuses of
    workers.
    """

    calls: ConnectCalls
    kafka: KafkaReads | None
    group: ConnectGroup | None
    facts: Callable[[], observe.Facts] | None = None

    def cluster_id(self) -> str:
        if self.kafka is not None:
            return self.kafka.cluster_id()
        return str(self.calls.get("/").get("kafka_cluster_id"))

    @property
    def group_id(self) -> str:
        """Return the workers' group, empty without brokers: workers do not report it."""
        return self.group.id if self.group is not None else ""

    def connectors(self, names: Sequence[str] | None = None) -> tuple[observe.ConnectorHealth, ...]:
        """Read the connectors in ``names``, by name or glob, or all for None.

        Raises ``BadInput`` for unknown ones, and the error of the workers if none answers, because
        a change requires one.
        """
        listed = observe.from_workers(self.calls)
        found = observe.listing_of(
            self.calls, listed, self.group, self.facts, self.calls.urls
        ).connectors
        return found if names is None else observe.matching(found, names)


@dataclass(frozen=True, kw_only=True)
class ClusterAccess(ConnectorAccess):
    """The clients of a command, with all others that it may open."""

    clients: Clients


def open_cluster(clients: Clients) -> ClusterAccess:
    """Return the clients for the settings; without brokers, those of the workers only."""
    settings = clients.settings
    if settings.get("rest") and not settings.get("bootstrap_servers"):
        return ClusterAccess(clients.connect_to(None), None, None, clients=clients)
    group = clients.group()
    return ClusterAccess(clients.connect_to(group), clients.kafka, group, clients=clients)


def observed_cluster(clients: Clients) -> ClusterAccess:
    """Return the cluster with the data for its connectors' states. Raises ``BadInput`` for a group
    that does not exist.
    """
    cluster = open_cluster(clients)
    if cluster.kafka is None or cluster.group is None:
        return cluster
    refuse_unknown(cluster.group, clients)
    return replace(
        cluster, facts=observe.facts_reader(cluster.kafka, cluster.group, clients.named_topics)
    )


def listing_of(cluster: ClusterAccess) -> observe.ConnectorListing:
    """Return the connectors and the source of their states. Raises ``BadInput`` for a group that
    does not exist.
    """
    clients = cluster.clients
    try:
        listing = observe.connector_listing(
            cluster.calls, cluster.kafka, cluster.group, clients.named_topics
        )
    except ConnectctlError:
        refuse_unknown(cluster.group, clients)
        raise
    refuse_unknown(cluster.group, clients, listing.connectors)
    return listing
