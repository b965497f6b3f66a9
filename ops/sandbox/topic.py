"""Reads the committed records of a sandbox's topic, from the first to the one that is the last now."""

from __future__ import annotations

import time

from connectctl.ops.core.errors import TimedOut


def values(bootstrap_servers: str, topic: str, timeout: float = 60.0) -> list[bytes]:
    """The values of all committed records, each partition in its order; empty for none. Raises ``TimedOut``."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    client = {"bootstrap.servers": bootstrap_servers, "group.id": "sandbox", "isolation.level": "read_committed"}
    consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
    try:
        places = [TopicPartition(topic, n, 0) for n in consumer.list_topics(topic, timeout).topics[topic].partitions]
        consumer.assign(places)
        found: list[bytes] = []
        ended: set[int] = set()
        late = time.monotonic() + timeout
        while len(ended) < len(places):
            if time.monotonic() > late:
                raise TimedOut(f"Timed out after {timeout:g} s reading {topic}")
            for message in consumer.consume(1000, 0.5):
                error = message.error()
                if error is None:
                    found.append(message.value() or b"")
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
        return found
    finally:
        consumer.close()
