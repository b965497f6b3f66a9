"""Programs that use the public producer, as its page shows them, and what readers see of their
transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, TopicPartition
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.producer import AbortRequired, RequestFailed, TransactionalProducer


def seen(client: Mapping[str, Any], topic: str) -> list[str]:
    """The values that a reader with read_committed sees, sorted; nothing may be open."""
    image = Kafka(client, timeout=60).image([topic], patience=60, superseded=True)[topic]
    assert not image.held_back
    return sorted((r.value or b"").decode() for r in (*image.latest, *image.superseded))


def messages(client: Mapping[str, Any], topic: str, partitions: int) -> dict[tuple[int, int], Any]:
    """What a consumer is given of committed records, by partition and offset."""
    given = {"group.id": "g", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(dict(client) | given)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: dict[tuple[int, int], Any] = {}
    ends = 0
    while ends < partitions:
        message = consumer.poll(60)
        assert message is not None
        if (error := message.error()) is None:
            found[message.partition(), message.offset()] = message
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ends += 1
    consumer.close()
    return found


def fields(message: Any) -> tuple[Any, ...]:
    """All that a producer gives, and the time if it is one of the producer's."""
    kind, when = message.timestamp()
    own = when if kind == TIMESTAMP_CREATE_TIME else None
    return message.topic(), message.key(), message.value(), message.headers(), kind, own


def insist(call: Callable[[], None]) -> None:
    """Call again what nobody answered."""
    while True:
        try:
            return call()
        except RequestFailed:
            continue


def write_once(
    producer: TransactionalProducer, topic: str, number: int, partitions: Iterable[int]
) -> int:
    """A transaction with ``number`` in each of ``partitions``, however often it takes; how often it
    was aborted.
    """
    aborted = 0
    while True:
        try:
            producer.begin_transaction()
            for partition in partitions:
                producer.produce(topic, str(number), partition=partition)
            insist(producer.commit_transaction)
            return aborted
        except AbortRequired:
            insist(producer.abort_transaction)
            aborted += 1


GROUP = b"CGMDv2:" + (0xFFFFFFFF).to_bytes(4, "little") + b"g\0\0\1"
"""As a consumer that is no member of the group."""
