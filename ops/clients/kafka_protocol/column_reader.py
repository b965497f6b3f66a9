"""Committed records of a partition as columns, by raw Fetch: a client library makes an object of each record.

What was aborted is left out as a consumer with read_committed does it: the answer names the aborted transactions, from
whose first offset on the batches of their producer are passed over up to its marker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from connectctl.ops.clients.kafka_protocol.headers import Headers, opening, request
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.batch_headers import (
    ABORT,
    CONTROL,
    HEADER,
    LENGTH,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    marker_of,
)
from connectctl.ops.kafka.record_batch_decoder import PADDING, Body, Columns, columns

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection
    from connectctl.ops.kafka.transactions import Place

FETCH_BYTES = 8 << 20
"""How much to ask for at once; that much is held, and the places of its records besides."""
UNPACKED = 16 << 20
"""Bytes of compressed batches after which no further one is unpacked before these were taken."""
_CODEC = 0x07
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_XERIAL, _XERIAL_HEAD = b"\x82SNAPPY\0", 16


class Chunk(NamedTuple):
    """Records in an answer that begins at ``offset``; behind them, and what else lies there, the log continues."""

    offset: int
    next_offset: int
    columns: Columns


class OldFormat(Exception):
    """What follows are records in a format of Kafka before 0.11."""


class _Found(NamedTuple):
    """A batch of committed records, how it is compressed, and where the log continues."""

    body: Body
    codec: int
    next_offset: int


class ColumnReader(Headers):
    """``read`` gives ``Chunk``s: the first may begin before the start, the last end behind the end, which is at most the
    last stable offset. Raises what ``Headers`` raises, and ``OldFormat`` behind the chunks before it.
    """

    _ahead: tuple[RawConnection, int, Place, int] | None = None
    _end = 0

    def read(self, place: Place, start: int, end: int) -> Iterator[Any]:
        self._end = end
        yield from super().read(place, start, end)

    def close(self) -> None:
        self._ahead = None
        super().close()

    def _fetch(self, place: Place, offset: int) -> Iterator[Any]:
        import numpy as np

        connection = self._asked(place, offset)
        left, aborted = opening(connection, place)
        data = np.empty(left + PADDING, np.uint8)
        connection.into(data.data[:left])
        connection.skip(connection.left)
        answer = _Answer(data, left, aborted)
        found = list(answer.committed())
        behind = answer.next_offset
        if behind is not None and behind < self._end and not answer.old:
            # The broker makes the next answer while this one is worked on.
            number = connection.send(request(place, behind, FETCH_BYTES, committed=True))
            self._ahead = connection, number, place, behind
        try:
            for some, next_offset in _portions(data, found):
                yield Chunk(offset, next_offset, some)
        except (ValueError, OSError) as e:
            raise ConnectctlError(f"{place} has records that cannot be read", why=str(e), code="garbled") from e
        if behind is not None:
            yield Chunk(offset, behind, columns(data, []))
        if answer.old:
            raise OldFormat

    def _asked(self, place: Place, offset: int) -> RawConnection:
        """A connection on which the answer about ``offset`` begins."""
        connection = self._connection(place)
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            other, number, *about = ahead
            other.await_answer(number)
            if about == [place, offset]:
                return other
            other.skip(other.left)
        connection.ask(request(place, offset, FETCH_BYTES, committed=True))
        return connection


class _Answer:
    """The batches of an answer, ``left`` bytes of ``data``. ``aborted`` are the producers and first offsets of transactions;
    ``next_offset`` is where the log continues behind what was gone through, and ``old``: there are records before 0.11.
    """

    def __init__(self, data: Any, left: int, aborted: Sequence[tuple[int, int]]):
        self._data, self._left = data, left
        self._aborted = sorted(aborted, key=lambda each: -each[1])
        self.next_offset: int | None = None
        self.old = False

    def committed(self) -> Iterator[_Found]:
        """The batches of committed records. The last one of an answer may be cut off, and will come again."""
        at, gone = 0, set[int]()
        while self._left - at >= HEADER.size:
            fields = HEADER.unpack_from(self._data, at)
            base, length, _, magic, _, attributes, delta, first_time, last_time, producer, _, _, count = fields
            start, end = at + HEADER.size, at + LENGTH.size + length
            self.old = magic < 2
            if self.old or end > self._left:
                return
            at, behind = end, base + delta + 1
            self.next_offset = behind
            while self._aborted and self._aborted[-1][1] < behind:
                gone.add(self._aborted.pop()[0])
            if attributes & CONTROL:
                if producer in gone and marker_of(fields, bytes(self._data[start:end])).outcome == ABORT:
                    gone.discard(producer)
            elif producer not in gone or not attributes & TRANSACTIONAL:
                append_time = last_time if attributes & LOG_APPEND_TIME else None
                yield _Found(Body(start, end, count, base, first_time, append_time), attributes & _CODEC, behind)


def _portions(data: Any, found: Sequence[_Found]) -> Iterator[tuple[Columns, int]]:
    """The records of these batches, in portions where they are compressed, and where the log continues behind each."""
    import numpy as np

    if not any(each.codec for each in found):
        if found:
            yield columns(data, [each.body for each in found]), found[-1].next_offset
        return
    parts: list[bytes] = []
    bodies: list[Body] = []
    size = 0
    for number, each in enumerate(found, 1):
        parts.append(_unpacked(bytes(data[each.body.start : each.body.end]), each.codec))
        bodies.append(each.body._replace(start=size, end=size + len(parts[-1])))
        size += len(parts[-1])
        if size >= UNPACKED or number == len(found):
            whole = np.frombuffer(b"".join((*parts, bytes(PADDING))), np.uint8)
            yield columns(whole, bodies), each.next_offset
            parts, bodies, size = [], [], 0


def _unpacked(packed: bytes, codec: int) -> bytes:
    import pyarrow as pa

    if codec not in _CODECS:
        return packed
    if _CODECS[codec] != "snappy":
        with pa.input_stream(pa.py_buffer(packed), compression=_CODECS[codec]) as stream:
            unpacked: bytes = stream.read()
        return unpacked
    if not packed.startswith(_XERIAL):
        return _unsnapped(packed)
    at, blocks = _XERIAL_HEAD, []
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        blocks.append(_unsnapped(packed[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(blocks)


def _unsnapped(block: bytes) -> bytes:
    """Snappy's block format begins with the length of what it holds, seven bits to a byte."""
    import pyarrow as pa

    size = at = 0
    while at < len(block):
        size |= (block[at] & 0x7F) << 7 * at
        if block[at] < 0x80:
            break
        at += 1
    unpacked: bytes = pa.decompress(block, size, "snappy", asbytes=True)
    return unpacked
