"""Leaders of partitions through kafka-python: their producers, their ends, and markers (KIP-664);
and ids of topics, which distinguish a topic from an earlier one of its name.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from connectctl.ops.clients.kafka_protocol.client import (
    KafkaProtocolClient,
    batches,
    code_of,
    known_code,
)
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.sentinels import Offset, number_of, offset_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Bounds, PartitionProducer
from connectctl.ops.kafka.visibility import describe_topic, not_authorized

LATEST, EARLIEST = -1, -2
PAUSE = 0.1
"""Seconds before metadata that is not complete is requested again."""
_MOVING = {Code.LEADER_NOT_AVAILABLE, Code.NOT_LEADER_OR_FOLLOWER, Code.UNKNOWN_SERVER_ERROR}

Item = TypeVar("Item")


class Leaders:
    """Every partition's leader, looked up for each question, because leaders move."""

    def __init__(self, wire: KafkaProtocolClient) -> None:
        self._wire = wire

    def topic_partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        answer = self._described(topics)
        hidden = [
            topic.name
            for topic in answer.topics
            if topic.error_code == Code.TOPIC_AUTHORIZATION_FAILED
        ]
        if hidden:
            what = (
                f"Not authorized to describe the topic {hidden[0]} (Kafka at "
                f"{self._wire.bootstrap})"
            )
            raise not_authorized(what, describe_topic(hidden[0]))
        return sorted(partition for partition, _ in parts_of(answer.topics))

    def _described(self, topics: Sequence[str]) -> Any:
        """Metadata that has all partitions of ``topics``, or why it will not. Raises
        ``Unreachable``.
        """
        deadline = time.monotonic() + self._wire.timeout
        while True:
            answer = self._metadata(topics)
            partial = sorted(topic.name for topic in answer.topics if not _whole(topic))
            if not partial:
                return answer
            if time.monotonic() > deadline:
                raise Unreachable(
                    f"Could not determine the partitions of {', '.join(partial[:3])}",
                    why="metadata lists only some of them, or none",
                    next_step="Check the brokers, and try again.",
                )
            time.sleep(PAUSE)

    def hidden(self, topics: Sequence[str]) -> list[str]:
        """Return those of ``topics`` that this principal may not describe, whether they exist or
        not.
        """
        answer = self._metadata(topics)
        return [
            topic.name
            for topic in answer.topics
            if topic.error_code == Code.TOPIC_AUTHORIZATION_FAILED
        ]

    def producers(
        self, topic_partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, tuple[PartitionProducer, ...] | Code]:
        """Return the producers that the leader of each partition remembers, or its error code
        (DescribeProducers, KIP-664).
        """
        from kafka.protocol.admin.transactions import DescribeProducersRequest

        def request(some: Sequence[TopicPartition]) -> Any:
            topics = [
                DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(some).items()
            ]
            return DescribeProducersRequest(topics=topics)

        def read(
            answer: Any,
        ) -> Iterator[tuple[TopicPartition, tuple[PartitionProducer, ...] | Code]]:
            for partition, part in parts_of(answer.topics):
                known = tuple(map(_producer, part.active_producers))
                yield partition, known_code(part.error_code) if part.error_code else known

        return self._of_leaders("describe producers", topic_partitions, request, read)

    def bounds(
        self, topic_partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Bounds | Code]:
        stable, end = (
            self.offsets(topic_partitions, LATEST, committed=True),
            self.offsets(topic_partitions, LATEST),
        )
        found: dict[TopicPartition, Bounds | Code] = {}
        for partition in topic_partitions:
            low, high = stable[partition], end[partition]
            # Only the codes are of type Code; an offset is a plain number.
            if isinstance(low, Code) or isinstance(high, Code):
                found[partition] = low if isinstance(low, Code) else Code(high or 0)
            elif low is not None and high is not None:
                found[partition] = Bounds(low, high)
        return found

    def offsets(
        self, topic_partitions: Sequence[TopicPartition], timestamp: int, *, committed: bool = False
    ) -> dict[TopicPartition, Offset | Code | None]:
        """The first offset of each partition with a time of ``timestamp`` or later, in milliseconds
        since the epoch.

        None where there is none, which is an answer for a time alone. ``LATEST`` gives the end,
        ``EARLIEST`` the beginning: where a leader has neither, that is a code. ``committed``: as
        far as read_committed readers get.
        """
        from kafka.protocol.consumer.offsets import ListOffsetsRequest

        def request(some: Sequence[TopicPartition]) -> Any:
            topic = ListOffsetsRequest.ListOffsetsTopic
            topics = []
            for name, numbers in by_topic(some).items():
                parts = [
                    topic.ListOffsetsPartition(partition_index=n, timestamp=timestamp)
                    for n in numbers
                ]
                topics.append(topic(name=name, partitions=parts))
            return ListOffsetsRequest(
                replica_id=-1, isolation_level=int(committed), topics=topics, max_version=6
            )

        def read(answer: Any) -> Iterator[tuple[TopicPartition, Offset | Code | None]]:
            for partition, part in parts_of(answer.topics):
                found = known_code(part.error_code) if part.error_code else offset_of(part.offset)
                none = found is None and timestamp in (LATEST, EARLIEST)
                yield partition, Code.LEADER_NOT_AVAILABLE if none else found

        return self._of_leaders("list offsets", topic_partitions, request, read)

    def mark(
        self, topic_partition: TopicPartition, producer: PartitionProducer, *, commit: bool
    ) -> Code:
        from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

        kind = WriteTxnMarkersRequest.WritableTxnMarker
        marker = kind(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=commit,
            coordinator_epoch=max(0, producer.coordinator_epoch),
            topics=[
                kind.WritableTxnMarkerTopic(
                    name=topic_partition.topic, partition_indexes=[topic_partition.partition]
                )
            ],
        )
        request = WriteTxnMarkersRequest(markers=[marker], max_version=1)

        def read(answer: Any) -> Iterator[tuple[TopicPartition, Code]]:
            for one in answer.markers:
                yield from (
                    (where, known_code(part.error_code)) for where, part in parts_of(one.topics)
                )

        return self._of_leaders(
            "write a transaction marker", [topic_partition], lambda some: request, read
        )[topic_partition]

    def leaders(self, topics: Sequence[str] | None) -> dict[TopicPartition, int | Code]:
        """Return the leader of each partition of ``topics`` (None: of all), or the error code; a
        topic that does not exist has none.
        """
        return {
            partition: _leader(part) for partition, part in parts_of(self._metadata(topics).topics)
        }

    def of_topic(self, topic: str) -> dict[TopicPartition, int | Code] | Code:
        """Return the ``leaders`` of ``topic``, or the error code of a broker. Brokers that create
        topics by themselves create a missing one.
        """
        (described,) = self._metadata([topic], create=True).topics
        if described.error_code:
            return known_code(described.error_code)
        return {partition: _leader(part) for partition, part in parts_of([described])}

    def _metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> Any:
        request = metadata_request(topics, allow_auto_topic_creation=create)
        ask = partial(self._wire.ask, request, patience=self._wire.timeout)
        return self._wire.run("look up topics", ask)

    def _of_leaders(
        self,
        doing: str,
        topic_partitions: Sequence[TopicPartition],
        request: Callable[[Sequence[TopicPartition]], Any],
        read: Callable[[Any], Iterator[tuple[TopicPartition, Item | Code]]],
    ) -> dict[TopicPartition, Item | Code]:
        """Ask the leader of each partition, all leaders concurrently."""
        if not topic_partitions:
            return {}
        leaders = self.leaders(sorted({partition.topic for partition in topic_partitions}))
        found: dict[TopicPartition, Item | Code] = {}
        parts: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition in topic_partitions:
            leader = leaders.get(partition, Code.UNKNOWN_TOPIC_OR_PARTITION)
            if isinstance(leader, Code):
                found[partition] = leader
            else:
                parts[leader].append(partition)
        requested = [(leader, some) for leader, known in parts.items() for some in batches(known)]

        async def one(leader: int, some: Sequence[TopicPartition]) -> None:
            found.update(read(await self._wire.ask(request(some), leader)))

        results = self._wire.run(
            doing, lambda: self._wire.each(one(leader, some) for leader, some in requested)
        )
        for (_, some), result in zip(requested, results, strict=True):
            if isinstance(result, Exception):
                found.update(dict.fromkeys(some, code_of(result)))
        return found


def _leader(part: Any) -> int | Code:
    leader = number_of(part.leader_id)
    if part.error_code or leader is None:
        return known_code(part.error_code or Code.LEADER_NOT_AVAILABLE)
    return leader


def _whole(topic: Any) -> bool:
    """Return whether metadata has all of a topic, or an error that does not pass."""
    if topic.error_code:
        return topic.error_code not in _MOVING
    numbers = sorted(part.partition_index for part in topic.partitions)
    return bool(numbers) and numbers == list(range(len(numbers)))


def _producer(state: Any) -> PartitionProducer:
    who, start = (
        (state.producer_id, state.producer_epoch),
        offset_of(state.current_txn_start_offset),
    )
    return PartitionProducer(*who, state.coordinator_epoch, state.last_timestamp, start)


def parts_of(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """The partitions in an answer's ``topics``, with what it has of each."""
    for topic in topics:
        for part in topic.partitions:
            yield TopicPartition(topic.name, part.partition_index), part


def metadata_request(topics: Sequence[str] | None, *, newest: int = 9, **more: bool) -> Any:
    """Metadata of ``topics``, None for all, of a version up to ``newest``; creates none that is
    missing.
    """
    from kafka.protocol.metadata.metadata import MetadataRequest

    requested = (
        None
        if topics is None
        else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    )
    return MetadataRequest(
        topics=requested, max_version=newest, **{"allow_auto_topic_creation": False, **more}
    )


def by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of partitions by topic, as most requests want them."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in topic_partitions:
        found[topic].append(partition)
    return found


@dataclass(frozen=True)
class TopicLayouts:
    """The leader of each partition that has one, and the ids of topics, none where brokers are too
    old for them. ``gone`` are topics that the broker asked does not know, ``forbidden`` those that
    may not be described.
    """

    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    ids: Mapping[str, UUID] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


def topic_layouts(wire: KafkaProtocolClient, topics: Sequence[str]) -> TopicLayouts:
    """Return a broker's current layouts of ``topics``. Raises ``Unreachable``, ``NotAuthorized``."""
    answer = wire.run("look up topics", lambda: wire.ask(metadata_request(topics, newest=12)))
    leaders = {
        partition: leader
        for partition, part in parts_of(answer.topics)
        if (leader := number_of(part.leader_id)) is not None
    }
    ids = {
        t.name: UUID(str(t.topic_id))
        for t in answer.topics
        if not t.error_code and getattr(t, "topic_id", None)
    }
    codes = {topic.name: topic.error_code for topic in answer.topics}
    return TopicLayouts(
        leaders,
        {name: id_ for name, id_ in ids.items() if id_.int},
        frozenset(name for name in topics if codes.get(name) == Code.UNKNOWN_TOPIC_OR_PARTITION),
        frozenset(name for name in topics if codes.get(name) == Code.TOPIC_AUTHORIZATION_FAILED),
    )
