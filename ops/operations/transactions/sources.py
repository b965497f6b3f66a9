"""The sources of commands for transactions: coordinators, config topic, groups."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connectctl.ops.clients.protocols import Clients, TransactionCalls
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex
    from connectctl.ops.kafka.visibility import Observation
    from connectctl.ops.operations.fencing.observe import Configured, FencingSources
    from connectctl.ops.operations.fencing.snapshot import FenceRequest


def group_of(clients: Clients) -> str | None:
    """Return the group id, None if not set: fencing and transactions do not require it."""
    return str(clients.settings.get("group_id") or "") or None


def sources_of(clients: Clients, request: FenceRequest) -> FencingSources:
    """Return the sources of a plan to fence. Raises ``BadInput`` for connectors that write to
    different Kafka clusters.
    """
    from connectctl.ops.operations.fencing.observe import (
        FencingSources,
        read_config_topic,
        running_tasks,
    )

    @cache
    def configured() -> Configured:
        return read_config_topic(
            clients.kafka, clients.kafka.group(clients.group_id), clients.named_topics
        )

    def group(name: str) -> ConnectGroup:
        return clients.kafka.group(name)

    def running(group: ConnectGroup) -> frozenset[TaskRef]:
        return running_tasks(clients.connect_to, clients.kafka, group, clients.named_topics)

    group_id = group_of(clients)
    calls = _coordinators(clients, request, configured)
    return FencingSources(calls, group_id, group, running, configured if group_id else None)


def directory_of(clients: Clients) -> Observation[TransactionalIdIndex]:
    """Return all connectors: the group's from its config topic, those of other groups from their
    assignments.
    """
    from connectctl.ops.operations.fencing.observe import visible_connectors
    from connectctl.ops.operations.fencing.snapshot import FenceRequest

    return visible_connectors(sources_of(clients, FenceRequest()))


def roles_of(clients: Clients) -> Observation[dict[str, str]]:
    """Return the role of each internal topic of the group, by its name. Raises the error of their
    discovery.
    """
    from connectctl.ops.operations.transactions.lag import topic_roles

    kafka = clients.kafka
    return topic_roles(kafka, kafka.group(clients.group_id), clients.named_topics)


def visible_roles_of(clients: Clients) -> Observation[dict[str, str]]:
    """Return ``roles_of``, with a gap if the group may not be described."""
    from connectctl.ops.core.errors import NotAuthorized
    from connectctl.ops.kafka.visibility import Partial, gap_of

    try:
        return roles_of(clients)
    except NotAuthorized as e:
        return Partial({}, (gap_of(e, "the internal topics of the workers"),))


def _coordinators(
    clients: Clients, request: FenceRequest, configured: Callable[[], Configured]
) -> TransactionCalls:
    """Return the coordinators of the ids: those of another Kafka cluster if the connectors write to
    it (KIP-618).
    """
    from connectctl.ops.operations.fencing.observe import common_overrides

    if not request.connectors:
        return clients.transactions
    return coordinators_of(
        clients, common_overrides(configured().state.connectors, request.connectors)
    )


def coordinators_of(clients: Clients, overrides: Mapping[str, str]) -> TransactionCalls:
    """Return the coordinators of a connector's producers. ``overrides``: ``producer.override.``
    properties, unprefixed.
    """
    bootstrap = overrides.get("bootstrap.servers", "")
    if not bootstrap or clients.is_own_cluster(bootstrap):
        return clients.transactions
    return clients.other_transactions(bootstrap, overrides)


class LazyWorkers:
    """The workers, which are discovered at the first request: most fences send none."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clients.connect_to(self._clients.group()), name)
