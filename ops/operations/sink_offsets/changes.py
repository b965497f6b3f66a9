"""The state of a sink's consumer group, and requested changes of its offsets, which plans and
backups store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.numbers import LARGEST, whole_number
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import counted
from connectctl.ops.kafka.consumer_group import ClientGroup
from connectctl.ops.kafka.group_state import has_members
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
"""The keys of KIP-875 in ``GET /connectors/NAME/offsets`` (``SinkUtils``)."""
FORM = (
    f'It should be like {{"partition": {{"{TOPIC}": "t", "{PARTITION}": 0}}, "offset": '
    f'{{"{OFFSET}": 7}}}}.'
)
Committed = tuple[tuple[str, int, int | None], ...]
"""Topic, partition and committed offset, None if there is none."""
MOST_MEMBERS = 5
"""Members of a group that a message names."""


@dataclass(frozen=True)
class GroupOffsets:
    """A group with its offsets. ``name`` is the name of its connector, or of the group without a
    connector.

    ``ranges`` has the partitions of existing topics with committed offsets, or in the
    configuration. ``unseen`` are the topics that may not be described; their partitions and
    committed offsets are unknown. ``pending`` are the partitions with offsets in the open
    transaction ``waits_for``; they are only read to be shown.
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
        """Return the members by client id and host, or the state of the group if its coordinator
        lists none.
        """
        named = tuple(f"{member.client_id} at {member.host}" for member in self.group.members)
        return named or ((f"state {self.group.state}",) if has_members(self.group.state) else ())

    @property
    def uncommitted(self) -> tuple[TopicPartition, ...]:
        """Return the partitions without a committed offset: a task starts there according to
        ``auto.offset.reset``.
        """
        existing = sorted(
            TopicPartition(topic, p) for topic, parts in self.ranges.items() for p in parts
        )
        return tuple(partition for partition in existing if partition not in self.committed)

    def range_of(self, partition: TopicPartition) -> OffsetRange | None:
        """Return the first and the end offset of a partition; None if they are unknown, or the
        partition does not exist.
        """
        return self.ranges.get(partition.topic, {}).get(partition.partition)

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets from the committed one to the end of the partition; None if
        the end is unknown.
        """
        known = self.range_of(partition)
        return None if known is None else max(0, known.end - self.committed[partition])


def partition_json(partition: TopicPartition) -> dict[str, Any]:
    return {TOPIC: partition.topic, PARTITION: partition.partition}


def offset_json(offset: int | None) -> dict[str, Any] | None:
    """Return a committed offset in the format of KIP-875, None if there is none."""
    return None if offset is None else {OFFSET: offset}


def entries_json(committed: Mapping[TopicPartition, int]) -> list[dict[str, Any]]:
    """Return offsets in the format of ``GET /connectors/NAME/offsets``, sorted by topic and
    partition.
    """
    return [
        {"partition": partition_json(partition), "offset": offset_json(committed[partition])}
        for partition in sorted(committed)
    ]


def topics_of(committed: Iterable[TopicPartition]) -> list[str]:
    return sorted({topic for topic, _ in committed})


@dataclass(frozen=True)
class GroupChange:
    """A change of a group's offsets. ``entries`` are topic, partition and the offset to commit,
    None to delete it.

    ``exact``: all other offsets of the group are deleted. ``left`` are the offsets after the run
    ``undoes``, which this change undoes: other offsets were committed since, and are not reset.
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
    """The requested change of one group: of the connector ``name``, or the group ``name`` if
    ``connector`` is False.
    """

    name: str
    change: GroupChange
    connector: bool = True


@dataclass(frozen=True, order=True)
class OffsetWrite:
    """A change of a committed offset; None stands for no offset."""

    partition: TopicPartition
    before: int | None
    after: int | None


def decide(change: GroupChange, committed: Mapping[TopicPartition, int]) -> tuple[OffsetWrite, ...]:
    """Return the writes that apply ``change`` to ``committed``, by partition, without unchanged
    offsets.
    """
    offsets: dict[TopicPartition, int | None] = dict.fromkeys(committed) if change.exact else {}
    offsets |= {
        TopicPartition(topic, partition): offset for topic, partition, offset in change.entries
    }
    return tuple(
        OffsetWrite(topic_partition, committed.get(topic_partition), offsets[topic_partition])
        for topic_partition in sorted(offsets)
        if committed.get(topic_partition) != offsets[topic_partition]
    )


def moved(change: GroupChange, writes: Iterable[OffsetWrite]) -> int:
    """Return the number of ``writes`` that would replace offsets committed since the run that
    ``change`` undoes.
    """
    if change.undoes is None:
        return 0
    written = {TopicPartition(topic, partition): offset for topic, partition, offset in change.left}
    return sum(write.before != written.get(write.partition) for write in writes)


def obstacles(change: GroupChange, writes: Iterable[OffsetWrite], group: str) -> list[str]:
    """Return the reasons against ``writes``, for their plan and for their execution."""
    count = moved(change, writes)
    if not count:
        return []
    return [
        f"{counted(count, 'partition')} of the group {group} moved since the run {change.undoes}: "
        "their records would be delivered again. To set them back all the same, stop the members "
        f"of the group, and: connectctl offsets set --group {group} -f FILE, with the offsets "
        f"that connectctl runs show {change.undoes} names"
    ]


def setting(entries: Iterable[tuple[str, str]]) -> GroupChange:
    """Return the change for ``entries``: partition and offset as JSON texts, ``null`` to delete.
    Raises ``BadInput``.
    """
    read = [(read_json(partition), read_json(offset)) for partition, offset in entries]
    return GroupChange(
        tuple((*_topic_partition(partition), _offset(offset)) for partition, offset in read)
    )


def resetting(partitions: Sequence[str] | None) -> GroupChange:
    """Return the change that deletes ``partitions``, as JSON texts, or all if it is None. Raises
    ``BadInput``.
    """
    if partitions is None:
        return GroupChange(exact=True)
    return GroupChange(tuple((*_topic_partition(read_json(text)), None) for text in partitions))


def restoring(entries: Any) -> GroupChange:
    """Return the change after which a group has exactly ``entries``, in the format of
    ``entries_json``. Raises ``BadInput``.
    """
    return GroupChange(_read(entries), exact=True)


def undoing(entries: Any, change: GroupChange, run: str) -> GroupChange:
    """Return the change that undoes ``change``, which ``run`` applied to a group with ``entries``.
    Raises ``BadInput``.
    """
    before = {
        TopicPartition(topic, partition): offset for topic, partition, offset in _read(entries)
    }
    after = before | {
        write.partition: write.after for write in decide(change, as_committed(entries))
    }
    written = tuple(
        (*topic_partition, offset)
        for topic_partition, offset in sorted(after.items())
        if offset is not None
    )
    return replace(restoring(entries), left=written, undoes=run)


def as_committed(entries: Any) -> dict[TopicPartition, int]:
    """Return the committed offsets in ``entries``, in the format of ``entries_json``. Raises
    ``BadInput``.
    """
    return {
        TopicPartition(topic, p): offset
        for topic, p, offset in _read(entries)
        if offset is not None
    }


def _read(entries: Any) -> tuple[tuple[str, int, int | None], ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _bad("its offsets are not an array of objects", entries)
    return tuple(
        (*_topic_partition(entry.get("partition")), _offset(entry.get("offset")))
        for entry in entries
    )


def _topic_partition(partition: Any) -> TopicPartition:
    if not isinstance(partition, dict) or partition.keys() != {TOPIC, PARTITION}:
        raise _bad(f"a sink's partition has {TOPIC} and {PARTITION}, and nothing else", partition)
    topic, number = partition[TOPIC], _number(partition[PARTITION])
    if not isinstance(topic, str) or not topic or number is None:
        raise _bad(f"{TOPIC} is a name and {PARTITION} a number from 0 on", partition)
    return TopicPartition(topic, number)


def _offset(offset: Any) -> int | None:
    if offset is None:
        return None
    number = (
        _number(offset.get(OFFSET))
        if isinstance(offset, dict) and offset.keys() == {OFFSET}
        else None
    )
    if number is None:
        raise _bad(f"a sink's offset has {OFFSET}, a number from 0 on, and nothing else", offset)
    return number


def _number(value: Any) -> int | None:
    """Return the number in ``value``, which may be a text, as workers parse it
    (``SinkUtils.parseSinkConnectorOffsets``).
    """
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = whole_number(value)
    return value if type(value) is int and 0 <= value <= LARGEST else None


def _bad(why: str, value: Any) -> BadInput:
    return BadInput(f"{value!r:.200} does not fit a sink", why=why, next_step=FORM)


def confirmed(writes: Iterable[OffsetWrite]) -> Committed:
    """Return the offsets that ``writes`` replace: topic, partition and offset, None if there was
    none.
    """
    return tuple((*write.partition, write.before) for write in writes)


def moved_since(plan: Committed, writes: Iterable[OffsetWrite]) -> int:
    """Return the number of partitions whose offsets differ from ``plan``, which has the offsets of
    the confirmed plan.
    """
    before, now = set(plan), set(confirmed(writes))
    return len({(topic, partition) for topic, partition, _ in before ^ now})
