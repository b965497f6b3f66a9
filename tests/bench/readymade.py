"""Ready-made batches: partitions copied from bytes that were made before the clock starts: the ceiling of ``topiccopy.py``
and ``dataframe.py``.

    python tests/bench/readymade.py BOOTSTRAP SOURCE TARGET PARTITION…

The batches of the source's partitions are read into memory, and become whole Produce requests of one transaction; then
"ready" is written, and a line waited for. From there on nothing is done but to send them, ``ON_THE_WAY`` at once on one
connection, with acks=all, and to commit. All partitions have one leader. ``sent`` runs several of these beside each other.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from connectctl.ops.clients.kafka_protocol.batch_fetcher import BatchFetcher
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection
from connectctl.ops.clients.kafka_protocol.transactions import find_request
from connectctl.ops.kafka.batch_rewrite import restamped
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.transactions import Place
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

ON_THE_WAY = 5
TIMEOUT = 60.0
PRODUCE = 8
BUSY = {14, 15, 16, 51}
"""What a coordinator says that is not ready yet."""


class Transaction:
    """One transaction with the requests of before transaction version 2, on a broker that coordinates and leads."""

    def __init__(self, properties: dict[str, str], id_: str):
        self.wire = KafkaProtocolClient(properties, timeout=TIMEOUT)
        (self.broker,) = self.wire.brokers()
        self._id = id_
        request = InitProducerIdRequest(transactional_id=id_, transaction_timeout_ms=600_000, max_version=4)
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
        codes = {p.partition_error_code for t in answer.results_by_topic_v3_and_below for p in t.results_by_partition}
        assert codes == {0}, answer

    def produce(self, place: Place, batch: bytes) -> Any:
        topic = ProduceRequest.TopicProduceData
        part = topic.PartitionProduceData(index=place.partition, records=batch)
        data = [topic(name=place.topic, partition_data=[part])]
        return ProduceRequest[PRODUCE](
            transactional_id=self._id, acks=-1, timeout_ms=int(TIMEOUT * 1000), topic_data=data
        )

    def commit(self) -> None:
        producer, epoch = self.who
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=producer, producer_epoch=epoch, committed=True, max_version=4
        )
        answer = self._ask(request)
        assert answer.error_code == 0, answer


def main() -> None:
    bootstrap, source, target, *numbers = sys.argv[1:]
    properties, partitions = {"bootstrap.servers": bootstrap}, list(map(int, numbers))
    transaction = Transaction(properties, f"ready-{target}-{numbers[0]}")
    connection = RawConnection(transaction.wire, transaction.broker, TIMEOUT)
    frames = frames_of(transaction, properties, source, target, partitions, connection._asked + 1)
    print("ready", flush=True)
    sys.stdin.readline()
    transaction.add(target, partitions)
    for at, (_, frame) in enumerate(frames):
        if at >= ON_THE_WAY:
            answered(connection, frames[at - ON_THE_WAY][0])
        connection._socket.sendall(frame)
    for number, _ in frames[-ON_THE_WAY:]:
        answered(connection, number)
    transaction.commit()
    connection.close()
    transaction.wire.close()


def sent(bootstrap: str, source: str, target: str, partitions: int, processes: int) -> float:
    """Seconds in which so many processes, each with every so manyth partition, send ``source`` to ``target``."""
    pipe = subprocess.PIPE
    shares = [[str(n) for n in range(first, partitions, processes)] for first in range(processes)]
    commands = [[sys.executable, __file__, bootstrap, source, target, *share] for share in shares]
    running = [subprocess.Popen(each, stdin=pipe, stdout=pipe, text=True) for each in commands]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    began = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait(600) for process in running] == [0] * processes
    return time.perf_counter() - began


def frames_of(
    transaction: Transaction, properties: dict[str, str], source: str, target: str, partitions: list[int], first: int
) -> list[tuple[int, bytes]]:
    """Numbered Produce requests for all that the partitions have, as they go over the wire."""
    fetcher = BatchFetcher(properties, timeout=TIMEOUT, committed=True)
    fetcher.begin({Place(source, number): 0 for number in partitions})
    sequences, frames = dict.fromkeys(partitions, 0), list[tuple[int, bytes]]()
    while fetcher.behind:
        for part in fetcher.fetch(0.1):
            number = part.place.partition
            for batch in part.batches:
                made = restamped(part.data, batch, ProducerState(*transaction.who, sequences[number]))
                sequences[number] += batch.records
                request = transaction.produce(Place(target, number), made)
                request.with_header(correlation_id=first + len(frames), client_id="ready-made")
                frames.append((first + len(frames), request.encode(framed=True, header=True)))
    fetcher.close()
    return frames


def answered(connection: RawConnection, number: int) -> None:
    """Take an answer, in which no partition may have an error: behind a topic's name and a partition's number."""
    connection.await_answer(number)
    answer = connection.bytes(connection.left)
    name = int.from_bytes(answer[4:6], "big")
    code = int.from_bytes(answer[14 + name : 16 + name], "big", signed=True)
    assert code == 0, f"a batch was refused with error {code}"


if __name__ == "__main__":
    main()
