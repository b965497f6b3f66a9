"""Consumers of a real broker for live tests: of either group protocol, and as many as a test
wants.
"""

from __future__ import annotations

import secrets
import time
from typing import Any, Self

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic
from connectctl.ops.kafka.topic_partition import TopicPartition
from live.real import await_topic

PATIENCE = 600.0
"""Seconds that a broker may take to make its offsets topic, and a group to settle."""


class Consumers:
    """Opened by a test and closed after it. ``protocol`` is classic or consumer (KIP-848)."""

    def __init__(self, bootstrap: str, protocol: str = "classic") -> None:
        self.bootstrap = bootstrap
        self._protocol = protocol
        self._open: list[Consumer] = []
        self._topics: list[str] = []
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for consumer in self._open:
            consumer.close()
        for future in self._admin.delete_topics(self._topics).values() if self._topics else ():
            future.result()

    def new_topic(self, prefix: str, partitions: int = 2, **config: str) -> str:
        """A topic for the time of the test."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        topic = NewTopic(
            name,
            partitions,
            1,
            config={key.replace("_", "."): value for key, value in config.items()},
        )
        self._admin.create_topics([topic])[name].result()
        self._topics.append(name)
        await_topic(self._admin, name)
        return name

    def open(self, group: str, **more: Any) -> Consumer:
        """A consumer of a group, from the beginning, that commits only when it is told to."""
        own = {name.replace("_", "."): value for name, value in more.items()}
        settings = {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.protocol": self._protocol,
        }
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group, **settings, **own}
        )
        self._open.append(consumer)
        return consumer

    def commit(self, group: str, place: TopicPartition, offset: int) -> None:
        """Commit an offset as somebody who is no member."""
        consumer = self.open(group, group_protocol="classic")
        consumer.commit(
            offsets=[Position(place.topic, place.partition, offset)], asynchronous=False
        )
        consumer.close()
        self._open.remove(consumer)

    def join(self, group: str, topic: str, client: str) -> Consumer:
        """Become a member that has partitions of the topic."""
        consumer = self.open(group, client_id=client)
        consumer.subscribe([topic])
        end = time.monotonic() + PATIENCE
        while not consumer.assignment():
            assert time.monotonic() < end, f"{group} is assigned nothing"
            consumer.poll(0.2)
        return consumer
