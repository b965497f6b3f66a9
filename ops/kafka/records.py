"""Records of Kafka, and a compacted topic as its newest records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from connectctl.ops.kafka.rhythm import Rhythm


class ConsumerRecord(NamedTuple):
    """A Kafka record. ``timestamp`` is in milliseconds since the epoch, or None."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int | None = None


@dataclass(frozen=True)
class UnreadTail:
    """A partition that could not be read to its end: an open transaction holds its last stable
    offset at ``stable``.
    """

    partition: int
    stable: int
    end: int


@dataclass(frozen=True)
class TopicImage:
    """A topic as compaction would leave it: the newest record of each key in each partition.

    Keys are kept per partition, because compaction never unites the same key of two partitions.
    ``records`` counts all records that were read, also those without a key. ``end_offsets`` are the
    high watermarks at the beginning of the reading. Order within ``latest`` is not defined; use the
    offsets. ``superseded`` are the older records that compaction has not removed yet, if requested.
    ``left_out`` are the connectors whose records were not requested.
    """

    topic: str
    records: int
    latest: Collection[ConsumerRecord]
    end_offsets: Mapping[int, int]
    held_back: tuple[UnreadTail, ...] = ()
    superseded: tuple[ConsumerRecord, ...] = ()
    left_out: frozenset[str] = frozenset()
    made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Values that were derived from ``latest``, so that they are derived once; see
    ``config_topic.state_of``.
    """


@dataclass(frozen=True)
class KeyTimes:
    """When the retained records of each key of a topic were written, oldest first, in milliseconds
    since the epoch.

    Keys whose newest record is a tombstone are left out. ``rhythms`` are of all retained records of
    each key, in seconds; ``held_back`` as of ``TopicImage``.
    """

    topic: str
    times: Mapping[bytes, tuple[int, ...]]
    held_back: tuple[UnreadTail, ...] = ()
    rhythms: Mapping[bytes, Rhythm] = field(default_factory=dict)
