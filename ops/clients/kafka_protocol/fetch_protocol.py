"""Fetch of many partitions at once: its requests, and its responses read from a connection as they
arrive.

Version 13 names topics by their ids, so that a topic that was deleted and created again is not
taken for the one before, and has the broker compare the epoch of what was fetched last with its log
(KIP-595); 11 names them by their names, and is what brokers before 3.1 have. A response is never
held but for the batches of one partition at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection
from connectctl.ops.kafka.record_batch_decoder import PADDING
from connectctl.ops.kafka.topic_partition import TopicPartition

BY_NAME, BY_ID = 11, 13
_TOP = struct.Struct(">ihi")
_NAME = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_BYTE = struct.Struct(">B")
_PART = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_DIVERGING = 0


class Position(NamedTuple):
    """Where a partition is read: the next offset, and the leader epoch of the batch before it, -1
    where none is known.
    """

    offset: int
    epoch: int = -1


class FetchLimits(NamedTuple):
    """How much a response holds: bytes in all, and of a partition. Either has one batch at least,
    however large.

    ``wait_ms`` is how long the broker waits for the first record.
    """

    most: int
    of_a_partition: int
    wait_ms: int


class PartitionData(NamedTuple):
    """What a response has of a partition: an error's ``code``, its last stable offset or, with
    read_uncommitted, its high watermark as ``end``, the ``first`` offset of its log; and ``size``
    bytes of batches in ``data``, with the producers and first offsets of the transactions among
    them that were aborted. ``diverged``: the log no longer has what was fetched.
    """

    place: TopicPartition
    code: int
    end: int
    first: int
    data: Any = None
    size: int = 0
    aborted: Sequence[tuple[int, int]] = ()
    diverged: bool = False


def fetch_request(
    positions: Mapping[TopicPartition, Position],
    ids: Mapping[str, UUID],
    limits: FetchLimits,
    *,
    committed: bool,
) -> Any:
    """Fetch of these partitions, in their order; by the topics' ``ids`` where there are any."""
    from kafka.protocol.consumer.fetch import FetchRequest

    version = BY_ID if ids else BY_NAME
    of_topic: dict[str, list[Any]] = {}
    part = FetchRequest.FetchTopic.FetchPartition
    for (topic, partition), (offset, epoch) in positions.items():
        wanted = part(
            partition=partition,
            fetch_offset=offset,
            last_fetched_epoch=epoch if ids else -1,
            partition_max_bytes=limits.of_a_partition,
        )
        of_topic.setdefault(topic, []).append(wanted)
    named = [
        FetchRequest.FetchTopic(
            **({"topic_id": ids[topic]} if ids else {"topic": topic}), partitions=parts
        )
        for topic, parts in of_topic.items()
    ]
    return FetchRequest[version](
        max_wait_ms=limits.wait_ms,
        min_bytes=1,
        max_bytes=limits.most,
        isolation_level=int(committed),
        topics=named,
    )


def read_response(
    connection: RawConnection, ids: Mapping[str, UUID], *, committed: bool
) -> tuple[int, Iterator[PartitionData]]:
    """An error code of the whole, and what the response has of each partition, which has to be
    taken to its end.
    """
    layout = _Compact(connection) if ids else _Plain(connection)
    layout.begin()
    _, code, _ = connection.take(_TOP)
    return code, _partitions(
        connection, layout, {id_: topic for topic, id_ in ids.items()}, committed=committed
    )


def _partitions(
    connection: RawConnection, layout: _Plain, names: Mapping[UUID, str], *, committed: bool
) -> Iterator[PartitionData]:
    import numpy as np

    for _ in range(layout.count()):
        topic = layout.topic(names)
        for _ in range(layout.count()):
            partition, code, high, stable, first = connection.take(_PART)
            aborted = []
            for _ in range(layout.count()):
                aborted.append(connection.take(_ABORTED))
                layout.tags()
            connection.take(_COUNT)  # the preferred replica, of which there is none without a rack
            size = layout.count()
            data = np.empty(size + PADDING, np.uint8) if size else None
            if data is not None:
                connection.into(data.data[:size])
            diverged = _DIVERGING in layout.tags()
            end = stable if committed else high
            yield PartitionData(
                TopicPartition(topic, partition), code, end, first, data, size, aborted, diverged
            )
        layout.tags()
    layout.tags()
    connection.skip(connection.left)


class _Plain:
    """Lengths and names as versions before 12 have them."""

    def __init__(self, connection: RawConnection):
        self._connection = connection

    def begin(self) -> None:
        """What lies between the header of a response and its first field."""

    def count(self) -> int:
        """A length; 0 for null, too."""
        return max(0, int(self._connection.take(_COUNT)[0]))

    def topic(self, names: Mapping[UUID, str]) -> str:
        """The name of a topic."""
        return self._connection.bytes(self._connection.take(_NAME)[0]).decode()

    def tags(self) -> set[int]:
        """The numbers of the tagged fields of what was read, which ends behind them."""
        return set()


class _Compact(_Plain):
    """The same of flexible versions (KIP-482)."""

    def begin(self) -> None:
        self.tags()

    def count(self) -> int:
        return max(0, self._number() - 1)

    def topic(self, names: Mapping[UUID, str]) -> str:
        id_ = UUID(bytes=self._connection.bytes(16))
        if id_ not in names:
            raise Broken("the answer has a topic that was not asked for")
        return names[id_]

    def tags(self) -> set[int]:
        found = set()
        for _ in range(self._number()):
            found.add(self._number())
            self._connection.skip(self._number())
        return found

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = int(self._connection.take(_BYTE)[0])
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
