"""librdkafka's admin client over answers that a test has written down: what brokers say of topics
while they die.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from connectctl.ops.clients.librdkafka.client import Kafka

EARLIEST = -2
Answer = int | str | Exception
"""An offset, the name of an error of ``KafkaError``, or what the client itself raises."""


def error(name: str) -> KafkaException:
    """The exception for librdkafka's error of that name."""
    return KafkaException(KafkaError(getattr(KafkaError, name)))


@dataclass
class FakeAdmin:
    """``topics`` gives what metadata has of a topic at its n-th question: partitions, or the name
    of an error.

    ``offsets`` gives the answer to the n-th ListOffsets for a partition and a timestamp; None
    leaves the partition out. ``begins`` is where partitions begin. ``ids`` are the topics' ids by
    the number of the question.
    """

    topics: Callable[[int, str], Sequence[int] | str] = lambda asked, topic: [0, 1]
    offsets: Callable[[int, TopicPartition], Answer | None] = lambda asked, place: 5
    begins: int = 0
    ids: Callable[[int], str | None] = lambda asked: "id-1"
    described: int = 0
    listed: int = 0
    waits: list[float] = field(default_factory=list)

    def poll(self, timeout: float) -> int:
        return 0

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={}, brokers={1: None}, cluster_id="c")

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        self.described += 1
        self.waits.append(request_timeout)
        return {topic: self._described(topic) for topic in topics.topic_names}

    def _described(self, topic: str) -> Future[Any]:
        known = self.topics(self.described, topic)
        if isinstance(known, str):
            return _future(error(known))
        partitions = [SimpleNamespace(id=number) for number in known]
        return _future(SimpleNamespace(partitions=partitions, topic_id=self.ids(self.described)))

    def list_offsets(
        self, wanted: Mapping[TopicPartition, Any], isolation_level: Any, request_timeout: float
    ) -> dict[TopicPartition, Future[Any]]:
        self.waits.append(request_timeout)
        if all(spec._value == EARLIEST for spec in wanted.values()):
            return {place: _future(SimpleNamespace(offset=self.begins)) for place in wanted}
        self.listed += 1
        found = {place: self.offsets(self.listed, place) for place in wanted}
        return {
            place: _future(_of(answer)) for place, answer in found.items() if answer is not None
        }


def _of(answer: Answer) -> Any:
    if isinstance(answer, str):
        return error(answer)
    return answer if isinstance(answer, Exception) else SimpleNamespace(offset=answer)


def _future(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


class FakeKafka(Kafka):
    """A connection whose admin client is ``admin``, however often it is asked for a new one;
    ``renewed`` counts that.
    """

    def __init__(self, admin: FakeAdmin, *, timeout: float = 60.0):
        super().__init__({"bootstrap.servers": "h:1"}, timeout=timeout)
        self.fake, self.renewed = admin, 0
        self.__dict__["admin"] = admin

    def renew(self) -> None:
        self.renewed += 1
