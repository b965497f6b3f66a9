"""Produce requests of a transactional producer: several in flight to each leader, with their
answers in order.

Where a Produce adds its partitions to the transaction (transaction version 2), the first batches of
several partitions go in one request, for which their leader sends one request to the coordinator.
Nothing more is sent to these partitions before the answer. Only a first batch can be refused with
CONCURRENT_TRANSACTIONS: the coordinator is still ending the previous transaction, and nothing was
written. So the batch can be sent again, and no batch precedes it. With the older requests, the same
holds for the very first batch of a partition, for which the leader of a new topic may not be ready.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.direct_requests import Connections
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection
from connectctl.ops.clients.kafka_protocol.refusals import Named, Refusal, check, pauses
from connectctl.ops.clients.kafka_protocol.transaction_requests import NEW_PRODUCE, OLD_PRODUCE
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.varints import unsigned_varint

KEY = 0
FLEXIBLE = 9
"""The first version with compact lengths and tags (KIP-482)."""
Parts = Sequence[bytes | memoryview]
_SHORT, _INT, _ACKS_AND_TIMEOUT = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">hi")
_ALL = -1
"""``acks``."""
MOST_ON_THE_WAY = 4
"""The maximum number of unanswered Produce requests on a connection."""
NEW_TOPIC_PATIENCE = 1.0
"""Seconds for a broker to learn that it leads a partition of a new topic."""
_NOT_YET = (Code.NOT_LEADER_OR_FOLLOWER, Code.UNKNOWN_TOPIC_OR_PARTITION)
OPENING_BYTES = 1_000_000
"""Bytes of first batches that are collected for one request to their leader."""


@dataclass(frozen=True)
class _Batch:
    """A batch for ``topic_partition``. ``opens``: it is the first one there, and is sent again if
    the coordinator is busy.
    """

    topic_partition: TopicPartition
    named: Named | None
    parts: Parts
    count: int
    opens: bool = False


@dataclass
class _Sent:
    """A Produce without an answer. ``began`` is the time of its first sending; it may be repeated
    for ``patience`` seconds.
    """

    batches: list[_Batch]
    began: float
    patience: float
    number: int = 0
    pauses: Iterator[float] = field(default_factory=pauses)

    def is_repeated(self, code: int) -> bool:
        """Return whether first batches that were refused with ``code`` are sent again. A leader
        that has written one nevertheless recognises it by its sequence number.
        """
        waited = time.monotonic() - self.began
        if code in _NOT_YET:
            return waited < min(NEW_TOPIC_PATIENCE, self.patience)
        return code == Code.CONCURRENT_TRANSACTIONS and waited < self.patience


class BatchSender:
    """Sends batches for the transactional id ``id_``. ``timeout`` in seconds bounds every wait for
    an answer.
    """

    def __init__(self, wire: KafkaProtocolClient, id_: str, timeout: float):
        self._id, self._timeout = id_, timeout
        self._connections = Connections(wire, timeout)
        self._unanswered: dict[int, deque[_Sent]] = defaultdict(deque)
        self._opening: set[TopicPartition] = set()
        self._waiting: dict[int, list[_Batch]] = defaultdict(list)
        """First batches that were not sent yet, by leader."""
        self.opened: set[TopicPartition] = set()
        """Partitions with an acknowledged batch; with ``adds_partitions``, a batch of this
        transaction.
        """
        self.adds_partitions = False
        """True if a Produce adds its partition to the transaction."""

    def close(self) -> None:
        self._connections.close()

    def begin(self) -> None:
        """Begin another transaction, after all answers of the previous one."""
        self._opening.clear()
        self._waiting.clear()
        if self.adds_partitions:
            self.opened.clear()

    def send(
        self,
        leader: int,
        topic_partition: TopicPartition,
        batch: Parts,
        named: Named | None = None,
        count: int = 0,
    ) -> None:
        """Produce ``batch``, in parts, of ``count`` records. Wait only for answers that must
        precede it.
        """
        while topic_partition in self._opening:
            self._open(leader)
            self._await_answer(leader)
        if topic_partition in self.opened:
            self._transmit(leader, [_Batch(topic_partition, named, batch, count)])
            return
        self._opening.add(topic_partition)
        self._waiting[leader].append(_Batch(topic_partition, named, batch, count, opens=True))
        if sum(len(part) for each in self._waiting[leader] for part in each.parts) >= OPENING_BYTES:
            self._open(leader)

    def flush(self) -> None:
        """Wait until everything that was sent is acknowledged. The limit of each answer is one
        time-out.
        """
        for leader in list(self._waiting):
            self._open(leader)
        for leader, unanswered in self._unanswered.items():
            while unanswered:
                self._await_answer(leader)

    def settle(self) -> None:
        """Wait until everything that was sent is answered, successfully or not. Batches that were
        not sent yet are discarded.
        """
        self._waiting.clear()
        while any(self._unanswered.values()):
            with suppress(Refusal):
                self.flush()

    def drop_unanswered(self) -> None:
        """Stop waiting for answers: close the connections with unanswered requests."""
        self._waiting.clear()
        for leader, unanswered in self._unanswered.items():
            if unanswered:
                self._drop(leader)

    def _drop(self, leader: int) -> None:
        """Close the connection to ``leader``, and forget its unanswered requests."""
        self._unanswered[leader].clear()
        self._connections.drop(leader)

    def _open(self, leader: int) -> None:
        """Send the first batches that were collected for ``leader``."""
        if batches := self._waiting.pop(leader, None):
            self._transmit(leader, batches)

    def _transmit(self, leader: int, batches: list[_Batch]) -> None:
        """Send ``batches`` when the connection to ``leader`` can take another request."""
        unanswered = self._unanswered[leader]
        connection = self._connections.to(leader, in_use=bool(unanswered))
        while unanswered and (connection.wants_quiet or len(unanswered) >= MOST_ON_THE_WAY):
            self._await_answer(leader)
        self._post(connection, leader, _Sent(batches, time.monotonic(), self._timeout))

    def _post(self, connection: RawConnection, leader: int, sent: _Sent) -> None:
        version = NEW_PRODUCE if self.adds_partitions else OLD_PRODUCE
        batches = sorted(
            ((each.topic_partition, each.parts) for each in sent.batches), key=itemgetter(0)
        )
        parts = produce_parts(version, self._id, int(self._timeout * 1000), batches)
        try:
            sent.number = connection.send_parts(KEY, version, parts, flexible=version >= FLEXIBLE)
        except OSError:
            self._drop(leader)
            raise
        self._connections.used(leader)
        self._unanswered[leader].append(sent)

    def _await_answer(self, leader: int) -> None:
        """Read the answer to the oldest unanswered request. Raises for the first batch that was
        refused.
        """
        connection, sent = self._connections.to(leader, in_use=True), self._unanswered[leader][0]
        connection.await_answer(sent.number)
        parts, throttled = self._parts(connection.bytes(connection.left))
        connection.allow(throttled)
        self._unanswered[leader].popleft()
        if missing := [
            each.topic_partition for each in sent.batches if each.topic_partition not in parts
        ]:
            raise Broken(f"the answer lacks {missing[0].topic}-{missing[0].partition}")
        busy, refused = [], []
        for each in sent.batches:
            code = parts[each.topic_partition].error_code
            if not code:
                self.opened.add(each.topic_partition)
            elif each.opens and sent.is_repeated(code):
                busy.append(each)
                continue
            else:
                refused.append(each)
            self._opening.discard(each.topic_partition)
        if refused:
            self._opening.difference_update(each.topic_partition for each in busy)
            _raise(refused[0], parts[refused[0].topic_partition])
        if busy:
            time.sleep(next(sent.pauses))
            sent.batches = busy
            self._post(connection, leader, sent)

    def _parts(self, answer: bytes) -> tuple[dict[TopicPartition, Any], float]:
        """Return the answer for each partition, and the throttle time in seconds (a quota)."""
        from kafka.protocol.producer import ProduceResponse

        if self.adds_partitions:  # whose answers have a byte of header: there are no tags
            found = ProduceResponse[NEW_PRODUCE].decode(answer[1:])
        else:
            found = ProduceResponse[OLD_PRODUCE].decode(answer)
        parts = {
            TopicPartition(t.name, part.index): part
            for t in found.responses
            for part in t.partition_responses
        }
        return parts, found.throttle_time_ms / 1000


def _raise(batch: _Batch, part: Any) -> None:
    try:
        check(part.error_code)
    except Refusal as e:
        faults = part.record_errors
        record = faults[0].batch_index if faults else None
        message = faults[0].batch_index_error_message if faults else part.error_message
        topic = batch.topic_partition.topic
        raise Refusal(
            e.code, batch.named, record, message, topic if batch.count == 1 else None, topic
        ) from e


def produce_parts(
    version: int, id_: str, timeout_ms: int, batches: Iterable[tuple[TopicPartition, Parts]]
) -> Parts:
    """Return the body of a Produce with acks=all, for the transactional id ``id_``: one batch for
    each partition, topic by topic.

    The body is in parts, so that batches are not copied into a request.
    """
    flexible = version >= FLEXIBLE
    tags = b"\0" if flexible else b""

    def length(number: int) -> bytes:
        return unsigned_varint(number + 1) if flexible else _INT.pack(number)

    def text(name: str) -> bytes:
        encoded = name.encode()
        return (length(len(encoded)) if flexible else _SHORT.pack(len(encoded))) + encoded

    topics = [
        (topic, list(subset)) for topic, subset in groupby(batches, lambda each: each[0].topic)
    ]
    parts: list[bytes | memoryview] = [
        text(id_) + _ACKS_AND_TIMEOUT.pack(_ALL, timeout_ms) + length(len(topics))
    ]
    for topic, subset in topics:
        parts.append(text(topic) + length(len(subset)))
        for partition, batch in subset:
            parts += (_INT.pack(partition.partition) + length(sum(map(len, batch))), *batch, tags)
        parts.append(tags)
    return [*parts, tags]
