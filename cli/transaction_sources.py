"""Where the commands about transactions look: the coordinators, the config topic, the groups, from a session."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.bootstrap import share_a_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connectctl.cli.session import Session
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex
    from connectctl.ops.kafka.visibility import Gap, Observation
    from connectctl.ops.operations.fencing.observe import Configured, Sources
    from connectctl.ops.operations.fencing.snapshot import FenceRequest


def group_of(session: Session) -> str | None:
    """The group id, where one is given: fencing and transactions need none."""
    return str(session.settings.get("group_id") or "") or None


def sources_of(session: Session, request: FenceRequest) -> Sources:
    """The sources of a plan to fence. Raises ``BadInput`` for connectors that write to different Kafka clusters."""
    from connectctl.ops.operations.fencing.observe import Sources

    @cache
    def configured() -> Configured:
        return read_config_topic(session)

    def group(name: str) -> ConnectGroup:
        return session.kafka.group(name)

    def running(group: ConnectGroup) -> frozenset[TaskRef]:
        return live_tasks(session, group)

    group_id = group_of(session)
    calls = _coordinators(session, request, configured)
    return Sources(calls, group_id, group, running, configured if group_id else None)


def directory_of(session: Session) -> Observation[TransactionalIdIndex]:
    """All connectors: the group's own in its config topic, those of other groups in their assignments."""
    from connectctl.ops.operations.fencing.observe import visible_connectors
    from connectctl.ops.operations.fencing.snapshot import FenceRequest

    return visible_connectors(sources_of(session, FenceRequest()))


def roles_of(session: Session) -> Observation[dict[str, str]]:
    """What each internal topic of the group is, by its name: config, offsets, status; dedicated ones are offsets, too.

    Raises what keeps the three topics of the workers from being found.
    """
    from connectctl.ops.kafka.visibility import gap_of, observation_of
    from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics

    kafka = session.kafka
    found = find_internal_topics(kafka, kafka.group(session.group_id), session.named_topics)
    roles = {found.config: "config", found.offsets: "offsets", found.status: "status"}
    gaps: tuple[Gap, ...] = ()
    try:
        connectors = read_config_topic(session).state.connectors.values()
        named = {topic for each in connectors if (topic := each.config.get("offsets.storage.topic"))}
        dedicated = kafka.existing(sorted(named))
        roles |= {topic: "offsets" for topic in sorted(dedicated.seen) if topic not in roles}
        gaps = dedicated.gaps
    except ConnectctlError as e:
        gaps = (gap_of(e, "dedicated offsets topics"),)
    return observation_of({topic: role for topic, role in roles.items() if topic}, gaps)


def read_config_topic(session: Session) -> Configured:
    """The config topic of the session's group."""
    from connectctl.ops.connect import config_topic
    from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
    from connectctl.ops.operations.fencing.observe import Configured, task_id_ranges

    kafka = session.kafka
    topic = find_internal_topics(kafka, kafka.group(session.group_id), session.named_topics, needed=("config",)).config
    assert topic is not None
    image = kafka.image([topic], patience=2.0)[topic]
    return Configured(config_topic.parse(image.latest, topic), task_id_ranges(image.latest))


def _coordinators(session: Session, request: FenceRequest, configured: Callable[[], Configured]) -> TransactionCalls:
    """The Kafka cluster that has the ids: for connectors that write to another one, that one (KIP-618)."""
    if not request.connectors:
        return session.transactions
    homes: dict[str, dict[str, str]] = {}
    for name in request.connectors:
        connector = configured().state.connectors.get(name)
        overrides = client_overrides(connector.config if connector else {}, "producer")
        homes[overrides.get("bootstrap.servers", "")] = overrides
    if len(homes) > 1:
        hint = "Fence those of one Kafka cluster at a time."
        raise BadInput("The connectors write to different Kafka clusters", why=", ".join(homes), next_step=hint)
    return coordinators_of(session, next(iter(homes.values())))


def coordinators_of(session: Session, overrides: Mapping[str, str]) -> TransactionCalls:
    """The coordinators of a connector's producers, which has these ``producer.override.`` properties, without the prefix."""
    bootstrap = overrides.get("bootstrap.servers", "")
    if not bootstrap or share_a_server(bootstrap, str(session.settings.get("bootstrap_servers", ""))):
        return session.transactions
    return session.other_transactions(bootstrap, overrides)


def live_tasks(session: Session, group: ConnectGroup) -> frozenset[TaskRef]:
    """The tasks of the group that a worker has and that have not failed; every assigned task where nobody tells."""
    from connectctl.ops.connect.transactional_ids import TaskRef
    from connectctl.ops.operations.connectors.observe import see

    failed: set[tuple[str, int]] = set()
    with suppress(ConnectctlError):
        seen = see(session.connect_to(group), session.kafka, group, session.named_topics)
        for judged in seen.connectors:
            statuses = judged.connector.tasks.items()
            failed |= {(judged.name, n) for n, status in statuses if status and status.state == "FAILED"}
    return frozenset(TaskRef(group.id, connector, n) for connector, n in group.owners if (connector, n) not in failed)


class Workers:
    """The workers, looked for when a step first needs them: most fences need none."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session.connect_to(self._session.group()), name)
