"""Ready-made batches: partitions copied from bytes that were made before the clock starts: the
ceiling of ``topiccopy.py`` and ``dataframe.py``.

    python tests/bench/readymade.py [--fetch] BOOTSTRAP SOURCE TARGET PARTITION…

The batches of the source's partitions are read into memory, and become whole Produce requests of
one transaction; then "ready" is written, and a line waited for. From there on nothing is done but
to send them, ``ON_THE_WAY`` at once on one connection, with acks=all, and to commit; then the
seconds that it took are written. All partitions have one leader. ``sent`` runs several of these
beside each other.

With ``--fetch`` the source is fetched, too, into one buffer in which each response overwrites the
one before, and a request is sent when all of its bytes were fetched: what a copy is where a task
has nothing to do but to receive and to send.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from connectctl.ops.clients.kafka_protocol.batch_fetcher import FETCH_BYTES, WAIT_MS, BatchFetcher
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.fetch_protocol import (
    FetchLimits,
    Position,
    fetch_request,
)
from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection
from connectctl.ops.clients.kafka_protocol.transactions import find_request
from connectctl.ops.kafka.batch_rewrite import restamped
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.topic_partition import TopicPartition
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

ON_THE_WAY = 5
TIMEOUT = 60.0
PRODUCE = 8
BUSY = {14, 15, 16, 51}
"""What a coordinator says that is not ready yet."""


class Transaction:
    """One transaction with the requests of before transaction version 2, on a broker that
    coordinates and leads.
    """

    def __init__(self, properties: dict[str, str], id_: str):
        self.wire = KafkaProtocolClient(properties, timeout=TIMEOUT)
        (self.broker,) = self.wire.brokers()
        self._id = id_
        request = InitProducerIdRequest(
            transactional_id=id_, transaction_timeout_ms=600_000, max_version=4
        )
        self._ask(find_request(id_))  # by which a cluster comes to have coordinators
        while (answer := self._ask(request)).error_code in BUSY:
            time.sleep(0.1)
        assert answer.error_code == 0, answer
        self.who = (int(answer.producer_id), int(answer.producer_epoch))

    def _ask(self, request: Any) -> Any:
        return self.wire.run("ask", lambda: self.wire.ask(request, self.broker))

    def add(self, topic: str, numbers: list[int]) -> None:
        kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        answer = self._ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self.who[0],
                v3_and_below_producer_epoch=self.who[1],
                v3_and_below_topics=[kind(name=topic, partitions=numbers)],
                max_version=3,
            )
        )
        codes = {
            p.partition_error_code
            for t in answer.results_by_topic_v3_and_below
            for p in t.results_by_partition
        }
        assert codes == {0}, answer

    def produce(self, place: TopicPartition, batch: bytes) -> Any:
        topic = ProduceRequest.TopicProduceData
        part = topic.PartitionProduceData(index=place.partition, records=batch)
        data = [topic(name=place.topic, partition_data=[part])]
        return ProduceRequest[PRODUCE](
            transactional_id=self._id, acks=-1, timeout_ms=int(TIMEOUT * 1000), topic_data=data
        )

    def commit(self) -> None:
        producer, epoch = self.who
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=producer,
            producer_epoch=epoch,
            committed=True,
            max_version=4,
        )
        answer = self._ask(request)
        assert answer.error_code == 0, answer


class Frame(NamedTuple):
    """A Produce request with its ``number``, as it goes over the wire: a batch of ``partition``
    that ends before ``end``.
    """

    partition: int
    end: int
    number: int
    data: bytes


def main() -> None:
    fetched = "--fetch" in sys.argv
    bootstrap, source, target, *numbers = (each for each in sys.argv[1:] if each != "--fetch")
    properties, partitions = {"bootstrap.servers": bootstrap}, list(map(int, numbers))
    transaction = Transaction(properties, f"ready-{target}-{numbers[0]}")
    connection = RawConnection(transaction.wire, transaction.broker, TIMEOUT)
    frames = frames_of(transaction, properties, source, target, partitions, connection._asked + 1)
    sources = RawConnection(transaction.wire, transaction.broker, TIMEOUT) if fetched else None
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    transaction.add(target, partitions)
    on_the_way = deque[int]()
    for frame in frames if sources is None else as_fetched(sources, source, frames):
        if len(on_the_way) >= ON_THE_WAY:
            answered(connection, on_the_way.popleft())
        connection._socket.sendall(frame.data)
        on_the_way.append(frame.number)
    for number in on_the_way:
        answered(connection, number)
    transaction.commit()
    print(time.perf_counter() - began, flush=True)
    connection.close()
    transaction.wire.close()


def as_fetched(connection: RawConnection, source: str, frames: list[Frame]) -> Iterator[Frame]:
    """Each of ``frames`` once its batch was fetched; the next request is on its way while they are
    sent.
    """
    by_partition = groupby(sorted(frames, key=attrgetter("partition")), key=attrgetter("partition"))
    waiting = {TopicPartition(source, partition): deque(some) for partition, some in by_partition}
    positions = {place: Position(0) for place in waiting}
    limits = FetchLimits(FETCH_BYTES, FETCH_BYTES, WAIT_MS)
    buffer = memoryview(bytearray(FETCH_BYTES + (2 << 20)))
    number = connection.send(fetch_request(positions, {}, limits, committed=True))
    while any(waiting.values()):
        connection.await_answer(number)
        ends = list(response(connection, source, buffer))
        for place, end in ends:
            del positions[place]
            positions[place] = Position(end)
        number = connection.send(fetch_request(positions, {}, limits, committed=True))
        for place, end in ends:
            while waiting[place] and waiting[place][0].end <= end:
                yield waiting[place].popleft()
    connection.close()


def response(
    connection: RawConnection, source: str, buffer: memoryview
) -> Iterator[tuple[TopicPartition, int]]:
    """What a response of Fetch 11 has: each partition with batches, and the offset behind the last
    whole one.
    """
    connection.take(struct.Struct(">ihi"))
    for _ in range(connection.take(struct.Struct(">i"))[0]):
        connection.skip(connection.take(struct.Struct(">h"))[0])
        for _ in range(connection.take(struct.Struct(">i"))[0]):
            partition, code, *_ = connection.take(struct.Struct(">ihqqq"))
            assert code == 0, f"error {code}"
            connection.skip(16 * max(0, connection.take(struct.Struct(">i"))[0]))
            _, size = connection.take(struct.Struct(">ii"))
            connection.into(buffer[: max(0, size)])
            at, end = 0, None
            while (
                at + 61 <= size
                and at + 12 + (length := struct.unpack_from(">i", buffer, at + 8)[0]) <= size
            ):
                end = (
                    struct.unpack_from(">q", buffer, at)[0]
                    + struct.unpack_from(">i", buffer, at + 23)[0]
                    + 1
                )
                at += 12 + length
            if end is not None:
                yield TopicPartition(source, partition), end
    connection.skip(connection.left)


def sent(
    bootstrap: str,
    source: str,
    target: str,
    partitions: int,
    processes: int,
    *,
    fetch: bool = False,
) -> float:
    """Seconds in which so many processes, each with every so manyth partition, send ``source`` to
    ``target``.
    """
    pipe = subprocess.PIPE
    shares = [[str(n) for n in range(first, partitions, processes)] for first in range(processes)]
    flags = ["--fetch"] if fetch else []
    commands = [
        [sys.executable, __file__, *flags, bootstrap, source, target, *share] for share in shares
    ]
    running = [subprocess.Popen(each, stdin=pipe, stdout=pipe, text=True) for each in commands]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    seconds = [process.communicate(timeout=600)[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return max(map(float, seconds))


def frames_of(
    transaction: Transaction,
    properties: dict[str, str],
    source: str,
    target: str,
    partitions: list[int],
    first: int,
) -> list[Frame]:
    """Produce requests for all that the partitions have, numbered from ``first`` on."""
    fetcher = BatchFetcher(properties, timeout=TIMEOUT, committed=True)
    fetcher.begin({TopicPartition(source, number): 0 for number in partitions})
    sequences, frames = dict.fromkeys(partitions, 0), list[Frame]()
    while fetcher.has_more:
        for part in fetcher.fetch(0.1):
            number = part.topic_partition.partition
            for batch in part.batches:
                made = b"".join(
                    restamped(part.data, batch, ProducerState(*transaction.who, sequences[number]))
                )
                sequences[number] += batch.records
                request = transaction.produce(TopicPartition(target, number), made)
                mark = first + len(frames)
                request.with_header(correlation_id=mark, client_id="ready-made")
                frames.append(
                    Frame(number, batch.next_offset, mark, request.encode(framed=True, header=True))
                )
    fetcher.close()
    return frames


def answered(connection: RawConnection, number: int) -> None:
    """Take an answer, in which no partition may have an error: behind a topic's name and a
    partition's number.
    """
    connection.await_answer(number)
    answer = connection.bytes(connection.left)
    name = int.from_bytes(answer[4:6], "big")
    code = int.from_bytes(answer[14 + name : 16 + name], "big", signed=True)
    assert code == 0, f"a batch was refused with error {code}"


if __name__ == "__main__":
    main()
