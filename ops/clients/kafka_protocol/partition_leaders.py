"""How many partitions each topic of a producer has, and who leads them, looked up once and kept for a while."""

from __future__ import annotations

import time

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition

TOPIC_PAUSE = 0.1
METADATA_AGE = 300.0
"""Seconds after which partitions and leaders are looked up again: ``metadata.max.age.ms``."""
_NEVER = frozenset((Code.TOPIC_AUTHORIZATION_FAILED, Code.INVALID_TOPIC_EXCEPTION))
"""Errors of a topic that waiting does not mend."""


class PartitionLeaders:
    def __init__(self, wire: KafkaProtocolClient):
        self._wire = wire
        self._leaders: dict[TopicPartition, int] = {}
        self._counts: dict[str, int] = {}
        self._looked_up = time.monotonic()

    def __getitem__(self, place: TopicPartition) -> int:
        """The leader of a partition of a topic that was looked up."""
        return self._leaders[place]

    def partitions(self, topic: str, patience: float) -> int:
        """How many partitions ``topic`` has, all of which have a leader. Raises ``Refusal`` where that takes more than
        ``patience`` seconds, and at once where waiting does not mend it.
        """
        deadline = time.monotonic() + patience
        while topic not in self._counts:
            found = Leaders(self._wire).of_topic(topic)
            described = {} if isinstance(found, Code) else found
            leaders = {place: leader for place, leader in described.items() if not isinstance(leader, Code)}
            codes = [each for each in (found, *described.values()) if isinstance(each, Code)]
            if leaders and not codes and sorted(place.partition for place in leaders) == list(range(len(leaders))):
                self._leaders |= leaders
                self._counts[topic] = len(leaders)
            elif time.monotonic() > deadline or _NEVER.intersection(codes):
                raise Refusal(codes[0] if codes else Code.UNKNOWN_TOPIC_OR_PARTITION, topic=topic)
            else:
                time.sleep(TOPIC_PAUSE)
        return self._counts[topic]

    def forget(self) -> None:
        """Look all of them up again when they are needed."""
        self._leaders.clear()
        self._counts.clear()
        self._looked_up = time.monotonic()

    def forget_if_old(self) -> None:
        """``forget``, once that is ``METADATA_AGE`` seconds ago."""
        if time.monotonic() - self._looked_up > METADATA_AGE:
            self.forget()
