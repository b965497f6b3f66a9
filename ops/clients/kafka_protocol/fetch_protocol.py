"""Requests and responses of Fetch. A response is parsed while it arrives.

Version 13 has topic ids: a topic that was deleted and created again is not taken for the earlier
one. It also has the broker compare the leader epoch of the last fetched batch with its log
(KIP-595). Version 11 has topic names; brokers before 3.1 have no newer one. Of a response at most
the batches of one partition are held in memory.
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
    """A position in a partition: the next offset, and the leader epoch of the batch before it, -1
    if unknown.
    """

    offset: int
    epoch: int = -1


class FetchLimits(NamedTuple):
    """The size of a response in bytes, in all and for a partition. Either has at least one batch,
    however large it is.

    ``wait_ms`` is how long the broker waits for the first record.
    """

    most: int
    of_a_partition: int
    wait_ms: int


class PartitionData(NamedTuple):
    """A partition in a response: the ``code`` of an error, the last stable offset or, with
    read_uncommitted, the high watermark as ``end``, the ``first`` offset of its log.

    ``data`` has ``size`` bytes of batches, ``aborted`` the producers and first offsets of aborted
    transactions among them. ``diverged``: the log no longer has what was fetched.
    """

    topic_partition: TopicPartition
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
    """Return the Fetch request for these partitions, in their order; with the topics' ``ids`` if
    given.
    """
    from kafka.protocol.consumer.fetch import FetchRequest

    version = BY_ID if ids else BY_NAME
    of_topic: dict[str, list[Any]] = {}
    part = FetchRequest.FetchTopic.FetchPartition
    for (topic, partition), (offset, epoch) in positions.items():
        fetched = part(
            partition=partition,
            fetch_offset=offset,
            last_fetched_epoch=epoch if ids else -1,
            partition_max_bytes=limits.of_a_partition,
        )
        of_topic.setdefault(topic, []).append(fetched)
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
    connection: RawConnection, ids: Mapping[str, UUID], *, committed: bool, hold: bool = True
) -> tuple[int, Iterator[PartitionData]]:
    """Return the error code of the response, and an iterator over its partitions, which has to be
    read to its end.

    Without ``hold``, the batches of a partition are not read into ``data``: the caller may read
    them from the connection before it takes the next partition.
    """
    layout = _Compact(connection) if ids else _Plain(connection)
    layout.begin()
    _, code, _ = connection.take(_TOP)
    names = {id_: topic for topic, id_ in ids.items()}
    return code, _partitions(connection, layout, names, committed=committed, hold=hold)


def _partitions(
    connection: RawConnection,
    layout: _Plain,
    names: Mapping[UUID, str],
    *,
    committed: bool,
    hold: bool,
) -> Iterator[PartitionData]:
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
            end = stable if committed else high
            found = PartitionData(
                TopicPartition(topic, partition), code, end, first, None, size, aborted
            )
            if not hold:
                after = connection.left - size
                yield found
                connection.skip(connection.left - after)
                layout.tags()
                continue
            data = _batches(connection, size) if size else None
            yield found._replace(data=data, diverged=_DIVERGING in layout.tags())
        layout.tags()
    layout.tags()
    connection.skip(connection.left)


def _batches(connection: RawConnection, size: int) -> Any:
    import numpy as np

    data = np.empty(size + PADDING, np.uint8)
    connection.into(data.data[:size])
    return data


class _Plain:
    """Reads lengths and names as in versions before 12."""

    def __init__(self, connection: RawConnection):
        self._connection = connection

    def begin(self) -> None:
        """Read what is between the header of a response and its first field."""

    def count(self) -> int:
        """Return a length; 0 for null."""
        return max(0, int(self._connection.take(_COUNT)[0]))

    def topic(self, names: Mapping[UUID, str]) -> str:
        """Return the name of a topic."""
        return self._connection.bytes(self._connection.take(_NAME)[0]).decode()

    def tags(self) -> set[int]:
        """Read the tagged fields at the end of a structure, and return their numbers."""
        return set()


class _Compact(_Plain):
    """Reads lengths and names as in flexible versions (KIP-482)."""

    def begin(self) -> None:
        self.tags()

    def count(self) -> int:
        return max(0, self._number() - 1)

    def topic(self, names: Mapping[UUID, str]) -> str:
        id_ = UUID(bytes=self._connection.bytes(16))
        if id_ not in names:
            raise Broken("the response has a topic that was not requested")
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
