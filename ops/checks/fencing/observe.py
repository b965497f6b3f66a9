"""What rounds of fencing depend on: ids per coordinator, back-off, who else has the ids. Looked at, not judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connectctl.ops.checks.connector_config.active_topics import active_topics, configured_topics
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.types import Unseen, answer_of, unseen_by
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.offset_store import connects_to
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex, task_id
from connectctl.ops.connect.zombie_fencing import Backoff, FencingRound
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, ErrorAction, verdict
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.connectors.fencing_diagnosis import Case, round_of
from connectctl.ops.operations.fencing.observe import describe_ids

TRANSACTION_STATE = "__transaction_state"
DEFAULT_PARTITIONS = 50
"""``transaction.state.log.num.partitions`` if the topic is not visible."""
_MOST_TASKS = 10_000
"""No connector has more tasks; a larger tasks.max means "no limit"."""


@dataclass(frozen=True)
class Coordinators:
    """The brokers that lead ``__transaction_state``, by partition, None for none. Empty if the topic was not visible."""

    leaders: Mapping[int, int | None] = field(default_factory=dict)
    brokers: int = 1

    def load(self, ids: Sequence[str]) -> Counter[int | None]:
        """How many of ``ids`` each broker coordinates, None for those that no broker does now.

        Where the topic was not seen its partitions are dealt out to the brokers in turn, as Kafka does it.
        """
        count = len(self.leaders) or DEFAULT_PARTITIONS
        partitions = (coordinator_partition(id, count) for id in ids)
        return Counter(self.leaders.get(p) if self.leaders else p % max(1, self.brokers) for p in partitions)


@dataclass(frozen=True)
class FencedSource:
    """A source connector with what its next round of fencing will be about.

    ``ids`` is how many ids, ``by_broker`` how many of them each coordinator has, None where its admin client fences on
    another Kafka cluster than was seen. ``foreign`` are its ids with an open transaction that cannot be its own, and
    the partitions that show it.
    """

    name: str
    ids: int
    by_broker: Mapping[int | None, int] | None
    backoff: Backoff
    config: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class FencingFacts:
    """All that was seen. ``enabled`` is whether tasks have transactional ids now, None if no worker reports it.

    ``versions`` are the workers'; ``rounds`` are those that are due or under way; ``topic_seen`` says whether the ids'
    coordinators are known or taken to be dealt out evenly.
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
    reach = {each.name: ids_of(each, context.state) for each in context.sources}
    foreign = _foreign(context, reach, unseen)
    found = []
    for each in context.sources:
        ids = [task_id(context.group.id, each.name, n) for n in range(reach[each.name])]
        load = coordinators.load(ids) if connects_to(each.config, "admin", context.edges.bootstrap) else None
        mine = {id: foreign[id] for id in ids if id in foreign}
        found.append(FencedSource(each.name, len(ids), load, Backoff.of(each.config), each.config, mine))
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


def ids_of(each: Connector, state: ConfigState | None) -> int:
    """For how many tasks the next round fences: as many as the last one was for, or as run now, whichever is more.

    A connector that has never had tasks may get as many as ``tasks.max`` says.
    """
    known = state.connectors.get(each.name) if state else None
    record = known.task_count_record if known else None
    tasks = max(known.task_count if known else 0, len(each.tasks), record or 0)
    if tasks:
        return tasks
    return whole_number(each.config.get("tasks.max"), _MOST_TASKS) or 1


def _coordinators(context: CheckContext, unseen: list[Unseen]) -> Coordinators:
    try:
        brokers = context.edges.kafka.brokers()
        known = context.edges.kafka.topics([TRANSACTION_STATE]).get(TRANSACTION_STATE)
    except ConnectctlError as e:
        unseen.append(unseen_by("the coordinators of transactional ids", e))
        return Coordinators()
    # Without the topic no transaction has been on this cluster yet; the first one makes Kafka create it.
    leaders = dict(known.leaders) if known else {}
    dark = sorted(p for p, leader in leaders.items() if leader is None)
    if dark:
        why = f"{len(dark)} of its {len(leaders)} partitions have no leader: ids there can be neither used nor fenced"
        unseen.append(Unseen(f"a part of {TRANSACTION_STATE}", why, "Bring the brokers back."))
    return Coordinators(leaders, brokers)


def _foreign(
    context: CheckContext, reach: Mapping[str, int], unseen: list[Unseen]
) -> dict[str, tuple[TopicPartition, ...]]:
    """The ids in an open transaction that none of their connector's tasks can have begun."""
    owner = {task_id(context.group.id, name, n): name for name, tasks in reach.items() for n in range(tasks)}
    if not owner:
        return {}
    what = "transactional ids of source tasks"
    described = answer_of(lambda: describe_ids(context.edges.transactions(), list(owner)), unseen, what) or {}
    unseen += _unanswered(described)
    configs = {each.name: each.config for each in context.sources}
    found: dict[str, tuple[TopicPartition, ...]] = {}
    for id, seen in described.items():
        if isinstance(seen, Transaction) and seen.state == "Ongoing" and seen.partitions:
            strange = _strange(context, owner[id], configs[owner[id]], seen)
            found |= {id: strange} if strange else {}
    return found


def _strange(
    context: CheckContext, name: str, config: Mapping[str, str], seen: Transaction
) -> tuple[TopicPartition, ...]:
    """The partitions of an open transaction that show that it is not a task's of this connector."""
    if context.enabled is False:
        return seen.partitions
    groups = tuple(place for place in seen.partitions if place.topic == "__consumer_offsets")
    active = active_topics(context.edges.calls, [name])[0].get(name)
    if groups or not context.enabled or active is None:
        return groups
    own = active | configured_topics(config) | {config.get("offsets.storage.topic"), context.internal.get("offsets")}
    # One topic that is the connector's own and the transaction is its own: a task may have begun with a new one.
    return () if any(place.topic in own for place in seen.partitions) or not active else seen.partitions


def _unanswered(described: Mapping[str, Transaction | Code]) -> list[Unseen]:
    """The ids that no coordinator described, by reason; an id that does not exist is none of them."""
    by_code: dict[Code, list[str]] = {}
    for id, seen in described.items():
        if isinstance(seen, Code) and verdict(DESCRIBE, seen).move is not ErrorAction.ABSENT:
            by_code.setdefault(seen, []).append(id)
    return [
        Unseen(
            f"the transactional id {some_of(ids, 1)}",
            verdict(DESCRIBE, code).meaning.rstrip("."),
            verdict(DESCRIBE, code).advice or None,
        )
        for code, ids in by_code.items()
    ]


def _rounds(context: CheckContext, now: float, unseen: list[Unseen]) -> tuple[FencingRound, ...]:
    """The rounds that are due by the config topic, of connectors that have tasks."""
    if not context.enabled or context.state is None:
        return ()
    found, workers = [], max(1, len(context.view.workers))
    for each in context.sources:
        known = context.state.connectors.get(each.name)
        if known is None or not known.fencing_pending or not known.task_count:
            continue
        case = Case(context.group.id, each, known, context.written, context.directory, workers)
        try:
            found.append(round_of(context.edges.transactions(), case, now))
        except ConnectctlError as e:
            unseen.append(unseen_by(f"the round of fencing for {each.name}", e))
    return tuple(filter(None, found))
