"""A transactional producer request by request: it stays half-way, or writes behind the coordinator,
as no client would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest, EndTxnRequest
from kafka.record.memory_records import MemoryRecordsBuilder

BROKER = 1
"""The sandbox's only one."""
OLD_PRODUCE, OLD_END = 9, 4
NEW_PRODUCE, NEW_END = 12, 5
"""Versions of Produce and EndTxn without and with KIP-890: its clients never name partitions
beforehand.
"""


class RawProducers:
    """Producers by transactional id, all on one connection."""

    def __init__(self, bootstrap: str) -> None:
        self.calls = TransactionClient({"bootstrap.servers": bootstrap}, timeout=120)
        self.who: dict[str, tuple[int, int]] = {}

    def close(self) -> None:
        self.calls.close()

    def init(self, ids: Iterable[str], timeout_ms: int = 60_000) -> None:
        """Create the ids, or take them over."""
        waiting = list(ids)
        end = time.monotonic() + 600
        while waiting:
            assert time.monotonic() < end
            told: dict[str, Any] = {}
            self.calls.fence(dict.fromkeys(waiting, timeout_ms), 10, told.__setitem__)
            self.who |= {
                id: (answer.producer_id, answer.epoch)
                for id, answer in told.items()
                if answer.code == 0
            }
            waiting = [id for id in waiting if told[id].code != 0]
            if waiting:
                time.sleep(0.1)

    def begin(self, ids: Iterable[str], topic: str, partitions: list[int]) -> None:
        """Open a transaction of each id on the partitions, without a record."""
        add = AddPartitionsToTxnRequest
        answers = self._each(
            ids,
            lambda id: add(
                v3_and_below_transactional_id=id,
                v3_and_below_producer_id=self.who[id][0],
                v3_and_below_producer_epoch=self.who[id][1],
                v3_and_below_topics=[
                    add.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                ],
                max_version=3,
            ),
        )
        for answer in answers.values():
            codes = {
                p.partition_error_code
                for t in answer.results_by_topic_v3_and_below
                for p in t.results_by_partition
            }
            assert codes == {0}, codes

    def commit(self, ids: Iterable[str]) -> None:
        """Ask for the commit; the coordinator then writes a marker to every partition, one after
        the other.
        """
        self.end(ids, commit=True)

    def end(self, ids: Iterable[str], *, commit: bool, version: int = OLD_END) -> None:
        """Ask for the end, as a client of before KIP-890 or, with ``NEW_END``, as one that has
        it.
        """
        answers = self._each(
            ids,
            lambda id: EndTxnRequest(
                transactional_id=id,
                producer_id=self.who[id][0],
                producer_epoch=self.who[id][1],
                committed=commit,
                max_version=version,
            ),
        )
        assert {answer.error_code for answer in answers.values()} == {0}
        if version == NEW_END:
            self.who |= {
                id: (answer.producer_id, answer.producer_epoch) for id, answer in answers.items()
            }

    def write_behind(
        self,
        id: str,
        topic: str,
        partition: int = 0,
        *,
        sequence: int = 0,
        version: int = OLD_PRODUCE,
        key: bytes | None = None,
    ) -> None:
        """Write a record: where the coordinator knows nothing of it, it hangs at once.
        ``NEW_PRODUCE`` tells it first.
        """
        builder = MemoryRecordsBuilder(
            magic=2,
            compression_type=0,
            batch_size=10_000,
            transactional=True,
            producer_id=self.who[id][0],
            producer_epoch=self.who[id][1],
            base_sequence=sequence,
        )
        builder.append(timestamp=int(time.time() * 1000), key=key, value=b"ghost")
        builder.close()
        data = ProduceRequest.TopicProduceData
        part = data.PartitionProduceData(index=partition, records=builder.buffer())
        request = ProduceRequest(
            transactional_id=id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[data(name=topic, partition_data=[part])],
            max_version=version,
        )
        (answer,) = self._each([id], lambda id: request).values()
        assert answer.responses[0].partition_responses[0].error_code == 0

    def _each(self, ids: Iterable[str], request: Callable[[str], Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        wire = self.calls._wire
        requests = ((id, request(id)) for id in ids)

        async def send() -> None:
            await wire.pipeline(
                BROKER, requests, 10, lambda id, code, answer: found.__setitem__(id, answer)
            )

        wire.run("send raw requests", send)
        return found
