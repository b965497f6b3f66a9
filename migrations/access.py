"""The cluster as an upgrade observes it, with the clients that read and change it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from connectctl.ops.checks.runner import check_run
from connectctl.ops.clients.protocols import Clients, WorkerDriver
from connectctl.ops.clients.rest.addresses import addresses_of
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.cluster.group_workers import refuse_unknown
from connectctl.ops.operations.offsets.engine import Purpose, View
from connectctl.ops.operations.offsets.planning import ConnectorState
from connectctl.ops.operations.offsets.sources import observe_connectors
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader
from connectctl.ops.operations.tasks_max.observe import TasksSeen, tasks_of_cluster
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.observe import ClusterReader, members_of, observe
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


@dataclass(frozen=True)
class UpgradeAccess:
    """The current cluster, and the clients that read and change it."""

    clients: Clients
    journal: Journal
    reader: ClusterReader
    driver: WorkerDriver
    snapshot: RollingSnapshot

    @property
    def group_id(self) -> str:
        """The ``group.id`` of the workers."""
        return self.snapshot.group_id

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        return self.snapshot.cluster_id

    def leaving_out(self, without: Collection[str]) -> UpgradeAccess:
        """Return the cluster without removed workers."""
        return replace(self, snapshot=self.snapshot.leaving_out(without))

    def findings(self, goal: str) -> Iterable[Finding]:
        """Return the findings of preflight for a goal."""
        return check_run(self.clients, [], Goal(goal)).findings()

    def offsets(
        self,
        topics: Mapping[str, str | None],
        purposes: Mapping[str, Purpose] = MappingProxyType({}),
    ) -> tuple[View | None, list[ConnectorState]]:
        """Read the offsets of connectors. ``topics``: by connector, the offsets topic that it is to
        have.

        Connectors in ``purposes`` may not exist yet.
        """
        targets = [
            OffsetTarget(name, None, topic, new=name in purposes, purpose=purposes.get(name))
            for name, topic in topics.items()
        ]
        observed, subjects = observe_connectors(self.clients, targets)
        return observed.view, subjects

    def tasks(self) -> TasksSeen:
        """Read the connectors with their tasks."""
        return tasks_of_cluster(
            self.reader.kafka, self.reader.calls, self.reader.group(), self.clients.named_topics
        )

    def application(self, name: str) -> tuple[ApplicationReader, list[str]]:
        """Return the clients of a Streams application, and its instances from the context."""
        clients = self.clients
        driver, instances = clients.application(name)
        return ApplicationReader(
            name, clients.client_groups, clients.transactions, clients.brokers, driver
        ), instances


def observe_cluster(
    clients: Clients, *, workers: bool = True, read_only: bool = False
) -> UpgradeAccess:
    """Observe the cluster for an upgrade. With ``workers``, raises ``BadInput`` if the group does
    not exist.

    ``read_only``: nothing is written to the journal, so that its disk may be full.
    """
    journal = clients.journal(read_only=read_only)
    kafka = clients.kafka
    group = clients.group()
    last = run_state.last_workers(journal, kafka.cluster_id(), group.id)
    if workers and last is None:
        refuse_unknown(group, clients)
    driver = clients.driver()
    reader = ClusterReader(
        kafka=kafka,
        calls=clients.connect_to(group),
        group_id=group.id,
        transactions=clients.transactions,
        driver=driver,
        extra=tuple(clients.settings.get("rest") or ()),
        remembered=dict.fromkeys(last[1], last[0]) if last else {},
        named=clients.named_topics,
        resolve=addresses_of,
    )
    known = run_state.journal_records(journal, kafka.cluster_id(), group.id, members_of(group))
    return UpgradeAccess(clients, journal, reader, driver, observe(reader, group, known))
