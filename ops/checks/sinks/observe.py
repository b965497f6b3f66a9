"""Observes whether running sinks keep up: what waits for them, when they last committed an offset,
the members of their groups, and their dead letters.

Two observations within seconds do not prove that lag grows, because sinks commit once a minute.
Therefore the past is read: which records have waited for some time, and the commits that
``__consumer_offsets`` retains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.history.records import status_records
from connectctl.ops.connect.connector import Connector, State
from connectctl.ops.connect.health import parts_in
from connectctl.ops.connect.offset_store import connects_to
from connectctl.ops.connect.sink_group import dead_letters, sink_group, topics_of_sink
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.unseen import Unseen, answer_of, unseen_by
from connectctl.ops.kafka.brokers import ReaderGroup, ReaderGroups
from connectctl.ops.kafka.group_state import is_dead, is_settled
from connectctl.ops.kafka.offset_commits import TOPIC as COMMITS
from connectctl.ops.kafka.offset_commits import OffsetCommit, offset_commits
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange

WAITED = 600.0
"""Seconds for which a record may wait: longer than ``max.poll.interval.ms``, 5 minutes, and than
the minute after which sinks commit.
"""
JOINED = 120.0
"""Seconds after which a running task has joined its group."""
LATER = 5.0
"""Seconds after which a group without members is described again."""
DEAD_LATELY = 3600.0
"""Seconds in which dead letters are new."""
_TAIL = 500
"""Records at the end of each partition of ``__consumer_offsets`` that are read."""
_MARKERS = 10
"""Offsets at the end of a partition that may all be markers of transactions, which no sink gets."""


@dataclass(frozen=True)
class WaitingPartition:
    """A partition with a record that has waited for more than ``WAITED`` seconds.

    ``committed`` is None without a committed offset. ``lag`` is the number of offsets from there to
    the end for read_committed, or from the beginning of the partition without a committed offset.
    ``arrived`` is the number of offsets that were added in the last ``WAITED`` seconds,
    ``committed_lately`` of those that the sink committed in that time, None if it is unknown.
    ``moved_at`` is when its newest offset was committed, in seconds since the epoch, None if that
    is unknown. ``moves`` is True if that was in the last ``WAITED`` seconds, None if unknown.
    """

    partition: TopicPartition
    committed: int | None
    end: int
    lag: int
    arrived: int
    committed_lately: int | None = None
    moved_at: float | None = None
    moves: bool | None = None


@dataclass(frozen=True)
class SinkProgress:
    """A running sink connector. ``running`` is the number of RUNNING tasks, ``running_since`` when
    the last of them began, in seconds since the epoch.

    ``group`` is None if it could not be described. ``lagging`` are its partitions with records that
    wait, ``read`` is the number of partitions that it reads, ``missing`` are topics in its
    configuration that do not exist. ``dead_topic`` is its dead letter queue, to which ``dead``
    records were added lately, None if that is unknown.
    """

    name: str
    group_id: str
    running: int
    running_since: float | None = None
    group: ReaderGroup | None = None
    lagging: tuple[WaitingPartition, ...] = ()
    read: int = 0
    missing: tuple[str, ...] = ()
    dead_topic: str | None = None
    dead: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    workers: tuple[str, ...] = ()

    def lacks_members(self, now: float) -> bool:
        """Return whether tasks that have been RUNNING for ``JOINED`` seconds are not in the group;
        ``now`` in seconds since the epoch.
        """
        if self.group is None or self.running_since is None or now - self.running_since < JOINED:
            return False
        return is_settled(self.group.state) and len(self.group.members) < self.running


@dataclass(frozen=True)
class SinkFacts:
    """The observations; ``now`` is in seconds since the epoch. ``connectors`` are the configurations
    of all that were checked, sources as well, by name.
    """

    sinks: tuple[SinkProgress, ...]
    now: float
    connectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unseen: tuple[Unseen, ...] = ()


def observe(context: CheckContext, now: float) -> SinkFacts:
    """Observe the running sinks; ``now`` in seconds since the epoch. Without sinks no requests are
    sent.
    """
    unseen: list[Unseen] = []
    sinks = [each for each in context.checked if each.type == "sink" and _runs(each)]
    reachable = [
        sink for sink in sinks if connects_to(sink.config, "consumer", context.edges.bootstrap)
    ]
    unseen += [
        Unseen(f"the progress of {sink.name}", "it reads from another Kafka cluster")
        for sink in sinks
        if sink not in reachable
    ]
    groups = _groups(context, reachable, unseen) if reachable else {}
    topics = {topic for sink in reachable for topic in _topics(sink, groups)}
    letters = {name for sink in reachable if (name := dead_letters(sink.config))}
    existing, missing = _existing(context, topics | letters, unseen)
    ends, before = _ends(context, existing, now - WAITED, unseen)
    lately = _added(context, letters, ends, now - DEAD_LATELY)
    waiting: Waiting = {
        sink.name: tuple(_waiting(_topics(sink, groups), groups.get(_group(sink)), ends, before))
        for sink in reachable
    }
    waiting = _without_markers(context, waiting, ends, unseen)
    commits = _commits(context, any(waiting.values()), unseen)
    found = [
        SinkProgress(
            sink.name,
            _group(sink),
            len(parts_in(sink, State.RUNNING).keys() & sink.tasks.keys()),
            context.history.newest_status_at(sink.name, sink.tasks),
            groups.get(_group(sink)),
            tuple(_moved(each, _group(sink), commits, now) for each in waiting[sink.name]),
            sum(len(ends.get(topic, ())) for topic in _topics(sink, groups)),
            tuple(sorted(topics_of_sink(sink.config) & missing)),
            dead_letters(sink.config),
            lately.get(dead_letters(sink.config) or ""),
            sink.config,
            tuple(sorted({s.worker for s in sink.tasks.values() if s and s.worker})),
        )
        for sink in reachable
    ]
    if absent := {sink.name for sink in found if sink.lacks_members(now)}:
        context.edges.pause(LATER)
        groups = _groups(context, [sink for sink in reachable if sink.name in absent], unseen)
        written = _status_times(context, unseen)
        found = [_later(sink, groups, written) if sink.name in absent else sink for sink in found]
    configs = {connector.name: connector.config for connector in context.checked}
    return SinkFacts(tuple(found), now, configs, tuple(unseen))


def _later(
    sink: SinkProgress, groups: Mapping[str, ReaderGroup], written: Mapping[str, float]
) -> SinkProgress:
    """Return the sink with its group and the time of its statuses ``LATER`` seconds afterwards: a
    task that is being stopped or restarted leaves its group before its worker writes a status.
    """
    since = max(sink.running_since or 0.0, written.get(sink.name, 0.0))
    return replace(sink, group=groups.get(sink.group_id), running_since=since)


def _status_times(context: CheckContext, unseen: list[Unseen]) -> dict[str, float]:
    """Return when the newest status of any task of each connector was written, in seconds since
    the epoch, of those at the end of the status topic.
    """
    topic = context.internal.get("status")
    if topic is None:
        return {}
    read = partial(context.edges.kafka.tails, [topic], _TAIL)
    tails = answer_of(read, unseen, "the newest statuses of sinks") or {}
    written: dict[str, float] = {}
    for (connector, _), statuses in status_records(tails.get(topic, ())).items():
        newest = max(status.at or 0.0 for status in statuses)
        written[connector] = max(newest, written.get(connector, 0.0))
    return written


def _runs(sink: Connector) -> bool:
    return bool(parts_in(sink, State.RUNNING).keys() & sink.tasks.keys())


def _group(sink: Connector) -> str:
    return sink_group(sink.name, sink.config)


def _topics(sink: Connector, groups: Mapping[str, ReaderGroup]) -> frozenset[str]:
    """Return the topics that it names, or those that its group reads for ``topics.regex``."""
    group = groups.get(_group(sink))
    return topics_of_sink(sink.config) or (group.topics if group else frozenset())


def _groups(
    context: CheckContext, sinks: Iterable[Connector], unseen: list[Unseen]
) -> dict[str, ReaderGroup]:
    """Return the groups of the sinks that could be described. One that its coordinator does not
    know is Dead: a group without members is forgotten after a while if it has committed nothing.
    """
    readers = answer_of(context.edges.brokers().readers, unseen, "the groups of sinks")
    if readers is None:
        return {}
    found = {group.id: group for group in readers.groups if group.problem is None}
    for sink in sinks:
        name = _group(sink)
        what = f"the group {name} of {sink.name}"
        if name in found:
            continue
        if why := _hidden(readers, name):
            unseen.append(Unseen(what, *why))
            continue
        # That no broker lists it may also mean that its coordinator is just moving.
        group = answer_of(partial(context.edges.kafka.group, name), unseen, what)
        if group is not None and is_dead(group.state):
            found[name] = ReaderGroup(name, state=group.state)
    return found


def _hidden(readers: ReaderGroups, group: str) -> tuple[str, str | None] | None:
    """Return why a group is not among those that were described; None if it does not exist."""
    problems = [g.problem for g in readers.groups if g.id == group and g.problem is not None]
    for problem in [*problems, *readers.problems.values()]:
        gap = unseen_by(group, problem)
        return gap.why, gap.next_step
    if readers.complete:
        return None
    return "this principal may not see it", f"Grant this principal Describe on the group {group}."


Ranges = Mapping[str, Mapping[int, OffsetRange]]
Offsets = Mapping[str, Mapping[int, int]]


def _existing(
    context: CheckContext, topics: Iterable[str], unseen: list[Unseen]
) -> tuple[list[str], frozenset[str]]:
    """Return the topics that exist, and those that do not."""
    wanted = sorted(topics)
    known = answer_of(lambda: context.edges.kafka.existing(wanted), unseen, "the topics of sinks")
    if known is None:
        return [], frozenset()
    unseen += [Unseen(f"the lag in {gap.subject}", gap.why, gap.next_step) for gap in known.gaps]
    hidden = {gap.subject for gap in known.gaps}
    missing = {name for name in wanted if name not in known.seen and f"topic {name}" not in hidden}
    return sorted(known.seen), frozenset(missing)


def _ends(
    context: CheckContext, topics: Sequence[str], then: float, unseen: list[Unseen]
) -> tuple[Ranges, Offsets]:
    """Return the extents of topics that exist, and their ends at the time ``then``."""
    kafka = context.edges.kafka
    if not topics:
        return {}, {}
    extents = answer_of(lambda: kafka.extents(topics), unseen, "the ends of sinks' topics") or {}
    at = partial(kafka.offsets_at, topics, int(then * 1000))
    before = answer_of(at, unseen, "the earlier ends of sinks' topics") or {}
    return extents, before


def _added(
    context: CheckContext, topics: Iterable[str], ends: Ranges, then: float
) -> dict[str, int]:
    """Return how many offsets topics that exist have from the time ``then`` on; none of those that
    cannot be read, which ``_ends`` reports.
    """
    names = sorted(set(topics) & ends.keys())
    try:
        before = context.edges.kafka.offsets_at(names, int(then * 1000)) if names else {}
    except ConnectctlError:
        return {}
    return {t: sum(max(0, part.end - before[t][p]) for p, part in ends[t].items()) for t in before}


def _waiting(
    topics: Iterable[str], group: ReaderGroup | None, ends: Ranges, before: Offsets
) -> Iterable[WaitingPartition]:
    """Yield the partitions with a record that the group has not committed, written before the time
    of ``before``.
    """
    if group is None:
        return
    for topic in sorted(topics):
        for number, then in sorted(before.get(topic, {}).items()):
            partition = TopicPartition(topic, number)
            extent, committed = ends.get(topic, {}).get(number), group.committed.get(partition)
            if extent is None:
                continue
            end, read = extent.stable, max(committed or 0, extent.first)
            if read < min(then, end):
                arrived = end - min(then, end)
                yield WaitingPartition(partition, committed, end, end - read, arrived)


Waiting = Mapping[str, tuple[WaitingPartition, ...]]


def _without_markers(
    context: CheckContext, waiting: Waiting, ends: Ranges, unseen: list[Unseen]
) -> Waiting:
    """Return the partitions of each sink in which a record waits: after the last record there may
    be markers of transactions, and a sink commits the offset after a record that it got.
    """
    few = {
        each.partition: each.end - each.lag
        for partitions in waiting.values()
        for each in partitions
        if _end(ends, each) - (each.end - each.lag) <= _MARKERS
    }
    topics = sorted({partition.topic for partition in few})
    read = partial(context.edges.kafka.tails, topics, _MARKERS)
    tails = answer_of(read, unseen, "the newest records of sinks' topics") if topics else None
    newest: dict[TopicPartition, int] = {}
    for topic, records in (tails or {}).items():
        for record in records:
            partition = TopicPartition(topic, record.partition)
            newest[partition] = max(record.offset, newest.get(partition, -1))
    empty = {p for p, start in few.items() if tails is not None and newest.get(p, -1) < start}
    return {
        sink: tuple(each for each in partitions if each.partition not in empty)
        for sink, partitions in waiting.items()
    }


def _end(ends: Ranges, each: WaitingPartition) -> int:
    return ends[each.partition.topic][each.partition.partition].end


@dataclass(frozen=True)
class _Commits:
    """The newest commits by group and partition, oldest first. None is missing from the time
    ``since`` on, in seconds since the epoch.
    """

    by_partition: Mapping[tuple[str, TopicPartition], list[OffsetCommit]]
    since: float


def _commits(context: CheckContext, wanted: bool, unseen: list[Unseen]) -> _Commits | None:
    """Return the newest commits; None if they could not be read, or are not ``wanted``."""
    if not wanted:
        return None
    read = partial(context.edges.kafka.tails, [COMMITS], _TAIL)
    tails = answer_of(read, unseen, f"whether lag grows: the commits in {COMMITS}")
    if tails is None:
        return None
    records = tails.get(COMMITS, [])
    found: dict[tuple[str, TopicPartition], list[OffsetCommit]] = {}
    for commit in offset_commits(sorted(records, key=lambda r: r.offset)):
        found.setdefault((commit.group, commit.partition), []).append(commit)
    oldest: dict[int, float] = {}
    for record in records:
        if record.timestamp is not None and record.offset:
            at = oldest.get(record.partition, float("inf"))
            oldest[record.partition] = min(at, record.timestamp / 1000)
    whole = {record.partition for record in records if record.offset == 0}
    return _Commits(found, max((at for p, at in oldest.items() if p not in whole), default=0.0))


def _moved(
    each: WaitingPartition,
    group: str,
    commits: _Commits | None,
    now: float,
) -> WaitingPartition:
    """Return the partition with its newest commit, and the offsets that the sink committed lately."""
    if commits is None:
        return each
    of_partition = commits.by_partition.get((group, each.partition), [])
    if not of_partition:
        return replace(each, moves=False if commits.since <= now - WAITED else None)
    earlier = [commit.offset for commit in of_partition if commit.at <= now - WAITED]
    # Without a commit before that time, it is not known where the sink was then.
    committed_lately = of_partition[-1].offset - earlier[-1] if earlier else None
    at = next(c.at for c in of_partition if c.offset == of_partition[-1].offset)
    return replace(each, committed_lately=committed_lately, moved_at=at, moves=at > now - WAITED)
