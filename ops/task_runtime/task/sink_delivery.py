"""The records between a poll and the ``put`` that accepts them, which may be a later one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.kafka.group_positions import GroupOffset, next_offsets
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupConsumer
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.sink import SinkRecord, SinkTask
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_context import WorkerSinkTaskContext
from connectctl.ops.task_runtime.task.sink_offsets import SinkOffsets
from connectctl.ops.task_runtime.task.sink_records import (
    RecordReader,
    consumed_partition,
    first_offsets,
)

RETRY_PAUSE = 1.0
"""Seconds to the next ``put`` after a ``RetriableError`` of a task that named no timeout."""


@dataclass
class SinkDelivery:
    """Gives ``task`` what was read, with all partitions paused as long as it asks for the same
    records again.
    """

    task: SinkTask
    context: WorkerSinkTaskContext
    consumer: GroupConsumer
    reader: RecordReader
    offsets: SinkOffsets
    errors: RecordErrors
    meter: SinkMeter
    note: Callable[[str], None]
    now: Callable[[], float]

    def __post_init__(self) -> None:
        self._records: list[SinkRecord] = []
        self._ends: dict[TopicPartition, GroupOffset] = {}
        self._put_at = 0.0

    @property
    def is_due(self) -> bool:
        """Return whether ``put`` is due, also without records."""
        return not self.context.redelivering or self.now() >= self._put_at

    def wait(self) -> list[float]:
        """The seconds until the same records are put again, if they are."""
        return [self._put_at - self.now()] if self.context.redelivering else []

    def take(self, messages: Sequence[Any]) -> None:
        """Convert ``messages``. Raises ``ConnectctlError`` for one that ``errors.tolerance`` does
        not let pass.
        """
        self.meter.read += len(messages)
        first = {
            partition: GroupOffset(offset) for partition, offset in first_offsets(messages).items()
        }
        self.offsets.begin_unknown(first)
        self._records, self._ends = self.reader.records(messages), next_offsets(messages)

    def put(self) -> None:
        """Call ``put``. Raises what the task raises, but for a ``RetriableError``."""
        began = self.now()
        try:
            with self.context.timing("put()"):
                self.task.put(list(self._records))
        except RetriableError as e:
            self._put_again(e)
            return
        if self.errors.exceeded is not None:
            raise self.errors.exceeded
        self.meter.put(len(self._records), self.now() - began)
        self.offsets.delivered.update(self._ends)
        self._records, self._ends = [], {}
        if self.context.redelivering:
            self.context.redelivering = False
            if resumed := self.context.assigned - self.context.paused:
                self.consumer.resume(resumed)

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the waiting records of ``partitions``: they will be read again, here or by another
        member.
        """
        if self._ends:
            self._records = [
                each for each in self._records if consumed_partition(each) not in partitions
            ]
            self._ends = {each: end for each, end in self._ends.items() if each not in partitions}
            self._put_at = self._put_at if self._ends else 0.0

    def _put_again(self, error: RetriableError) -> None:
        timeout = self.context.take_timeout()
        pause = RETRY_PAUSE if timeout is None else timeout
        self._put_at = self.now() + pause
        self.meter.retries += 1
        if not self.context.redelivering:
            self.note(f"put failed and is retried in {pause:g} s: {error}")
            self.context.redelivering = True
            if self.context.assigned:
                self.consumer.pause(self.context.assignment)
