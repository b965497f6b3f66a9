"""A sink as the body of the task loop: commit, poll, convert, put.

Source: ``WorkerSinkTask``, with KIP-275. The order of calls::

    start  start → join
    round  pre_commit → commit, each interval or on request;  raised: read again from what is committed
           poll → convert (errors.*) → put;                   RetriableError: the same batch after the timeout, all paused
    assigned             open
    revoked, shut down   pre_commit with is_closing → commit → close, of those partitions alone
    lost                 close
    end    stop

A commit is a batch for the loop, with what the task has for it (``transaction_records``). Unlike in
Connect, no records are lost or reordered: a batch that waits for redelivery is dropped if its
partitions are rewound, and a rewind takes effect before the next commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import (
    Assigned,
    GroupConsumer,
    GroupOffsets,
    Lost,
    Polled,
)
from connectctl.ops.task_runtime.group.consumer_settings import MOST_RECORDS
from connectctl.ops.task_runtime.spi.metrics import Metrics
from connectctl.ops.task_runtime.spi.reading_converters import ReadingConverters
from connectctl.ops.task_runtime.spi.sink import SinkTask
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter, sink_metrics
from connectctl.ops.task_runtime.spi.transaction_batch import Event, Read, TransactionBatch
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_context import WorkerSinkTaskContext
from connectctl.ops.task_runtime.task.sink_delivery import SinkDelivery
from connectctl.ops.task_runtime.task.sink_offsets import SinkOffsets
from connectctl.ops.task_runtime.task.sink_records import RecordReader, first_offsets, without
from connectctl.ops.task_runtime.task.transactional_producer import Fenced, UnknownOutcome
from connectctl.ops.task_runtime.task.transform_source import LONGEST_POLL
from connectctl.ops.task_runtime.transforms.chain import TransformationChain

DEFAULT_INTERVAL = 60.0
"""Seconds: ``offset.flush.interval.ms``."""
SETTLED_WITHIN, SETTLING_POLL = 10.0, 0.1
"""Seconds to wait for a rebalance that is in progress when the task ends, and of each poll then."""


@dataclass(eq=False)
class WorkerSinkTask:
    """Gives the records of a consumer to a task that ``open_task`` makes.

    ``interval`` is in seconds, between two commits, which have the records of a ``transactional``
    task. ``note`` gets messages for the user, one line each. A poll gives at most ``most`` records,
    after ``longest_poll`` seconds.
    """

    open_task: Callable[[], SinkTask]
    configs: Mapping[str, str]
    converters: ReadingConverters
    errors: RecordErrors
    interval: float = DEFAULT_INTERVAL
    transactional: bool = False
    note: Callable[[str], None] = lambda line: None
    most: int = MOST_RECORDS
    now: Callable[[], float] = time.monotonic
    longest_poll: float = LONGEST_POLL
    chain: TransformationChain | None = None
    producer_properties: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        assert isinstance(self.errors.meter, SinkMeter)
        self.meter = self.errors.meter
        self._task: SinkTask | None = None
        self._consumer: GroupConsumer | None = None
        self._failure: Exception | None = None

    @property
    def metrics(self) -> Metrics:
        """Its metrics so far, by Connect's names."""
        return sink_metrics(self.meter, self._offsets.active, len(self._context.assigned))

    @property
    def lag(self) -> int | None:
        return None if self._consumer is None else self._consumer.lag

    @property
    def has_more(self) -> bool:
        """Return whether records are left to read, may be left, or wait for redelivery."""
        if self._consumer is None:
            return True
        return self._consumer.has_more or self._context.redelivering

    def resume(self, stored: GroupConsumer) -> None:
        """Start a task on the records of ``stored``, the member, which joins its group then."""
        self.close()
        if self._failure is not None:
            raise self._failure
        errors = self.errors
        task = self.open_task()
        self._context = task.context = WorkerSinkTaskContext(
            self.configs, stored, errors if errors.settings.reports else None
        )
        self._offsets = SinkOffsets(
            task,
            self._context,
            errors.flush,
            self.note,
            self.meter,
            self.now,
            self.transactional,
        )
        reader = RecordReader(self.converters, errors, self.chain)
        self._delivery = SinkDelivery(
            task,
            self._context,
            stored,
            reader,
            self._offsets,
            errors,
            self.meter,
            self.note,
            self.now,
        )
        self._closing: frozenset[TopicPartition] = frozenset()
        """The partitions whose last commit was returned, and that are to be closed."""
        self._committed = False
        """True if the last event was a commit: a poll follows."""
        self._end: float | None = None
        self._next_commit = self.now() + self.interval
        self._task, self._consumer = task, stored
        with self._context.timing("start()"):
            task.start(self.configs)
        stored.join()

    # --------------------------------------------------------------------------------------- events

    def next(self) -> Event:
        """Return a commit that is due, or how many records were given to the task. Where the task
        raises, what it was given before is committed first.
        """
        try:
            self._finish_last()
            committed, self._committed = self._committed, False
            if not committed and (batch := self._due_commit()) is not None:
                self._committed = True
                return batch
            return self._round(self.longest_poll, self.most)
        except (UnknownOutcome, Fenced):
            raise
        except Exception as e:  # noqa: BLE001  # whatever a plugin raises
            if self._failure is None:
                self._failure = e
                with suppress(Exception):  # the first failure is the one to report
                    if (batch := self._last_commit(self._context.assignment)) is not None:
                        return batch
            raise self._failure from None

    def final_batch(self) -> TransactionBatch | None:
        """Return a commit of the delivered records, after a rebalance in progress: ending during
        one would cause them all to be delivered again. The last one is with ``is_closing``.
        """
        self._finish_last()
        if self._end is None:
            self._end = self.now() + SETTLED_WITHIN
            self._context.commit_requested = True
        while self._context.assigned:
            if (batch := self._due_commit()) is not None:
                return batch
            if not self._offsets.commit_failed or self.now() >= self._end:
                return self._last_commit(self._context.assignment)
            event = self._round(SETTLING_POLL, 1)
            self._context.commit_requested = True
            if isinstance(event, TransactionBatch):
                return event
        return None

    def committed(self, batch: TransactionBatch) -> None:
        self._offsets.committed(batch.offsets)

    def close(self) -> None:
        """Close what is left of the partitions, without a commit, and stop the task."""
        task, self._task = self._task, None
        if task is None:
            return
        remaining = self._context.assignment
        try:
            if remaining:
                with suppress(Exception):  # a failure that is already known ends it here
                    self._close(remaining)
        finally:
            self.errors.discard()
            for line in self.converters.warnings():
                self.note(line)
            task.stop()

    # --------------------------------------------------------------------------------------- rounds

    def _round(self, seconds: float, most: int) -> Event:
        """Poll, and call ``put``; or return the last commit of partitions that are revoked."""
        assert self._consumer is not None
        while True:
            wait = max(0.0, min(seconds, *self._waits()))
            event = self._consumer.poll(wait, most)
            if isinstance(event, Polled):
                break
            if isinstance(event, Assigned):
                self._open(event.partitions, event.positions)
            elif isinstance(event, Lost):
                self._close(event.partitions)
            elif (batch := self._last_commit(event.partitions)) is not None:
                return batch
        if messages := self._admitted(event.messages):
            self._delivery.take(messages)
        if self._delivery.is_due:
            self._delivery.put()
            self.meter.most_active = max(self.meter.most_active, self._offsets.active)
            self._rewind(self._context.take_rewinds())
        return Read(len(messages))

    def _open(self, partitions: Collection[TopicPartition], positions: GroupOffsets) -> None:
        assert self._task is not None
        context = self._context
        context.assigned |= set(partitions)
        context.paused &= context.assigned
        self._offsets.begin({each: positions[each] for each in partitions})
        if partitions:
            self._task.open(partitions)
        self._rewind(context.take_rewinds())
        if held := self._held & set(partitions):
            assert self._consumer is not None
            self._consumer.pause(held)

    def _last_commit(self, partitions: Collection[TopicPartition]) -> TransactionBatch | None:
        """Return the last commit of ``partitions``, which are closed after it; None if they are
        closed already, because there is nothing to commit.
        """
        held = self._context.assignment & set(partitions)
        self._delivery.drop(held)
        self._closing = held
        if (batch := self._offsets.last_commit(held)) is None:
            self._finish_last()
        return batch

    def _finish_last(self) -> None:
        """Complete a commit: close its partitions, and raise the failure that made it the last, if
        there is one. Else seek to the offsets that the task requested.
        """
        closing, self._closing = self._closing, frozenset()
        try:
            if closing:
                self._close(closing)
        finally:
            if self._failure is not None:
                raise self._failure
        self._rewind(self._context.take_rewinds())

    def _close(self, partitions: Collection[TopicPartition]) -> None:
        """Close those of ``partitions`` that are its own."""
        held = self._context.assigned & set(partitions)
        if held:
            self._delivery.drop(held)
            try:
                self._offsets.close(held)
            finally:
                self._context.assigned -= held

    def _due_commit(self) -> TransactionBatch | None:
        if not self._context.commit_requested and self.now() < self._next_commit:
            return None
        self._context.commit_requested = False
        self._next_commit = self.now() + self.interval
        if not self._context.assigned:
            return None
        batch = self._offsets.commit()
        if batch is None:
            if self._offsets.lost:
                self._rewind({at: each.offset for at, each in self._offsets.restart.items()})
            self._rewind(self._context.take_rewinds())
        return batch

    def _waits(self) -> list[float]:
        """The seconds until there is something to do without a record."""
        timeout = self._context.take_timeout()
        return [
            self._next_commit - self.now(),
            *self._delivery.wait(),
            *([] if timeout is None else [timeout]),
        ]

    @property
    def _held(self) -> set[TopicPartition]:
        """The partitions of which no record is delivered."""
        context = self._context
        return context.assigned if context.redelivering else context.paused & context.assigned

    def _admitted(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return those of ``messages`` that can be delivered now; the others are read again."""
        if not (held := self._held):
            return messages
        rewound = {each: offset for each, offset in first_offsets(messages).items() if each in held}
        if rewound:
            assert self._consumer is not None
            self._consumer.seek(rewound)
        return without(messages, rewound)

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Seek to ``offsets`` in assigned partitions; ignore other partitions."""
        held = {
            partition: offset
            for partition, offset in offsets.items()
            if partition in self._context.assigned
        }
        if held:
            assert self._consumer is not None
            self._delivery.drop(held)
            self._consumer.seek(held)
            self._offsets.begin(
                {partition: GroupOffset(offset) for partition, offset in held.items()}
            )
