"""Committed records of a partition as columns, by raw Fetch: a client library makes an object of
each record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from connectctl.ops.clients.kafka_protocol.headers import Headers, partition_of, request
from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.compression import unpacked
from connectctl.ops.kafka.fetched_batches import CODEC, BatchAt, CommittedBatches, check
from connectctl.ops.kafka.record_batch_decoder import PADDING, Body, Columns, body_of, columns
from connectctl.ops.kafka.topic_partition import TopicPartition

FETCH_BYTES = 8 << 20
"""The requested size of a response, which is held in memory with the positions of its records."""
UNPACKED = 16 << 20
"""Bytes of compressed batches after which no further one is unpacked before these were taken."""


class Chunk(NamedTuple):
    """Records of a response that begins at ``offset``; the log continues at ``next_offset``, after
    markers and aborted records, too.
    """

    offset: int
    next_offset: int
    columns: Columns


class OldFormat(Exception):
    """The next records are in a format of Kafka before 0.11."""


class ColumnReader(Headers):
    """``read`` yields ``Chunk``s: the first may begin before the start, the last end after the end,
    which is at most the last stable offset. Raises what ``Headers`` raises, and ``OldFormat`` after
    the chunks before such records.
    """

    _ahead: tuple[RawConnection, int, TopicPartition, int] | None = None
    _end = 0

    def read(self, topic_partition: TopicPartition, start: int, end: int) -> Iterator[Any]:
        self._end = end
        yield from super().read(topic_partition, start, end)

    def close(self) -> None:
        self._ahead = None
        super().close()

    def _fetch(self, topic_partition: TopicPartition, offset: int) -> Iterator[Any]:
        import numpy as np

        connection = self._asked(topic_partition, offset)
        part = partition_of(connection, topic_partition, committed=True)
        data = np.empty(part.size + PADDING, np.uint8)
        connection.into(data.data[: part.size])
        connection.skip(connection.left)
        answer = CommittedBatches(data, part.size, part.aborted)
        found = list(answer)
        resume_at = answer.next_offset
        if resume_at is not None and resume_at < self._end and not answer.is_old:
            # The broker makes the next answer while this one is worked on.
            number = connection.send(
                request(topic_partition, resume_at, FETCH_BYTES, committed=True)
            )
            self._ahead = connection, number, topic_partition, resume_at
        try:
            for batch in found:
                check(data, batch)
            for subset, next_offset in portions_of(data, found):
                yield Chunk(offset, next_offset, subset)
        except (ValueError, OSError) as e:
            raise ConnectctlError(
                f"{topic_partition} has records that cannot be read", why=str(e), code="garbled"
            ) from e
        if resume_at is not None:
            yield Chunk(offset, resume_at, columns(data, []))
        if answer.is_old:
            raise OldFormat

    def _asked(self, topic_partition: TopicPartition, offset: int) -> RawConnection:
        """A connection on which the answer about ``offset`` begins."""
        connection = self._connection(topic_partition)
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            other, number, *about = ahead
            other.await_answer(number)
            if about == [topic_partition, offset]:
                return other
            other.skip(other.left)
        connection.ask(request(topic_partition, offset, FETCH_BYTES, committed=True))
        return connection


def portions_of(data: Any, found: Sequence[BatchAt]) -> Iterator[tuple[Columns, int]]:
    """Yield the records of these batches, compressed ones in portions, with the offset after each
    portion.
    """
    import numpy as np

    if not any(each.attributes & CODEC for each in found):
        if found:
            yield columns(data, list(map(body_of, found))), found[-1].next_offset
        return
    parts: list[bytes] = []
    bodies: list[Body] = []
    size = 0
    for number, each in enumerate(found, 1):
        body = body_of(each)
        parts.append(unpacked(bytes(data[body.start : body.end]), each.attributes & CODEC))
        bodies.append(body._replace(start=size, end=size + len(parts[-1])))
        size += len(parts[-1])
        if size >= UNPACKED or number == len(found):
            buffer = np.frombuffer(b"".join((*parts, bytes(PADDING))), np.uint8)
            yield columns(buffer, bodies), each.next_offset
            parts, bodies, size = [], [], 0
