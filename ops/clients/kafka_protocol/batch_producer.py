"""A transactional producer of whole record batches, through kafka-python's connections.

It never repeats a request that may have been performed; only a coordinator that was busy is asked again. After any failure
it is good for nothing but to be closed, and whoever holds it initialises another one. What is left out by that is what makes
producers large: retries, reordering, recovery of sequence numbers. Requests are those of clients before KIP-890's second
part, which every broker from 2.5 to 4.x takes: partitions are added to the transaction before they are written to.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import Leaders, by_topic
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection
from connectctl.ops.clients.kafka_protocol.transaction_offsets import (
    ASK_AGAIN,
    TXN_OFFSET_COMMIT,
    add_offsets_request,
    codes_of,
    txn_offset_commit_request,
)
from connectctl.ops.clients.kafka_protocol.transactions import GROUP, find_request, init_request
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.sentinels import number_of
from connectctl.ops.kafka.transactions import Place

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.group_coordinator import CommittedOffset
    from connectctl.ops.kafka.group_membership import GroupMembership

PRODUCE = 8
"""The newest Produce whose fields have fixed lengths; Kafka 2.4 has it."""
MOST_ON_THE_WAY = 4
"""Produce requests on a connection that are not answered yet."""
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.5
"""Seconds before a coordinator that is busy with the transaction before, or loading, is asked again: longer each time."""
TOPIC_PAUSE = 0.1
_NOT_ATTEMPTED = 55
"""What a partition has that is as good as its neighbours, where one of those was refused."""
_LAST_SEQUENCE = 0x7FFFFFFF


Named = Callable[[int], str]
"""Names a record of a batch, by its number in it."""


class Refusal(Exception):
    """A broker's error ``code``, as Kafka numbers it. Of a batch: who can name its records (``named``), the number of the
    one that was at fault and what the broker said, where it did.
    """

    def __init__(self, code: int, named: Named | None = None, record: int | None = None, said: str | None = None):
        super().__init__(code)
        self.code, self.named, self.record, self.said = code, named, record, said


class BatchProducer:
    """One producer of the transactional id ``id_``. ``properties`` are librdkafka's; ``timeout`` in seconds bounds every
    wait for an answer. Raises ``Refusal``, ``Unreachable``, ``NotAuthorized`` and ``OSError``.
    """

    def __init__(self, properties: Mapping[str, Any], id_: str, *, transaction_timeout_ms: int, timeout: float):
        self._wire = KafkaProtocolClient(properties, timeout=timeout)
        self._timeout, self._timeout_ms = timeout, transaction_timeout_ms
        self._leaders: dict[Place, int | Code] = {}
        self._counts: dict[str, int] = {}
        self._added: set[Place] = set()
        self._groups: set[str] = set()
        """Consumer groups whose offsets are in the transaction."""
        self._sequences: dict[Place, int] = defaultdict(int)
        self._connections: dict[int, RawConnection] = {}
        self._unanswered: dict[int, deque[tuple[int, Named | None]]] = defaultdict(deque)
        self._coordinator = -1
        self._who = (-1, -1)
        self.id = id_

    def close(self) -> None:
        """Close the connections. A transaction that is open stays so, until the id is initialised again or it expires."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._wire.close()

    def initialise(self, patience: float) -> None:
        """InitProducerId: fence older producers of the id, and wait up to ``patience`` seconds until they are ended."""
        deadline = time.monotonic() + patience
        for pause in _pauses():
            try:
                self._coordinator = self._find()
                answer = self._ask("initialise its producer", init_request(self.id, self._timeout_ms))
                _check(answer.error_code)
                who, epoch = number_of(answer.producer_id), number_of(answer.producer_epoch)
                if who is None or epoch is None:
                    raise Refusal(Code.COORDINATOR_NOT_AVAILABLE)
                self._who = (who, epoch)
                return
            except Refusal as e:
                if e.code not in ASK_AGAIN or time.monotonic() > deadline:
                    raise
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
            time.sleep(pause)

    def partitions(self, topic: str, patience: float) -> int:
        """How many partitions ``topic`` has, all of which have a leader. Raises ``Refusal`` where that takes too long."""
        deadline = time.monotonic() + patience
        while topic not in self._counts:
            found = Leaders(self._wire).leaders([topic], create=True)
            codes = [leader for leader in found.values() if isinstance(leader, Code)]
            numbers = sorted(place.partition for place in found)
            if found and not codes and numbers == list(range(len(numbers))):
                self._leaders |= found
                self._counts[topic] = len(found)
            elif time.monotonic() > deadline:
                raise Refusal(codes[0] if codes else Code.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                time.sleep(TOPIC_PAUSE)
        return self._counts[topic]

    def add(self, places: Collection[Place]) -> None:
        """AddPartitionsToTxn, for those that are not in the transaction yet."""
        from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest

        missing = [place for place in places if place not in self._added]
        if not missing:
            return
        topic_of = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self._who[0],
            v3_and_below_producer_epoch=self._who[1],
            v3_and_below_topics=[topic_of(name=name, partitions=each) for name, each in by_topic(missing).items()],
            max_version=3,
        )

        def ask() -> set[int]:
            answer = self._ask("add partitions to its transaction", request)
            parts = [p for t in answer.results_by_topic_v3_and_below for p in t.results_by_partition]
            return {p.partition_error_code for p in parts} - {Code.NONE, _NOT_ATTEMPTED}

        self._insist(ask)
        self._added.update(missing)

    def send(
        self, place: Place, records: int, made: Callable[[ProducerState], bytes], named: Named | None = None
    ) -> None:
        """Produce the batch of so many ``records`` that ``made`` gives for its stamp, to a place that was added."""
        sequence = self._sequences[place]
        self._sequences[place] = (sequence + records) & _LAST_SEQUENCE
        batch = made(ProducerState(*self._who, sequence))
        leader = self._leaders[place]
        if leader not in self._connections:
            self._connections[leader] = RawConnection(self._wire, leader, self._timeout)
        connection, unanswered = self._connections[leader], self._unanswered[leader]
        while unanswered and (connection.wants_quiet or len(unanswered) >= MOST_ON_THE_WAY):
            self._await_answer(leader)
        unanswered.append((connection.send(self._produce(place, batch)), named))

    def flush(self) -> None:
        """Wait until everything that was sent is acknowledged."""
        for leader, unanswered in self._unanswered.items():
            while unanswered:
                self._await_answer(leader)

    def settle(self) -> None:
        """Wait until everything that was sent is answered, whatever the answers are."""
        while any(self._unanswered.values()):
            with suppress(Refusal):
                self.flush()

    def send_group_offsets(
        self, member: GroupMembership, offsets: Mapping[Place, CommittedOffset], patience: float
    ) -> None:
        """AddOffsetsToTxn and TxnOffsetCommit: ``offsets`` of the group of ``member``. Raises ``Refusal`` with
        ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID where another member has its partitions. The
        group's coordinator is asked for ``patience`` seconds while it moves.
        """
        if member.group not in self._groups:
            add = add_offsets_request(self.id, self._who, member.group)
            self._insist(lambda: {self._ask("add a consumer group to its transaction", add).error_code})
            self._groups.add(member.group)
        request = txn_offset_commit_request(self.id, self._who, member, offsets)
        if self._wire.newest(request) < TXN_OFFSET_COMMIT:
            raise Refusal(Code.UNSUPPORTED_VERSION)
        deadline = time.monotonic() + patience
        for pause in _pauses():
            codes = self._give(member.group, request)
            if not codes or not codes <= ASK_AGAIN or time.monotonic() > deadline:
                break
            time.sleep(pause)
        _check(*codes)

    def _give(self, group: str, request: Any) -> set[int]:
        """What the coordinator of ``group`` has against ``request``."""
        found = self._ask("find the coordinator of a group", find_request(group, GROUP), anywhere=True)
        if found.error_code:
            return {found.error_code}
        doing = "commit offsets of a consumer group"
        return codes_of(self._wire.run(doing, lambda: self._wire.ask(request, found.node_id)))

    def end(self, *, commit: bool) -> None:
        """EndTxn, if anything was added. It is over when the coordinator has decided."""
        from kafka.protocol.producer.transaction import EndTxnRequest

        if not self._added and not self._groups:
            return
        producer, epoch = self._who
        request = EndTxnRequest(
            transactional_id=self.id, producer_id=producer, producer_epoch=epoch, committed=commit, max_version=4
        )
        self._insist(lambda: {self._ask("end its transaction", request).error_code})
        self._added.clear()
        self._groups.clear()

    def _insist(self, ask: Callable[[], set[int]]) -> None:
        """Ask again while the coordinator is busy: markers are still being written, or it is about to fence us. It has
        performed nothing of what it refused with that. Raises ``Refusal`` for any other code, and when time is up.
        """
        deadline = time.monotonic() + self._timeout
        for pause in _pauses():
            codes = ask()
            if codes != {Code.CONCURRENT_TRANSACTIONS} or time.monotonic() > deadline:
                break
            time.sleep(pause)
        _check(*codes)

    def _find(self) -> int:
        answer = self._ask("find its coordinator", find_request(self.id), anywhere=True)
        _check(answer.error_code)
        coordinator = number_of(answer.node_id)
        if coordinator is None:
            raise Refusal(Code.COORDINATOR_NOT_AVAILABLE)
        return coordinator

    def _ask(self, doing: str, request: Any, *, anywhere: bool = False) -> Any:
        broker = None if anywhere else self._coordinator
        return self._wire.run(doing, lambda: self._wire.ask(request, broker))

    def _produce(self, place: Place, batch: bytes) -> Any:
        from kafka.protocol.producer import ProduceRequest

        topic = ProduceRequest.TopicProduceData
        part = topic.PartitionProduceData(index=place.partition, records=batch)
        return ProduceRequest[PRODUCE](
            transactional_id=self.id,
            acks=-1,
            timeout_ms=int(self._timeout * 1000),
            topic_data=[topic(name=place.topic, partition_data=[part])],
        )

    def _await_answer(self, leader: int) -> None:
        """Read the oldest answer that is missing."""
        from kafka.protocol.producer import ProduceResponse

        connection = self._connections[leader]
        number, named = self._unanswered[leader].popleft()
        connection.await_answer(number)
        answer = ProduceResponse[PRODUCE].decode(connection.bytes(connection.left))
        parts = [part for topic in answer.responses for part in topic.partition_responses]
        if not parts:
            raise Broken("the answer names no partition")
        try:
            _check(*(part.error_code for part in parts))
        except Refusal as e:
            faults = [fault for part in parts for fault in part.record_errors]
            record = faults[0].batch_index if faults else None
            said = faults[0].batch_index_error_message if faults else parts[0].error_message
            raise Refusal(e.code, named, record, said) from e


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


def _check(*codes: int) -> None:
    for code in codes:
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION:
            # Its metadata had it: a broker hears of a new topic, or of its leadership, after others.
            raise Broken("a broker does not know a partition, or not yet")
        if code:
            raise Refusal(code)
