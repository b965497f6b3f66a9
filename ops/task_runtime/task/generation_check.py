"""Checks whether a generation of tasks is the newest: reads the config topic to its end at the time
of the check.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from connectctl.ops.clients.librdkafka.consume import read_ranges, record_of
from connectctl.ops.clients.librdkafka.partition_offsets import end_offsets, read_extents
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.operations.cluster.open_transactions import settled

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.job.config_topic_records import Generation

PAUSE = 0.1


class GenerationCheck:
    """Checks whether a generation is the newest, before and after a task initialises its
    producer.
    """

    def __init__(self, kafka: Kafka, generation: Generation, patience: float):
        self._kafka, self._generation, self._patience = kafka, generation, patience
        self._read_to = generation.read_to
        self._answer: str | None = None

    def stale_because(self) -> str | None:
        """Return why the generation is not the newest; None if it is. Raises ``TimedOut`` if the
        config topic cannot be read to its end.
        """
        topic, began = self._generation.topic, time.monotonic()
        # Records that were read before still exist: a lower end is requested again, and must not
        # lead to an empty read.
        before = {topic: KnownEnds(ends=(max(0, self._read_to),))}
        if end_offsets(self._kafka, [topic], before)[topic][0] == self._read_to:
            return self._answer
        remaining = self._patience - (time.monotonic() - began)
        first, last = (
            e[topic][0]
            for e in settled(lambda: read_extents(self._kafka, [topic]), remaining, PAUSE)
        )
        if last.stable < (end := first.end):
            raise TimedOut(f"Could not read {topic} to its end", why="a transaction is open on it")
        found = read_ranges(
            self._kafka, {TopicPartition(topic, 0): (max(last.first, self._generation.since), end)}
        )
        self._answer = self._generation.stale_because(
            [record_of(m) for _, messages in found for m in messages]
        )
        self._read_to = end
        return self._answer
