"""Batch headers of a partition by raw Fetch: committed, aborted or open, compressed or not, with
the control batches.

No client library shows markers, producers or sequences. Fetch version 11 is the newest that names
topics and has fixed lengths; every broker from 2.3 to 4.x speaks it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient, known_code
from connectctl.ops.clients.kafka_protocol.fetch_protocol import (
    BY_NAME,
    FetchLimits,
    PartitionData,
    Position,
    fetch_request,
    read_response,
)
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.batch_headers import (
    AFTER_LENGTH,
    CONTROL,
    HEADER,
    LENGTH,
    Batch,
    Marker,
    marker_of,
)
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import not_authorized, read_topic

FETCH_BYTES = 32 << 20
"""The requested size of a response. It is not held in memory, so that a large one only saves round
trips.
"""
WAIT_MS = 500
"""The time that a broker waits for the first record."""
PAUSE = 0.2
"""Seconds before a partition whose leader moves is asked about again."""
_MOVING = {Code.NOT_LEADER_OR_FOLLOWER, Code.UNKNOWN_TOPIC_OR_PARTITION, 5, 9, 56, 74, 76, 78}
_OUT_OF_RANGE = 1


class Headers:
    """The headers of one Kafka cluster. ``properties`` are librdkafka's; ``timeout`` in seconds
    bounds every wait.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        self._wire = KafkaProtocolClient(properties, timeout=timeout)
        self._timeout = timeout
        self._connections: dict[int, RawConnection] = {}
        self._leaders: dict[TopicPartition, int] = {}

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()
        self._wire.close()

    def read(
        self, topic_partition: TopicPartition, start: int, end: int
    ) -> Iterator[Batch | Marker]:
        """Yield the batches and markers of ``topic_partition`` from ``start`` on that begin before
        ``end``, in the order of the log.

        ``end`` is at most the high watermark. The first batch may begin before ``start``. What
        retention removes meanwhile is left out. Raises ``Unreachable``, ``NotAuthorized``.
        """
        deadline = time.monotonic() + self._timeout
        while start < end:
            try:
                for found in self._fetch(topic_partition, start):
                    if found.offset >= end:
                        return
                    start = max(start, found.next_offset)
                    yield found
                    deadline = time.monotonic() + self._timeout
                if time.monotonic() > deadline:
                    raise Unreachable(
                        f"{topic_partition} cannot be read",
                        why=f"no records returned at offset {start} of {end}",
                    )
            except _Start as e:
                start = e.offset
            except (Broken, OSError, _Moved) as e:
                if time.monotonic() > deadline:
                    why = str(e) or type(e).__name__
                    raise Unreachable(
                        f"{topic_partition} cannot be read", why=why, next_step="Try again later."
                    ) from e
                self._forget()
                time.sleep(PAUSE)

    def _forget(self) -> None:
        """Start again with new connections: a connection of which an answer is half read is good
        for nothing.
        """
        self.close()
        self._leaders.clear()

    def _connection(self, topic_partition: TopicPartition) -> RawConnection:
        from kafka.protocol.consumer.fetch import FetchRequest

        if topic_partition not in self._leaders:
            known = Leaders(self._wire).leaders([topic_partition.topic])
            self._leaders |= {
                where: who for where, who in known.items() if not isinstance(who, Code)
            }
        leader = self._leaders.get(topic_partition)
        if leader is None:
            raise _Moved("it has no leader")
        if leader not in self._connections:
            if self._wire.newest(FetchRequest) < BY_NAME:
                raise ConnectctlError(
                    "The brokers are too old to be audited",
                    why="they do not have Fetch version 11 (Kafka 2.3)",
                    code="unsupported",
                )
            self._connections[leader] = RawConnection(self._wire, leader, self._timeout)
        return self._connections[leader]

    def _fetch(self, topic_partition: TopicPartition, offset: int) -> Iterator[Batch | Marker]:
        connection = self._connection(topic_partition)
        connection.ask(request(topic_partition, offset))
        try:
            yield from _walk(connection, topic_partition)
        except GeneratorExit:
            # The reader has enough; the rest of the answer is cheaper to read than a new connection
            # to make.
            connection.skip(connection.left)
            raise
        connection.skip(connection.left)


class _Moved(Exception):
    """The partition has another leader now, or none."""


class _Start(Exception):
    """The log now begins at ``offset``."""

    def __init__(self, offset: int) -> None:
        super().__init__()
        self.offset = offset


def request(
    topic_partition: TopicPartition,
    offset: int,
    most: int = FETCH_BYTES,
    *,
    committed: bool = False,
) -> Any:
    """Return the Fetch request for ``most`` bytes of ``topic_partition``; ``committed``: up to the
    last stable offset, with the aborted transactions.
    """
    return fetch_request(
        {topic_partition: Position(offset)},
        {},
        FetchLimits(most, most, WAIT_MS),
        committed=committed,
    )


def partition_of(
    connection: RawConnection, topic_partition: TopicPartition, *, committed: bool = False
) -> PartitionData:
    """Return the partition of a response, without its batches, which follow on the connection."""
    code, parts = read_response(connection, {}, committed=committed, hold=False)
    found = next(parts, None)
    if code or found is None:
        raise _Moved(known_code(code).name)
    _check(found.code, topic_partition, found.first)
    return found


def _walk(connection: RawConnection, topic_partition: TopicPartition) -> Iterator[Batch | Marker]:
    """Yield the headers in one response. The last batch of it may be cut off: its header is enough."""
    remaining = partition_of(connection, topic_partition).size
    take, skip, header = connection.take, connection.skip, HEADER.size
    while remaining >= header:
        fields = take(HEADER)
        length = fields[1] - AFTER_LENGTH
        remaining -= header
        if fields[3] < 2:
            # An old message is shorter than this header may be; there is nothing in it for an
            # audit.
            yield Batch.old(fields[0])
            rest = fields[1] + LENGTH.size - header
            if rest < 0:
                raise ConnectctlError(
                    f"{topic_partition} has records of Kafka before 0.11", code="unsupported"
                )
        elif fields[5] & CONTROL:
            if remaining < length:
                return
            yield marker_of(fields, connection.bytes(length))
            remaining -= length
            continue
        else:
            yield Batch.of(fields)
            rest = length
        rest = min(rest, remaining)
        skip(rest)
        remaining -= rest


def _check(code: int, topic_partition: TopicPartition, first: int) -> None:
    if code == _OUT_OF_RANGE and first >= 0:
        raise _Start(first)
    if code == Code.TOPIC_AUTHORIZATION_FAILED:
        raise not_authorized(
            f"Not authorized to read the topic {topic_partition.topic}",
            read_topic(topic_partition.topic),
        )
    if code in _MOVING:
        raise _Moved(known_code(code).name)
    if code:
        raise Unreachable(
            f"{topic_partition} cannot be read", why=f"error {code}: {known_code(code).name}"
        )
