"""Reads partitions of a Kafka cluster in the batches of its log, through raw Fetch, with bounded
memory.

Each leader has one request in flight: the next one is sent when a response was read, so that the
broker prepares it meanwhile. One response is held at a time; those of other leaders wait in their
sockets. A request names all partitions of its leader, first those without data for the longest
time, because a full response serves the first ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from connectctl.ops.clients.kafka_protocol import fetch_protocol
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient, known_code
from connectctl.ops.clients.kafka_protocol.fetch_protocol import (
    FetchLimits,
    PartitionData,
    Position,
)
from connectctl.ops.clients.kafka_protocol.leaders import TopicLayouts, topic_layouts
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection, readable
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fetched_batches import BatchAt, CommittedBatches
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import describe_topic, not_authorized, read_topic

FETCH_BYTES = 8 << 20
"""The maximum size of a response, unless it has a larger batch."""
WAIT_MS = 100
"""The time that a broker waits for the first record."""
ROOM = 64 << 10
"""Bytes of a connection's buffer: what is larger goes past it."""
PAUSE = 0.2
"""Seconds before a partition that its leader refused is requested again."""
GONE_AFTER = 3.0
"""Seconds for which metadata has to lack a topic: brokers learn of topics one after the other."""
_OUT_OF_RANGE = 1
_MOVING = {-1, 3, 5, 6, 7, 9, 13, 56, 74, 75, 78, 100, 103, 106}


class OutOfRange(Exception):
    """The leader of ``topic_partition`` does not have ``offset``, or has another record there than
    the one that was fetched last.
    """

    def __init__(
        self, topic_partition: TopicPartition, offset: int, *, diverged: bool = False
    ) -> None:
        super().__init__(f"Offset {offset} of {topic_partition} is out of range")
        self.topic_partition, self.offset, self.diverged = topic_partition, offset, diverged


class TopicGone(Exception):
    """The topic does not exist any more, or was deleted and created again (``replaced``)."""

    def __init__(self, topic: str, *, replaced: bool) -> None:
        super().__init__(topic)
        self.topic, self.replaced = topic, replaced


@dataclass(frozen=True, slots=True)
class FetchedPart:
    """Committed batches of a partition in ``data``; records before the offset ``wanted`` were not
    requested.
    """

    topic_partition: TopicPartition
    data: Any
    batches: list[BatchAt]
    wanted: int


class BatchFetcher:
    """``properties`` are librdkafka's; ``timeout`` in seconds bounds every wait. ``committed``: up
    to the last stable offset, without what was aborted. Raises ``Unreachable``, ``NotAuthorized``,
    ``OutOfRange`` and ``TopicGone``, after which it is good for nothing but to be closed.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float, committed: bool):
        self._wire = KafkaProtocolClient(properties, timeout=timeout)
        most = min(FETCH_BYTES, int(properties.get("fetch.max.bytes", FETCH_BYTES)))
        of_one = min(most, int(properties.get("max.partition.fetch.bytes", most)))
        self._limits = FetchLimits(most, of_one, int(properties.get("fetch.wait.max.ms", WAIT_MS)))
        self._timeout, self._committed = timeout, committed
        self._positions: dict[TopicPartition, Position] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._known: dict[str, UUID] = {}
        """The ids that topics had at the beginning, of which ``_ids`` are those to fetch by: all or
        none.
        """
        self._ids: dict[str, UUID] = {}
        self._connections: dict[int, RawConnection] = {}
        self._asked: dict[int, tuple[int, float]] = {}
        """The number of each leader's request, and when it was sent."""
        self._failing: dict[TopicPartition, tuple[float, str]] = {}
        """Partitions of which no leader has given anything: since when, and why."""
        self._unled: set[TopicPartition] = set()
        """Partitions whose leader is looked up next."""
        self._missing: dict[str, float] = {}
        self._looked = 0.0

    def close(self) -> None:
        while self._connections:
            with suppress(ConnectctlError, OSError):
                self._connections.popitem()[1].close()
        self._wire.close()

    def begin(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets on."""
        from kafka.protocol.consumer.fetch import FetchRequest

        self._positions = {partition: Position(offset) for partition, offset in starts.items()}
        self._failing = dict.fromkeys(
            self._positions, (time.monotonic(), "its leader is not known")
        )
        self._unled = set(self._positions)
        newest = self._wire.newest(FetchRequest)
        if newest < fetch_protocol.BY_NAME:
            raise ConnectctlError(
                "The source's brokers are too old for batches to be copied unopened",
                why="they do not have Fetch version 11 (Kafka 2.3)",
                next_step="Set copy.batches to opened.",
                code="unsupported",
            )
        found = topic_layouts(self._wire, sorted({partition.topic for partition in starts}))
        self._known = dict(found.ids)
        if newest >= fetch_protocol.BY_ID and len(self._known) == len(
            {partition.topic for partition in starts}
        ):
            self._ids = self._known

    def position(self, topic_partition: TopicPartition) -> int:
        return self._positions[topic_partition].offset

    @property
    def has_more(self) -> bool:
        """Return whether there is or may be more to read: an end was not reached yet, or a leader
        does not respond. A new leader may not know yet how far its log is replicated: then its end
        is before what was read.
        """
        return bool(self._failing) or any(
            position.offset != self._ends.get(partition)
            for partition, position in self._positions.items()
        )

    @property
    def lag(self) -> int | None:
        """Return the number of offsets to read, None if unknown for a partition."""
        if len(self._ends) < len(self._positions):
            return None
        return sum(
            max(0, end - self._positions[partition].offset) for partition, end in self._ends.items()
        )

    def fetch(self, wait: float) -> list[FetchedPart]:
        """The next batches, none where none come within ``wait`` seconds."""
        self._look_up()
        for leader in {*self._leaders.values()} - self._asked.keys():
            self._ask(leader)
        if not self._asked:
            time.sleep(min(wait, PAUSE))
            return []
        ready = readable([self._connections[leader] for leader in self._asked], wait)
        if not ready:
            for leader in [
                each for each, (_, since) in self._asked.items() if self._is_late(since)
            ]:
                self._lose(leader, f"no answer for {self._timeout:g} s")
            return []
        leader = min(
            (each for each in self._asked if self._connections[each] in ready),
            key=lambda each: self._asked[each][1],
        )
        found = self._answer(leader)
        self._ask(leader)
        return found

    def _is_late(self, since: float) -> bool:
        return time.monotonic() - since > self._timeout

    def _ask(self, leader: int) -> None:
        positions = {
            partition: position
            for partition, position in self._positions.items()
            if self._leaders.get(partition) == leader and partition not in self._unled
        }
        if not positions:
            return
        try:
            if leader not in self._connections:
                self._connections[leader] = RawConnection(
                    self._wire, leader, self._timeout, room=ROOM
                )
            request = fetch_protocol.fetch_request(
                positions, self._ids, self._limits, committed=self._committed
            )
            self._asked[leader] = self._connections[leader].send(request), time.monotonic()
        except (OSError, Unreachable) as e:
            self._lose(leader, str(e) or type(e).__name__)

    def _answer(self, leader: int) -> list[FetchedPart]:
        connection, (number, _) = self._connections[leader], self._asked.pop(leader)
        found: list[FetchedPart] = []
        try:
            connection.await_answer(number)
            code, parts = fetch_protocol.read_response(
                connection, self._ids, committed=self._committed
            )
            for part in parts:
                if (fetched := self._fetched_part(part)) is not None:
                    found.append(fetched)
            if code:
                raise Broken(known_code(code).name)
        except OSError as e:
            self._lose(leader, str(e) or type(e).__name__)
        return found

    def _fetched_part(self, part: PartitionData) -> FetchedPart | None:
        partition, offset = part.topic_partition, self._positions[part.topic_partition].offset
        if part.code == _OUT_OF_RANGE or part.diverged:
            raise OutOfRange(partition, offset, diverged=part.diverged)
        if part.code == Code.TOPIC_AUTHORIZATION_FAILED:
            raise not_authorized(
                f"Not authorized to read the topic {partition.topic}", read_topic(partition.topic)
            )
        if part.code in _MOVING:
            self._refuse(partition, known_code(part.code).name)
            return None
        if part.code:
            raise Unreachable(
                f"{partition} cannot be read",
                why=f"error {part.code}: {known_code(part.code).name}",
            )
        self._failing.pop(partition, None)
        self._ends[partition] = part.end
        if part.data is None:
            return None
        committed = CommittedBatches(part.data, part.size, part.aborted, old=True)
        batches = list(committed)
        if committed.next_offset is None:
            # a batch that is cut off: it comes as a whole when the partition is the first of a
            # response
            return None
        # What had something goes to the end, so that a full response serves the others.
        del self._positions[partition]
        self._positions[partition] = Position(max(offset, committed.next_offset), committed.epoch)
        return FetchedPart(partition, part.data, batches, offset) if batches else None

    def _refuse(self, topic_partition: TopicPartition, why: str) -> None:
        since, _ = self._failing.get(topic_partition, (time.monotonic(), ""))
        self._failing[topic_partition] = since, why
        self._unled.add(topic_partition)

    def _lose(self, leader: int, why: str) -> None:
        """Let go of a leader's connection: what it has answered in part is good for nothing."""
        self._asked.pop(leader, None)
        if (connection := self._connections.pop(leader, None)) is not None:
            with suppress(ConnectctlError, OSError):
                connection.close()
        for partition, known in self._leaders.items():
            if known == leader:
                self._refuse(partition, why)

    def _look_up(self) -> None:
        """Find the leaders that are not known, after a pause. Raises ``Unreachable`` for what fails
        for too long.
        """
        for partition, (since, why) in self._failing.items():
            if self._is_late(since):
                raise Unreachable(
                    f"{partition} cannot be read",
                    why=why,
                    next_step="Check the brokers, and try again.",
                )
        now = time.monotonic()
        if not self._unled or now - self._looked < PAUSE:
            return
        self._looked = now
        topics = sorted({partition.topic for partition in self._unled})
        try:
            found = topic_layouts(self._wire, topics)
        except Unreachable:
            return
        for topic in topics:
            self._check(topic, found)
        known = {
            partition: found.leaders[partition]
            for partition in self._unled
            if partition in found.leaders
        }
        self._leaders |= known
        self._unled -= known.keys()

    def _check(self, topic: str, found: TopicLayouts) -> None:
        """Raises ``TopicGone`` for a topic that is not there any more, ``NotAuthorized`` where it
        may not be described.
        """
        if topic in found.forbidden:
            raise not_authorized(
                f"Not authorized to describe the topic {topic}", describe_topic(topic)
            )
        if topic not in found.gone:
            self._missing.pop(topic, None)
        elif time.monotonic() - self._missing.setdefault(topic, time.monotonic()) > GONE_AFTER:
            raise TopicGone(topic, replaced=False)
        id_ = found.ids.get(topic)
        if id_ is not None and id_ != self._known.setdefault(topic, id_):
            raise TopicGone(topic, replaced=True)
