"""The partitions of a producer's topics and their leaders, cached for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.core.errors import NotTrusted, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition

TOPIC_PAUSE = 0.1
METADATA_AGE = 300.0
"""Seconds after which partitions and leaders are looked up again: ``metadata.max.age.ms``."""
_NEVER = frozenset((Code.TOPIC_AUTHORIZATION_FAILED, Code.INVALID_TOPIC_EXCEPTION))
"""Errors of a topic that waiting does not resolve."""


class PartitionLeaders:
    def __init__(self, wire: KafkaProtocolClient):
        self._wire = wire
        self._leaders: dict[str, dict[int, int | Code]] = {}
        self._patience = 0.0
        self._looked_up = time.monotonic()

    def partitions(self, topic: str, patience: float) -> int:
        """Return how many partitions ``topic`` has, one of which has a leader at least. Raises
        ``Refusal`` if that takes more than ``patience`` seconds, and immediately if waiting does
        not help.
        """
        self._patience = patience
        if topic not in self._leaders:
            self._await(
                topic,
                lambda leaders: any(not isinstance(leader, Code) for leader in leaders.values()),
            )
        return len(self._leaders[topic])

    def led(self, topic: str) -> Sequence[int]:
        """Return the partitions of a topic that was looked up that had a leader then."""
        return [
            partition
            for partition, leader in self._leaders[topic].items()
            if not isinstance(leader, Code)
        ]

    def leader(self, topic_partition: TopicPartition) -> int:
        """Return the leader of a partition of a topic that was looked up; wait for one as long as
        for the topic.
        """
        leader = self._leaders[topic_partition.topic][topic_partition.partition]
        if isinstance(leader, Code):
            self._await(
                topic_partition.topic,
                lambda leaders: (
                    not isinstance(leaders.get(topic_partition.partition, leader), Code)
                ),
            )
            leader = self._leaders[topic_partition.topic][topic_partition.partition]
        return int(leader)

    def _await(self, topic: str, enough: Callable[[dict[int, int | Code]], bool]) -> None:
        """Look ``topic`` up until all its partitions are known and ``enough`` of them have a
        leader. Raises ``Unreachable`` if no broker answers until then.
        """
        deadline = time.monotonic() + self._patience
        while True:
            try:
                found = Leaders(self._wire).of_topic(topic)
            except Unreachable as e:
                # All brokers may be away for a moment: Java's producer waits for max.block.ms.
                if isinstance(e, NotTrusted) or time.monotonic() > deadline:
                    raise
                time.sleep(TOPIC_PAUSE)
                continue
            leaders = (
                {}
                if isinstance(found, Code)
                else {partition.partition: leader for partition, leader in found.items()}
            )
            is_complete = sorted(leaders) == list(range(len(leaders)))
            if leaders and is_complete and enough(leaders):
                self._leaders[topic] = leaders
                return
            codes = [each for each in (found, *leaders.values()) if isinstance(each, Code)]
            if time.monotonic() > deadline or _NEVER.intersection(codes):
                raise Refusal(codes[0] if codes else Code.UNKNOWN_TOPIC_OR_PARTITION, topic=topic)
            time.sleep(TOPIC_PAUSE)

    def forget(self) -> None:
        """Look all of them up again when they are needed."""
        self._leaders.clear()
        self._looked_up = time.monotonic()

    def forget_if_old(self) -> None:
        """``forget``, once that is ``METADATA_AGE`` seconds ago."""
        if time.monotonic() - self._looked_up > METADATA_AGE:
            self.forget()
