"""The content of a partition's log by its headers: batches of records, and the markers that end
transactions.

Field by field as in Kafka's ``DefaultRecordBatch`` and ``EndTransactionMarker``.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from connectctl.ops.kafka.varints import read_varint

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, first and last
timestamp, producer id, epoch, first sequence, count of records.
"""
LENGTH = struct.Struct(">qi")
"""The fields before the bytes that a batch's length counts, the same in every format."""
AFTER_LENGTH = HEADER.size - LENGTH.size
CONTROL = 0x20
TRANSACTIONAL = 0x10
LOG_APPEND_TIME = 0x08
_TYPE = struct.Struct(">hh")
_COORDINATOR = struct.Struct(">hi")
ABORT, COMMIT = 0, 1


class Batch(NamedTuple):
    """A batch of records. ``records`` are those that compaction has left; ``sequence`` is the first
    record's, or -1.

    Timestamps are in milliseconds since the epoch; with ``append_time`` the broker set them, not
    the producer.
    """

    offset: int
    last_offset: int
    records: int
    producer_id: int
    epoch: int
    sequence: int
    first_ts: int
    last_ts: int
    transactional: bool
    append_time: bool = False
    legacy: bool = False

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @classmethod
    def of(cls, fields: tuple[Any, ...]) -> Batch:
        base, _, _, _, _, attributes, delta, first, last, producer, epoch, sequence, count = fields
        transactional, append_time = (
            bool(attributes & TRANSACTIONAL),
            bool(attributes & LOG_APPEND_TIME),
        )
        times = last if append_time else first, last
        return cls(
            base, base + delta, count, producer, epoch, sequence, *times, transactional, append_time
        )

    @classmethod
    def old(cls, offset: int) -> Batch:
        """Return a message of a format that has no producers."""
        return cls(offset, offset, 1, -1, -1, -1, -1, -1, transactional=False, legacy=True)


class Marker(NamedTuple):
    """A control batch that ends a transaction. ``outcome`` is ``COMMIT``, ``ABORT``, or the type of
    another control batch.
    """

    offset: int
    producer_id: int
    epoch: int
    timestamp: int
    outcome: int
    coordinator_epoch: int

    @property
    def next_offset(self) -> int:
        return self.offset + 1


def marker_of(fields: tuple[Any, ...], body: bytes) -> Marker:
    """Return the marker with this header and this body: one record, of which key and value are of
    fixed length.
    """
    base, _, _, _, _, _, delta, _, last, producer, epoch, _, count = fields
    outcome, coordinator = -1, -1
    if count:
        _, at = read_varint(body, 0)  # length
        at += 1  # attributes
        for _ in range(2):  # timestamp and offset
            _, at = read_varint(body, at)
        length, at = read_varint(body, at)
        _, outcome = _TYPE.unpack_from(body, at)
        length, at = read_varint(body, at + length)
        if length >= _COORDINATOR.size:
            _, coordinator = _COORDINATOR.unpack_from(body, at)
    return Marker(base + delta, producer, epoch, last, outcome, coordinator)
