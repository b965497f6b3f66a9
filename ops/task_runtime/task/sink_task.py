"""The loop of one sink task: commit, poll, convert, put.

Source: ``WorkerSinkTask``, with KIP-275. The order of calls::

    start  join → open                                        positions are what is committed
    round  pre_commit → commit, each interval or on request;  raised: read again from what is committed
           poll → convert (errors.*) → put;                   RetriableError: the same batch after the timeout, all paused
    revoked, shut down   pre_commit with is_closing → commit → close, of those partitions alone
    lost                 close
    end    stop

Unlike in Connect, no records are lost or reordered: a batch that waits for redelivery is dropped if
its partitions are rewound, and a rewind takes effect before the next commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
from connectctl.ops.task_runtime.group.consumer_settings import MOST_RECORDS
from connectctl.ops.task_runtime.spi.metrics import Metrics
from connectctl.ops.task_runtime.spi.reading_converters import ReadingConverters
from connectctl.ops.task_runtime.spi.sink import SinkTask
from connectctl.ops.task_runtime.spi.sink_meter import sink_metrics
from connectctl.ops.task_runtime.task.sink_context import WorkerSinkTaskContext
from connectctl.ops.task_runtime.task.sink_delivery import SinkDelivery
from connectctl.ops.task_runtime.task.sink_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_offsets import SinkOffsets
from connectctl.ops.task_runtime.task.sink_records import RecordReader, first_offsets, without
from connectctl.ops.task_runtime.task.transactional_producer import Fenced, UnknownOutcome

DEFAULT_INTERVAL = 60.0
"""Seconds: ``offset.flush.interval.ms``."""
SETTLING_POLL = 0.1


class WorkerSinkTask:
    """Runs ``task`` on the records of ``consumer``, which the caller closes afterwards. All calls
    are made by one thread.

    ``commit`` writes the group's offsets and returns afterwards; by default the consumer's.
    ``interval`` is in seconds, between two commits. ``note`` gets messages for the user, one line
    each.
    """

    def __init__(
        self,
        task: SinkTask,
        consumer: GroupConsumer,
        configs: Mapping[str, str],
        converters: ReadingConverters,
        errors: RecordErrors,
        *,
        interval: float = DEFAULT_INTERVAL,
        commit: Callable[[GroupOffsets], None] | None = None,
        note: Callable[[str], None] = lambda line: None,
        now: Callable[[], float] = time.monotonic,
    ):
        self._task, self._consumer, self._configs = task, consumer, configs
        self._interval, self._now = interval, now
        self.meter = errors.meter
        self._context = WorkerSinkTaskContext(
            configs, consumer, errors if errors.settings.reports else None
        )
        self._offsets = SinkOffsets(
            task, self._context, commit or consumer.commit, errors.flush, note, self.meter, now
        )
        self._delivery = SinkDelivery(
            task,
            self._context,
            consumer,
            RecordReader(converters, errors),
            self._offsets,
            errors,
            note,
            now,
        )
        self._next_commit = 0.0
        self._closed = self._fenced = False

    @property
    def metrics(self) -> Metrics:
        """Its metrics so far, by Connect's names."""
        return sink_metrics(self.meter, self._offsets.active, len(self._context.assigned))

    @property
    def redelivering(self) -> bool:
        """Whether a batch waits for redelivery."""
        return self._context.redelivering

    def start(self, patience: float) -> None:
        """Start the task, and wait for its first partitions for at most ``patience`` seconds
        (``TimedOut``).
        """
        self._task.context = self._context
        self._task.start(self._configs)
        self._next_commit = self._now() + self._interval
        with self._noticing_fences():
            self._consumer.join(self, patience)
            self._rewind(self._context.take_rewinds())

    def iterate(self, seconds: float, most: int = MOST_RECORDS) -> int:
        """Run one round, with a poll of at most ``seconds``; return the number of records. Raises
        the task's exceptions.
        """
        with self._noticing_fences():
            self._commit_if_due()
            wait = max(0.0, min(seconds, *self._waits()))
            messages = self._admitted(self._consumer.poll(wait, most))
            if messages:
                self._delivery.take(messages)
            if self._delivery.is_due:
                self._delivery.put()
                self.meter.most_active = max(self.meter.most_active, self._offsets.active)
                self._rewind(self._context.take_rewinds())
            return len(messages)

    def settle(self, seconds: float) -> None:
        """Commit the delivered records before the end, within ``seconds``, after a rebalance in
        progress. Ending during a rebalance would cause them all to be delivered again.
        """
        end = self._now() + seconds
        with self._noticing_fences():
            while True:
                self._context.commit_requested = True
                self._commit_if_due()
                if not self._offsets.commit_failed or self._now() >= end:
                    return
                if messages := self._admitted(self._consumer.poll(SETTLING_POLL, 1)):
                    self._delivery.take(messages)
                if self._delivery.is_due:
                    self._delivery.put()

    def close(self) -> None:
        """Commit and close all partitions, and stop the task, also after a failure. A member that
        is fenced or unusable commits nothing.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._remove(self._context.assignment, lost=self._fenced)
        finally:
            self._task.stop()

    def assigned(self, partitions: Collection[TopicPartition], positions: GroupOffsets) -> None:
        self._context.assigned |= set(partitions)
        self._context.paused &= self._context.assigned
        self._context.rebalancing = True
        self._offsets.begin({each: positions[each] for each in partitions})
        if partitions:
            self._task.open(partitions)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        if not self._closed:
            self._remove(partitions, lost=False)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        if not self._closed:
            self._remove(partitions, lost=True)

    @contextmanager
    def _noticing_fences(self) -> Iterator[None]:
        try:
            yield
        except (UnknownOutcome, Fenced):
            self._fenced = True
            raise

    def _remove(self, partitions: Collection[TopicPartition], *, lost: bool) -> None:
        own = self._context.assigned & set(partitions)
        if not own:
            return
        self._context.rebalancing = True
        self._delivery.drop(own)
        try:
            (self._offsets.close_lost if lost else self._offsets.close)(own)
        finally:
            self._context.assigned -= own

    def _commit_if_due(self) -> None:
        if not self._context.commit_requested and self._now() < self._next_commit:
            return
        self._context.commit_requested = False
        self._next_commit = self._now() + self._interval
        if not self._context.assigned:
            return
        if not self._offsets.commit():
            self._rewind(
                {partition: each.offset for partition, each in self._offsets.restart.items()}
            )
        self._rewind(self._context.take_rewinds())

    def _waits(self) -> list[float]:
        """The seconds until there is something to do without a record."""
        asked = self._context.take_timeout()
        return [
            self._next_commit - self._now(),
            *self._delivery.wait(),
            *([] if asked is None else [asked]),
        ]

    def _admitted(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Those of ``messages`` that can be delivered now, after what the task may have asked for
        in a rebalance.
        """
        rewound = self._rewind(self._context.take_rewinds())
        messages = without(messages, rewound)
        held = (
            self._context.assigned
            if self._context.redelivering
            else self._context.paused & self._context.assigned
        )
        if self._context.rebalancing:
            self._context.rebalancing = False
            if held:
                self._consumer.pause(held)
            if others := self._context.assigned - held:
                self._consumer.resume(others)
        back = (
            {each: offset for each, offset in first_offsets(messages).items() if each in held}
            if held
            else {}
        )
        if back:
            self._consumer.seek(back)
        return without(messages, back)

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """Read on from ``offsets``, as far as they are of partitions of its own; these are what is
        returned.
        """
        own = {
            partition: offset
            for partition, offset in offsets.items()
            if partition in self._context.assigned
        }
        if own:
            self._delivery.drop(own)
            self._consumer.seek(own)
            self._offsets.begin(
                {partition: GroupOffset(offset) for partition, offset in own.items()}
            )
        return set(own)
