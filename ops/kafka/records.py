"""Records of Kafka, and a compacted topic as its newest records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple


class ConsumerRecord(NamedTuple):
    """One Kafka record. ``timestamp`` is in milliseconds since the epoch, None where the broker has none."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int | None = None


Row = tuple[bytes, bytes, bool, int, int, Any, Any]
"""A record by what it is sorted by (the key's group, the key, whether there is none, partition, offset), with timestamp
and value."""
GROUP: Final = 0
KEY: Final = 1
NO_KEY: Final = 2
PARTITION: Final = 3
TIMESTAMP: Final = 5
VALUE: Final = 6
"""Where a row has what."""


def record_in(row: Row) -> ConsumerRecord:
    _, key, without, partition, offset, timestamp, value = row
    return ConsumerRecord(None if without else key, value, partition, offset, timestamp)


class SortedRecords(Collection[ConsumerRecord]):
    """Records in the order of groups and keys, which come from where there is more room than in memory."""

    @abstractmethod
    def blocks(self, group: bytes | None = None) -> Iterator[list[Row]]:
        """The same in lists of some thousands, none of them empty, with all that there is of a key in one of them.

        With ``group`` only those that hold some of it, and with it what is beside it.
        """


@dataclass(frozen=True)
class UnreadTail:
    """A partition that could not be read to its end: an open transaction holds its last stable offset at ``stable``."""

    partition: int
    stable: int
    end: int


@dataclass(frozen=True)
class TopicImage:
    """A topic as compaction would leave it: the newest record of each key in each partition.

    Keys are kept per partition, because the same key in two partitions is two records that compaction never unites.
    ``records`` counts all that were read, those without a key among them. ``end_offsets`` are the high
    watermarks when the reading began. Order within ``latest`` is not defined; use the offsets. ``superseded`` are the
    older records that compaction has not removed yet, where they were asked for. ``in_order``: the topic is too big for
    memory, and ``latest`` gives its records from disk, by connector (``source_keys.owner_of``) and key.
    """

    topic: str
    records: int
    latest: Collection[ConsumerRecord]
    end_offsets: Mapping[int, int]
    held_back: tuple[UnreadTail, ...] = ()
    superseded: tuple[ConsumerRecord, ...] = ()
    in_order: bool = False
    made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was made of ``latest``, so that it is made once; see ``config_topic.state_of``."""
