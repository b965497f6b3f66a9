"""Records of ``__transaction_state``: what coordinators write down of each transactional id.

Source: ``TransactionLogKey`` (version 0) and ``TransactionLogValue`` (0, and 1 with tagged fields:
KIP-890, KIP-915).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from connectctl.ops.kafka.field_reader import FieldReader
from connectctl.ops.kafka.topic_partition import TopicPartition

TOPIC = "__transaction_state"
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""By their numbers in the log (``TransactionState``)."""
FLEXIBLE, NEWEST = 1, 1
_START = struct.Struct(">hq")
_PREVIOUS, _NEXT, _CLIENT = 0, 1, 2
"""Numbers of the tagged fields."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A transactional id as its coordinator recorded it. Times are in milliseconds since the epoch,
    or -1.

    ``epoch`` is that of the markers of a transaction that is being ended. With transaction version
    2, and if an abort fences, it is above the epoch of the transaction's records.
    ``previous_producer_id`` and ``next_producer_id`` are -1 except when epochs run out.
    ``client_version`` is the client's ``transaction.version``: from 2 on each transaction has its
    own epoch.
    """

    id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: str
    topic_partitions: frozenset[TopicPartition]
    updated_ms: int
    started_ms: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_version: int = 0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that cannot be read, and why. ``id`` is None where already the key cannot."""

    id: str | None
    why: str


def parse(key: bytes | None, value: bytes | None) -> LogEntry | Unreadable | None:
    """Return the record as an entry; None for a tombstone: the id has expired."""
    id: str | None = None
    try:
        reader = _FlexibleReader(key or b"")
        if version := reader.number(2):
            return Unreadable(None, f"a key has the unknown version {version}")
        id = reader.text(flexible=False)
        return None if value is None else _entry(id, value)
    except ValueError as e:
        return Unreadable(id, f"a record is damaged: {e}")


def producer_of(value: bytes) -> int | None:
    """Return the producer id, which is at the same position in all known versions; None where the
    version is not known.
    """
    if len(value) < _START.size:
        return None
    version, producer_id = _START.unpack_from(value)
    return int(producer_id) if 0 <= version <= NEWEST else None


def _entry(id: str, value: bytes) -> LogEntry | Unreadable:
    reader = _FlexibleReader(value)
    version = reader.number(2)
    if not 0 <= version <= NEWEST:
        return Unreadable(id, f"a value has the unknown version {version}")
    flexible = version >= FLEXIBLE
    producer_id, epoch, timeout, state = (
        reader.number(8),
        reader.number(2),
        reader.number(4),
        reader.number(1),
    )
    if not 0 <= state < len(STATES):
        return Unreadable(id, f"a value has the unknown state {state}")
    topic_partitions = _topic_partitions(reader, flexible)
    updated, started = reader.number(8), reader.number(8)
    tagged = reader.tagged() if flexible else {}
    more = _tag(tagged, _PREVIOUS, -1), _tag(tagged, _NEXT, -1), _tag(tagged, _CLIENT, 0)
    return LogEntry(
        id, producer_id, epoch, timeout, STATES[state], topic_partitions, updated, started, *more
    )


def _topic_partitions(reader: _FlexibleReader, flexible: bool) -> frozenset[TopicPartition]:
    found = []
    for _ in range(reader.count(flexible)):
        topic = reader.text(flexible)
        found += [TopicPartition(topic, reader.number(4)) for _ in range(reader.count(flexible))]
        if flexible:
            reader.tagged()
    return frozenset(found)


def _tag(tagged: dict[int, bytes], number: int, default: int) -> int:
    return int.from_bytes(tagged[number], "big", signed=True) if number in tagged else default


class _FlexibleReader(FieldReader):
    """With the types of flexible versions, too (KIP-482)."""

    def unsigned(self) -> int:
        """Return an unsigned number of variable length."""
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
            shift += 7

    def count(self, flexible: bool) -> int:
        """Return the number of elements of an array; 0 if it is null."""
        return max(0, self.unsigned() - 1 if flexible else self.number(4))

    def text(self, flexible: bool) -> str:
        return self.take(self.unsigned() - 1 if flexible else self.number(2)).decode()

    def tagged(self) -> dict[int, bytes]:
        """Tagged fields by their numbers; those that are not known are allowed."""
        found = {}
        for _ in range(self.unsigned()):
            number = self.unsigned()
            found[number] = self.take(self.unsigned())
        return found
