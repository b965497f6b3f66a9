"""The committed batches of a Fetch response, by the response's index of aborted transactions. Pure.

From the first offset of an aborted transaction on, the batches of its producer are skipped up to
its marker, as a consumer with read_committed does. Layout: ``DefaultRecordBatch`` of Kafka's
clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from connectctl.ops.kafka.batch_headers import (
    ABORT,
    CONTROL,
    HEADER,
    LENGTH,
    TRANSACTIONAL,
    marker_of,
)

CODEC = 0x07
"""The bits of a batch's attributes for its compression."""
MAGIC_AT = 16
"""The position of the byte for the format, the same in every format."""
_BASE, _EPOCH, _MAGIC, _CHECKSUM, _ATTRIBUTES, _DELTA, _PRODUCER, _COUNT = 0, 2, 3, 4, 5, 6, 9, 12
CHECKED_AT = 21
"""The position of the first byte of a batch that its checksum covers."""


class BatchAt(NamedTuple):
    """A batch that lies in a response from ``start`` to before ``end``, and the ``fields`` of its
    header.

    Of a format before 0.11 only the first four are there, and its offset is that of its last
    record.
    """

    start: int
    end: int
    fields: tuple[Any, ...]

    @property
    def offset(self) -> int:
        """Return the offset in its header: of its first record, in old formats of its last one."""
        base: int = self.fields[_BASE]
        return base

    @property
    def next_offset(self) -> int:
        fields = self.fields
        after: int = fields[_BASE] + 1 + (fields[_DELTA] if fields[_MAGIC] >= 2 else 0)
        return after

    @property
    def is_old(self) -> bool:
        """Return whether its format is older than Kafka 0.11."""
        return bool(self.fields[_MAGIC] < 2)

    @property
    def records(self) -> int:
        """Return the number of its records; after compaction, fewer than its offsets."""
        return int(self.fields[_COUNT])

    @property
    def attributes(self) -> int:
        """Return its attributes: codec, type of timestamps, whether it is transactional, a control
        batch, or has a delete horizon.
        """
        return int(self.fields[_ATTRIBUTES])


def check(data: Any, batch: BatchAt) -> None:
    """Raise ``ValueError`` if ``batch`` in ``data``, of a format since 0.11, does not match its
    checksum: its bytes changed on a broker's disk or on the way. Java's consumers check this, too
    (``check.crcs``).
    """
    from crc32c import crc32c

    if crc32c(memoryview(data)[batch.start + CHECKED_AT : batch.end]) != batch.fields[_CHECKSUM]:
        raise ValueError(
            f"the checksum of the batch at offset {batch.offset:,} does not match its bytes"
        )


class CommittedBatches:
    """The batches with committed records among the first ``left`` bytes of ``data``. ``aborted``
    are the producers and first offsets of transactions. With ``old`` those of formats before 0.11
    are included; else the iteration ends at the first of them.

    ``next_offset`` is the offset after the last batch that was read, None if there was none, and
    ``epoch`` its leader epoch, or -1. With ``is_old`` the iteration ended at a batch of an old
    format.
    """

    def __init__(
        self, data: Any, left: int, aborted: Sequence[tuple[int, int]], *, old: bool = False
    ):
        self._data, self._left, self._old = data, left, old
        self._aborted = sorted(aborted, key=lambda each: -each[1])
        self.next_offset: int | None = None
        self.epoch = -1
        self.is_old = False

    def __iter__(self) -> Iterator[BatchAt]:
        """Yield the batches with committed records. The last batch of a response may be cut off; it
        is returned again by the next request.
        """
        at, aborted_producers = 0, set[int]()
        while self._left - at > MAGIC_AT:
            base, length = LENGTH.unpack_from(self._data, at)
            end, magic = at + LENGTH.size + length, int(self._data[at + MAGIC_AT])
            self.is_old = magic < 2 and not self._old
            if self.is_old or end > self._left:
                return
            fields = HEADER.unpack_from(self._data, at) if magic >= 2 else (base, length, -1, magic)
            found = BatchAt(at, end, fields)
            at, self.next_offset, self.epoch = end, found.next_offset, found.fields[_EPOCH]
            if found.is_old:
                yield found
                continue
            while self._aborted and self._aborted[-1][1] < found.next_offset:
                aborted_producers.add(self._aborted.pop()[0])
            producer = found.fields[_PRODUCER]
            if found.attributes & CONTROL:
                body = bytes(self._data[found.start + HEADER.size : end])
                if producer in aborted_producers and marker_of(fields, body).outcome == ABORT:
                    aborted_producers.discard(producer)
            elif producer not in aborted_producers or not found.attributes & TRANSACTIONAL:
                yield found
