"""What commands for transactions read, from a session: coordinators, config topic, groups."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connectctl.cli.session import Session
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex
    from connectctl.ops.kafka.visibility import Observation
    from connectctl.ops.operations.fencing.observe import Configured, FencingSources
    from connectctl.ops.operations.fencing.snapshot import FenceRequest


def group_of(session: Session) -> str | None:
    """Return the group id, None if not given: fencing and transactions do not need it."""
    return str(session.settings.get("group_id") or "") or None


def sources_of(session: Session, request: FenceRequest) -> FencingSources:
    """Return the sources of a plan to fence. Raises ``BadInput`` for connectors that write to different Kafka clusters."""
    from connectctl.ops.operations.fencing.observe import FencingSources, read_config_topic, running_tasks

    @cache
    def configured() -> Configured:
        return read_config_topic(session.kafka, session.kafka.group(session.group_id), session.named_topics)

    def group(name: str) -> ConnectGroup:
        return session.kafka.group(name)

    def running(group: ConnectGroup) -> frozenset[TaskRef]:
        return running_tasks(session.connect_to, session.kafka, group, session.named_topics)

    group_id = group_of(session)
    calls = _coordinators(session, request, configured)
    return FencingSources(calls, group_id, group, running, configured if group_id else None)


def directory_of(session: Session) -> Observation[TransactionalIdIndex]:
    """Return all connectors: the group's from its config topic, those of other groups from their assignments."""
    from connectctl.ops.operations.fencing.observe import visible_connectors
    from connectctl.ops.operations.fencing.snapshot import FenceRequest

    return visible_connectors(sources_of(session, FenceRequest()))


def roles_of(session: Session) -> Observation[dict[str, str]]:
    """Return the role of each internal topic of the group, by its name. Raises the error of their discovery."""
    from connectctl.ops.operations.transactions.lag import topic_roles

    kafka = session.kafka
    return topic_roles(kafka, kafka.group(session.group_id), session.named_topics)


def visible_roles_of(session: Session) -> Observation[dict[str, str]]:
    """Return ``roles_of``; a gap where the group may not be described. Topics that are named need no more than this."""
    from connectctl.ops.core.errors import NotAuthorized
    from connectctl.ops.kafka.visibility import Partial, gap_of

    try:
        return roles_of(session)
    except NotAuthorized as e:
        return Partial({}, (gap_of(e, "the internal topics of the workers"),))


def _coordinators(session: Session, request: FenceRequest, configured: Callable[[], Configured]) -> TransactionCalls:
    """Return the coordinators of the ids: those of another Kafka cluster if the connectors write to it (KIP-618)."""
    from connectctl.ops.operations.fencing.observe import common_overrides

    if not request.connectors:
        return session.transactions
    return coordinators_of(session, common_overrides(configured().state.connectors, request.connectors))


def coordinators_of(session: Session, overrides: Mapping[str, str]) -> TransactionCalls:
    """Return the coordinators of a connector's producers. ``overrides``: ``producer.override.`` properties, unprefixed."""
    bootstrap = overrides.get("bootstrap.servers", "")
    if not bootstrap or session.is_own_cluster(bootstrap):
        return session.transactions
    return session.other_transactions(bootstrap, overrides)


class LazyWorkers:
    """The workers, discovered when a step first needs them: most fences do not."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session.connect_to(self._session.group()), name)
