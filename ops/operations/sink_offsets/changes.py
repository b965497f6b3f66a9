"""What was read of a sink's consumer group, and requested changes of its offsets, as values that plans and backups store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import counted
from connectctl.ops.kafka.consumer_group import ClientGroup
from connectctl.ops.kafka.group_state import has_members
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
"""KIP-875's keys, as ``GET /connectors/NAME/offsets`` has them (``SinkUtils``)."""
FORM = f'It should be like {{"partition": {{"{TOPIC}": "t", "{PARTITION}": 0}}, "offset": {{"{OFFSET}": 7}}}}.'
_LARGEST = (1 << 63) - 1
Committed = tuple[tuple[str, int, int | None], ...]
"""Topic, partition and committed offset, None for none."""
MOST_MEMBERS = 5
"""Members of a group that a message names."""


@dataclass(frozen=True)
class GroupOffsets:
    """A group with its offsets. ``name`` is the connector's, the group's own where no connector was named.

    ``ranges`` has the partitions of the topics that it committed, or is configured for, where those exist; ``unseen`` are
    the topics that may not be described, so that nothing is known of their partitions, and of what is committed of them.
    ``pending`` are the partitions with offsets in an open transaction, which ``waits_for`` names; looked for to show them.
    """

    name: str
    group: ClientGroup
    committed: Mapping[TopicPartition, int]
    ranges: Mapping[str, Mapping[int, OffsetRange]] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()
    connector: bool = True
    pending: frozenset[TopicPartition] = frozenset()
    waits_for: str | None = None

    @property
    def members(self) -> tuple[str, ...]:
        """Who is in the group, by client id and host; the state alone where the coordinator names none."""
        named = tuple(f"{member.client_id} at {member.host}" for member in self.group.members)
        return named or ((f"state {self.group.state}",) if has_members(self.group.state) else ())

    @property
    def uncommitted(self) -> tuple[TopicPartition, ...]:
        """The partitions without a committed offset: a task begins there by ``auto.offset.reset``."""
        there = sorted(TopicPartition(topic, p) for topic, parts in self.ranges.items() for p in parts)
        return tuple(place for place in there if place not in self.committed)

    def range_of(self, place: TopicPartition) -> OffsetRange | None:
        """Where a partition begins and ends; None where that is unknown, or the partition does not exist."""
        return self.ranges.get(place.topic, {}).get(place.partition)

    def lag(self, place: TopicPartition) -> int | None:
        """How many offsets the partition has beyond the committed one; None where its end is unknown."""
        known = self.range_of(place)
        return None if known is None else max(0, known.end - self.committed[place])


def partition_json(place: TopicPartition) -> dict[str, Any]:
    return {TOPIC: place.topic, PARTITION: place.partition}


def offset_json(offset: int | None) -> dict[str, Any] | None:
    """A committed offset as KIP-875 names it, None for none."""
    return None if offset is None else {OFFSET: offset}


def entries_json(committed: Mapping[TopicPartition, int]) -> list[dict[str, Any]]:
    """Offsets as ``GET /connectors/NAME/offsets`` has them, by topic and partition."""
    return [
        {"partition": partition_json(place), "offset": offset_json(committed[place])} for place in sorted(committed)
    ]


def topics_of(committed: Iterable[TopicPartition]) -> list[str]:
    return sorted({topic for topic, _ in committed})


@dataclass(frozen=True)
class GroupChange:
    """``entries`` are topic, partition and the offset to commit, None to delete it.

    ``exact``: what the group has committed besides is deleted, so that it has exactly these. ``left`` is what the run
    ``undoes`` left, which this takes back: other offsets were committed since, and are not set back.
    """

    entries: Committed = ()
    exact: bool = False
    left: tuple[tuple[str, int, int], ...] = ()
    undoes: str | None = None

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic for topic, _, _ in self.entries)


@dataclass(frozen=True)
class GroupTarget:
    """What is requested for one group: that of the connector ``name``, or the group ``name`` with ``connector`` False."""

    name: str
    change: GroupChange
    connector: bool = True


@dataclass(frozen=True, order=True)
class OffsetWrite:
    """A committed offset that changes; None is none."""

    place: TopicPartition
    before: int | None
    after: int | None


def decide(change: GroupChange, committed: Mapping[TopicPartition, int]) -> tuple[OffsetWrite, ...]:
    """What is to be written over ``committed``, by partition; nothing for what is so already."""
    wanted: dict[TopicPartition, int | None] = dict.fromkeys(committed) if change.exact else {}
    wanted |= {TopicPartition(topic, partition): offset for topic, partition, offset in change.entries}
    return tuple(
        OffsetWrite(place, committed.get(place), wanted[place])
        for place in sorted(wanted)
        if committed.get(place) != wanted[place]
    )


def moved(change: GroupChange, writes: Iterable[OffsetWrite]) -> int:
    """How many of ``writes`` would replace what was committed since the run that ``change`` takes back."""
    if change.undoes is None:
        return 0
    left = {TopicPartition(topic, partition): offset for topic, partition, offset in change.left}
    return sum(write.before != left.get(write.place) for write in writes)


def obstacles(change: GroupChange, writes: Iterable[OffsetWrite], group: str) -> list[str]:
    """Every reason against ``writes``, for their plan and again when they are carried out."""
    count = moved(change, writes)
    if not count:
        return []
    return [
        f"{counted(count, 'partition')} of the group {group} moved since the run {change.undoes}: their records would be "
        f"delivered again. To set them back all the same, stop the members of the group, and: connectctl offsets set "
        f"--group {group} -f FILE, with the offsets that connectctl runs show {change.undoes} names"
    ]


def setting(entries: Iterable[tuple[str, str]]) -> GroupChange:
    """The change that ``entries`` ask for: partition and offset as JSON texts, ``null`` to delete. Raises ``BadInput``."""
    read = [(read_json(partition), read_json(offset)) for partition, offset in entries]
    return GroupChange(tuple((*_place(partition), _offset(offset)) for partition, offset in read))


def resetting(partitions: Sequence[str] | None) -> GroupChange:
    """The change that deletes ``partitions``, JSON texts, or all for None. Raises ``BadInput``."""
    if partitions is None:
        return GroupChange(exact=True)
    return GroupChange(tuple((*_place(read_json(text)), None) for text in partitions))


def restoring(entries: Any) -> GroupChange:
    """The change after which a group has exactly ``entries``, as ``entries_json`` gives them. Raises ``BadInput``."""
    return GroupChange(_read(entries), exact=True)


def taking_back(entries: Any, change: GroupChange, run: str) -> GroupChange:
    """The change that takes back ``change``, which ``run`` made of a group that had ``entries``. Raises ``BadInput``."""
    before = {TopicPartition(topic, partition): offset for topic, partition, offset in _read(entries)}
    after = before | {write.place: write.after for write in decide(change, as_committed(entries))}
    left = tuple((*place, offset) for place, offset in sorted(after.items()) if offset is not None)
    return replace(restoring(entries), left=left, undoes=run)


def as_committed(entries: Any) -> dict[TopicPartition, int]:
    """What ``entries_json`` wrote as ``entries``. Raises ``BadInput``."""
    return {TopicPartition(topic, p): offset for topic, p, offset in _read(entries) if offset is not None}


def _read(entries: Any) -> tuple[tuple[str, int, int | None], ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _bad("its offsets are not an array of objects", entries)
    return tuple((*_place(entry.get("partition")), _offset(entry.get("offset"))) for entry in entries)


def _place(partition: Any) -> TopicPartition:
    if not isinstance(partition, dict) or partition.keys() != {TOPIC, PARTITION}:
        raise _bad(f"a sink's partition has {TOPIC} and {PARTITION}, and nothing else", partition)
    topic, number = partition[TOPIC], _number(partition[PARTITION])
    if not isinstance(topic, str) or not topic or number is None:
        raise _bad(f"{TOPIC} is a name and {PARTITION} a number from 0 on", partition)
    return TopicPartition(topic, number)


def _offset(offset: Any) -> int | None:
    if offset is None:
        return None
    number = _number(offset.get(OFFSET)) if isinstance(offset, dict) and offset.keys() == {OFFSET} else None
    if number is None:
        raise _bad(f"a sink's offset has {OFFSET}, a number from 0 on, and nothing else", offset)
    return number


def _number(value: Any) -> int | None:
    """The number that ``value`` is, or that its text is, as workers take both (``SinkUtils.parseSinkConnectorOffsets``)."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _LARGEST else None


def _bad(why: str, value: Any) -> BadInput:
    return BadInput(f"{value!r:.200} does not fit a sink", why=why, next_step=FORM)


def confirmed(writes: Iterable[OffsetWrite]) -> Committed:
    """What a plan of ``writes`` replaces: topic, partition and offset, None for none."""
    return tuple((*write.place, write.before) for write in writes)


def moved_since(plan: Committed, writes: Iterable[OffsetWrite]) -> int:
    """How many partitions have other offsets than when the plan was made that replaces ``plan``."""
    before, now = set(plan), set(confirmed(writes))
    return len({(topic, partition) for topic, partition, _ in before ^ now})
