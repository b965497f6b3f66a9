"""Observes the inputs of a round of fencing: ids per coordinator, back-off, other users of ids;
evaluates nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.connector_class import configured_topics
from connectctl.ops.connect.offset_store import TOPIC, connects_to
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex, task_id
from connectctl.ops.connect.zombie_fencing import Backoff, FencingRound
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.unseen import Unseen, answer_of, unseen_by
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, ErrorAction, verdict
from connectctl.ops.kafka.offset_commits import TOPIC as COMMITS
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import TOPIC as TRANSACTION_STATE
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.connectors.fencing_diagnosis import Case, round_of
from connectctl.ops.operations.connectors.tracked_topics import active_topics
from connectctl.ops.operations.fencing.observe import describe_ids

DEFAULT_PARTITIONS = 50
"""``transaction.state.log.num.partitions`` if the topic is not visible."""
_MOST_TASKS = 10_000
"""The highest plausible number of tasks; a larger tasks.max means "no limit"."""


@dataclass(frozen=True)
class Coordinators:
    """The brokers that lead ``__transaction_state``, by partition; empty if the topic was not
    visible.

    A partition without a leader has None.
    """

    leaders: Mapping[int, int | None] = field(default_factory=dict)
    brokers: int = 1

    def load(self, ids: Sequence[str]) -> Counter[int | None]:
        """Return the number of ``ids`` that each broker coordinates, with None for those without a
        coordinator now.

        If the topic was not visible, its partitions are distributed to the brokers in turn, as
        Kafka does it.
        """
        count = len(self.leaders) or DEFAULT_PARTITIONS
        partitions = (coordinator_partition(id, count) for id in ids)
        return Counter(
            self.leaders.get(p) if self.leaders else p % max(1, self.brokers) for p in partitions
        )


@dataclass(frozen=True)
class FencedSource:
    """A source connector with the inputs of its next round of fencing.

    ``ids`` is the number of ids, ``by_broker`` the number of ids of each coordinator, None if its
    admin client fences on another Kafka cluster. ``foreign`` are its ids with an open transaction
    that is not its own: its ``partitions`` are those that prove this.
    """

    name: str
    ids: int
    by_broker: Mapping[int | None, int] | None
    backoff: Backoff
    config: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, Transaction] = field(default_factory=dict)


@dataclass(frozen=True)
class FencingFacts:
    """The observations. ``enabled`` is whether tasks have transactional ids now, None if no worker
    reports it.

    ``versions`` are the workers'; ``rounds`` are those that are due or under way; ``topic_seen``:
    the ids' coordinators are known, and not assumed to be evenly distributed.
    """

    group: str
    connectors: tuple[FencedSource, ...]
    directory: TransactionalIdIndex
    enabled: bool | None
    versions: tuple[str, ...] = ()
    workers: int = 1
    rounds: tuple[FencingRound, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    topic_seen: bool = True


def observe(context: CheckContext, now: float) -> FencingFacts:
    """Observe the fencing that is due; ``now`` in seconds since the epoch."""
    unseen: list[Unseen] = []
    coordinators = _coordinators(context, unseen)
    id_counts = {source.name: ids_of(source, context.state) for source in context.sources}
    foreign = _foreign(context, id_counts, unseen)
    found = []
    for source in context.sources:
        ids = [task_id(context.group.id, source.name, n) for n in range(id_counts[source.name])]
        load = (
            coordinators.load(ids)
            if connects_to(source.config, "admin", context.edges.bootstrap)
            else None
        )
        of_source = {id: foreign[id] for id in ids if id in foreign}
        backoff = Backoff.of(source.config, context.versions)
        found.append(FencedSource(source.name, len(ids), load, backoff, source.config, of_source))
    return FencingFacts(
        group=context.group.id,
        connectors=tuple(found),
        directory=context.directory,
        enabled=context.enabled,
        versions=context.versions,
        workers=max(1, len(context.view.workers)),
        rounds=_rounds(context, now, unseen),
        unseen=tuple(unseen),
        topic_seen=bool(coordinators.leaders),
    )


def ids_of(source: Connector, state: ConfigState | None) -> int:
    """Return the number of tasks that the next round fences: the larger of the last round's number
    and the present one.

    A connector that has never had tasks may get as many as ``tasks.max``.
    """
    known = state.connectors.get(source.name) if state else None
    record = known.task_count_record if known else None
    tasks = max(known.task_count if known else 0, len(source.tasks), record or 0)
    if tasks:
        return tasks
    return whole_number(source.config.get("tasks.max"), _MOST_TASKS) or 1


def _coordinators(context: CheckContext, unseen: list[Unseen]) -> Coordinators:
    try:
        brokers = context.edges.kafka.brokers()
        known = context.edges.kafka.topics([TRANSACTION_STATE]).get(TRANSACTION_STATE)
    except ConnectctlError as e:
        unseen.append(unseen_by("the coordinators of transactional ids", e))
        return Coordinators()
    # Without the topic this cluster has had no transaction yet; Kafka creates it for the first one.
    leaders = dict(known.leaders) if known else {}
    leaderless = sorted(p for p, leader in leaders.items() if leader is None)
    if leaderless:
        why = (
            f"{len(leaderless)} of its {len(leaders)} partitions have no leader: ids there can "
            "be neither used nor fenced"
        )
        unseen.append(Unseen(f"a part of {TRANSACTION_STATE}", why, "Bring the brokers back."))
    return Coordinators(leaders, brokers)


def _foreign(
    context: CheckContext, id_counts: Mapping[str, int], unseen: list[Unseen]
) -> dict[str, Transaction]:
    """Return the ids in an open transaction that none of their connector's tasks can have begun,
    with the partitions that prove it.
    """
    owner = {
        task_id(context.group.id, name, n): name
        for name, tasks in id_counts.items()
        for n in range(tasks)
    }
    if not owner:
        return {}
    what = "transactional ids of source tasks"
    described = (
        answer_of(lambda: describe_ids(context.edges.transactions(), list(owner)), unseen, what)
        or {}
    )
    unseen += _unanswered(described)
    configs = {source.name: source.config for source in context.sources}
    found: dict[str, Transaction] = {}
    for id, state in described.items():
        if isinstance(state, Transaction) and state.state == "Ongoing" and state.partitions:
            foreign = _foreign_partitions(context, owner[id], configs[owner[id]], state)
            found |= {id: replace(state, partitions=foreign)} if foreign else {}
    return found


def _foreign_partitions(
    context: CheckContext, name: str, config: Mapping[str, str], transaction: Transaction
) -> tuple[TopicPartition, ...]:
    """Return the partitions of an open transaction which prove that no task of this connector began
    it.
    """
    if context.enabled is False:
        return transaction.partitions
    of_groups = tuple(
        partition for partition in transaction.partitions if partition.topic == COMMITS
    )
    if of_groups or not context.enabled:
        return of_groups
    topics = {partition.topic for partition in transaction.partitions}
    own_topics = configured_topics(config) | {config.get(TOPIC), context.internal.get("offsets")}
    # With one topic of the connector the transaction is its own: the task may also write to a new
    # topic. Workers are asked only about what the status topic does not explain.
    if topics & (own_topics | (context.recorded or {}).get(name, frozenset())):
        return ()
    active = active_topics(context.edges.calls, [name])[0].get(name)
    return transaction.partitions if active and not topics & active else ()


def _unanswered(described: Mapping[str, Transaction | Code]) -> list[Unseen]:
    """Return the ids that no coordinator described, by reason; ids that do not exist are not among
    them.
    """
    by_code: dict[Code, list[str]] = {}
    for id, state in described.items():
        if isinstance(state, Code) and verdict(DESCRIBE, state).move is not ErrorAction.ABSENT:
            by_code.setdefault(state, []).append(id)
    return [
        Unseen(
            f"the transactional id {some_of(ids, 1)}",
            verdict(DESCRIBE, code).meaning.rstrip("."),
            verdict(DESCRIBE, code).advice or None,
        )
        for code, ids in by_code.items()
    ]


def _rounds(context: CheckContext, now: float, unseen: list[Unseen]) -> tuple[FencingRound, ...]:
    """Return the rounds that are due by the config topic, of connectors that have tasks."""
    if not context.enabled or context.state is None:
        return ()
    found, workers = [], max(1, len(context.view.workers))
    for source in context.sources:
        known = context.state.connectors.get(source.name)
        if known is None or not known.fencing_pending or not known.task_count:
            continue
        case = Case(
            context.group.id,
            source,
            known,
            context.written,
            context.directory,
            workers,
            context.versions,
        )
        try:
            found.append(round_of(context.edges.transactions(), case, now))
        except ConnectctlError as e:
            unseen.append(unseen_by(f"the round of fencing for {source.name}", e))
    return tuple(filter(None, found))
