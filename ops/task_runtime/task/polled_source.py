"""A polled task as a supply of the kernel: batches become steps, offsets travel with their
records.
"""

from __future__ import annotations

import copy
import logging
import operator
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from connectctl.ops.connect.offset_rules import are_plain, format_problems, stored_form
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End, Segment
from connectctl.ops.task_runtime.spi.connector import (
    Batch,
    Offset,
    Partition,
    RetriableError,
    SourceRecord,
    SourceTask,
    TaskContext,
)
from connectctl.ops.task_runtime.spi.converters import Converters
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.transaction_batch import (
    END,
    IDLE,
    Event,
    StoredOffsets,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.source_conversion import (
    Converted,
    SourceConversion,
    source_conversion,
)
from connectctl.ops.task_runtime.task.task_offsets import TaskOffsets
from connectctl.ops.task_runtime.task.task_thread import CallingThread, TaskThread

_PARTITION = operator.attrgetter("source_partition")


@dataclass(eq=False)
class PolledSource:
    """``make`` creates a task. Raises ``ConnectctlError`` for invalid results of a task, and the
    task's exceptions.
    """

    make: Callable[[], SourceTask]
    connector: str
    configs: Mapping[str, str]
    new_boundaries: Callable[[], Boundaries]
    converters: Converters
    offsets_topic: str
    meter: TaskMeter = field(default_factory=TaskMeter)
    conversion: SourceConversion | None = None
    """Where it is None, records are converted by ``converters`` alone."""

    def __post_init__(self) -> None:
        self._conversion = self.conversion or source_conversion(
            {"name": self.connector}, self.converters, 0, self.offsets_topic, self.meter
        )
        self._offsets: TaskOffsets
        self._task: SourceTask | None = None
        self._caller: CallingThread | TaskThread = CallingThread()
        self._lag: int | None = None
        self._settled: dict[bytes, bytes | None] = {}
        self._reset()

    def _reset(self) -> None:
        self._waiting: deque[Segment] = deque()
        self._sent = 0
        self._records: list[SourceRecord] = []
        self._moved: dict[bytes, tuple[Partition, Offset]] = {}
        self._flushing: dict[bytes, bytes | None] = {}
        self._in_hand = False
        self._unasked = False
        self._all_dropped = False
        self._conversion.errors.discard()
        self._polled: float | None = None
        """When the current records were polled."""
        self._failing: str | None = None
        """The ``RetriableError`` of the last poll."""

    def resume(self, stored: StoredOffsets) -> None:
        """Keep the task if nothing is pending and it has the stored offsets; else start a new one
        at these.
        """
        idle = (
            self._task is not None and not self._in_hand and not self._waiting and not self._moved
        )
        if idle and self._offsets.unchanged(stored, self._settled):
            return
        self.close()
        self._reset()
        self._settled = {}
        self._offsets = TaskOffsets(self.connector, stored)
        self._boundaries = self.new_boundaries()
        self._caller = CallingThread() if self._boundaries.pace is None else TaskThread()
        try:
            task = self._caller.call(self._started)
        except BaseException:
            self._caller.close()
            raise
        # Records of a whole transaction are kept only for tasks with ``commit_record``.
        self._wants_records = _overrides(task.commit_record, SourceTask.commit_record)
        self._updates = _overrides(task.update_offsets, SourceTask.update_offsets)
        self._task = task

    def _started(self) -> SourceTask:
        task = self.make()
        task.context = TaskContext(self._offsets, self.configs, self._boundaries.requests)
        try:
            task.start(self.configs)
        except BaseException:
            # As in Connect, the task closes what it has opened; the first failure is raised.
            with suppress(Exception):
                task.stop()
            raise
        return task

    def next(self) -> Event:
        """Return the records of one batch, or of its part up to the end of a transaction."""
        task = self._task
        assert task is not None
        self._boundaries.ready()
        self._all_dropped = False
        if not self._waiting:
            self._poll_once(task)
        if self._waiting and (batch := self._batch_of(self._waiting.popleft())) is not None:
            return batch
        return END if not self._waiting and self._is_finished(task) else IDLE

    def _poll_once(self, task: SourceTask) -> None:
        """Split the next poll into segments, or end the transaction if it cannot wait for the
        poll.
        """
        # ``update_offsets`` (KIP-910) is called between two polls.
        patience = None if self._updates else self._boundaries.patience()
        polled = self._caller.poll(partial(self._poll, task), patience)
        if polled is None:
            self._waiting.extend(self._boundaries.cut(()))
        elif polled.batch is not None:
            self._polled = polled.at
            self.meter.poll(len(polled.batch), polled.seconds)
            self._waiting.extend(self._boundaries.cut(polled.batch, polled.at))

    def _is_finished(self, task: SourceTask) -> bool:
        return not self._caller.is_busy and self._caller.call(lambda: task.finished)

    def _poll(self, task: SourceTask) -> Batch | None:
        """Poll once; None if the task has finished. A ``RetriableError`` is a poll without records,
        as in ``AbstractWorkerSourceTask.poll``.
        """
        if task.finished:
            return None
        try:
            batch = task.poll() or ()
        except RetriableError as e:
            if self._failing != str(e):
                logging.getLogger("connectctl").warning(
                    "%s failed to poll records, and retries: %s", self.connector, e
                )
            self._failing = str(e)
            return ()
        self._failing = None
        return batch

    def _batch_of(self, segment: Segment) -> TransactionBatch | None:
        converted = self._conversion.of(segment.records)
        self._all_dropped = 0 < len(segment.records) == converted.dropped
        made = TransactionBatch(
            [*converted.records, *converted.letters],
            converted.bulks,
            more=True,
            describe_record=partial(_named_message, segment.records, converted),
            polled=self._polled,
        )
        self._sent += len(segment.records)
        if self._wants_records and isinstance(segment.records, Sequence):
            self._records += segment.records
        self._track_offsets(segment.records)
        if segment.end is None:
            self._in_hand = self._in_hand or bool(segment.records)
            return made if segment.records else None
        if segment.end is End.ABORT and not self._sent:
            return None  # nothing to abort
        self._unasked = not self._sent and not segment.asks
        self._flushing = {} if self._unasked else self._offsets_to_commit()
        if not self._sent and not self._flushing:
            return None
        self._in_hand = True
        return replace(made, offsets=self._flushing, abort=segment.end is End.ABORT, more=False)

    def _track_offsets(self, records: Batch) -> None:
        """Store the newest offset of every source partition."""
        if not isinstance(records, Sequence):
            self._track(records.source_partition, records.source_offset)
            return
        if not are_plain([r.source_offset for r in records if r.source_offset is not None]):
            for record in records:
                self._check("poll", record.source_partition, record.source_offset)
        if len(set(map(id, map(_PARTITION, records)))) == 1:
            # mostly there is just one
            records = [r for r in records[-1:] if r.source_offset is not None] or records
        objects = {
            id(r.source_partition): n for n, r in enumerate(records) if r.source_offset is not None
        }
        # Equal partitions may be as many objects as records, of which the last counts. Unlike ==,
        # repr distinguishes 1, True and 1.0.
        newest = {repr(records[n].source_partition): n for n in sorted(objects.values())}
        for n in sorted(newest.values()):
            partition, offset = records[n].source_partition, records[n].source_offset
            assert offset is not None
            self._track(partition, offset)

    def _track(self, partition: Partition, offset: Offset) -> None:
        """Store one offset. Raises ``ConnectctlError`` unless Connect would write both."""
        self._check("poll", partition, offset)
        self._moved[self._offsets.key(partition)] = partition, offset

    def _check(self, method: str, partition: Partition, offset: Offset | None) -> None:
        """Raise ``ConnectctlError`` for a source offset that Connect would not write, returned by
        ``method`` of the task.
        """
        problems = format_problems("source_partition", partition)
        problems += [] if offset is None else format_problems("source_offset", offset)
        if problems:
            raise ConnectctlError(
                f"{self._named_method(method)} returned an invalid source offset",
                why=f"{offset!r} for {partition!r}: {'; '.join(problems)}",
                next_step="Return dicts of strings, numbers of 64 bits, booleans, bytes and None, "
                "without lists and dicts.",
                code="bad-offset",
            )

    def _named_method(self, method: str) -> str:
        return f"{type(self._task).__name__}.{method} of {self.connector}"

    def _updated(
        self, about: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> list[tuple[Partition, Offset | None]]:
        """Return what ``update_offsets`` returns for ``about``. Raises ``ConnectctlError`` if these
        are no offsets.
        """
        assert self._task is not None
        updates: Any = self._caller.call(partial(self._task.update_offsets, copy.deepcopy(about)))
        if not updates:
            return []
        try:
            # In Python keys of a mapping are no mappings: they are their pairs.
            pairs = (
                updates.items()
                if isinstance(updates, Mapping)
                else [(partition, each) for partition, each in updates]
            )
            found: list[tuple[Partition, Offset | None]] = [
                (dict(partition), offset) for partition, offset in pairs
            ]
        except (TypeError, ValueError) as e:
            raise ConnectctlError(
                f"{self._named_method('update_offsets')} returned {updates!r}, which is neither a "
                "mapping nor pairs",
                why=str(e),
                next_step="Return a list of pairs of a source partition, a dict, and its offset, "
                "a dict or None; or a mapping of these, whose keys are tuples of the "
                "items of a source partition.",
                code="bad-offset",
            ) from e
        for partition, offset in found:
            self._check("update_offsets", partition, offset)
        return found

    def _offsets_to_commit(self) -> dict[bytes, bytes | None]:
        """Return the offsets of this transaction, with those of ``update_offsets`` (KIP-910).

        Updates of source partitions without records are ignored if already committed: an idle task
        that repeats them would write a transaction each time.
        """
        assert self._task is not None
        flushed: dict[bytes, bytes | None] = {
            key: _raw(offset) for key, (_, offset) in self._moved.items()
        }
        if not self._updates:
            return flushed
        about = [(dict(partition), dict(offset)) for partition, offset in self._moved.values()]
        updated = {
            self._offsets.key(partition): _raw(offset) for partition, offset in self._updated(about)
        }
        return flushed | {
            key: raw
            for key, raw in updated.items()
            if key in flushed or raw != self._committed(key)
        }

    def _committed(self, key: bytes) -> bytes | None:
        """Return the newest committed offset of ``key``: the task's own, else the one it began
        with.
        """
        return self._settled[key] if key in self._settled else self._offsets.committed(key)

    def final_batch(self) -> TransactionBatch | None:
        """Return the end of the open transaction, if the boundaries allow one without the task's
        request.
        """
        if not (self._sent or self._unasked) or any(segment.records for segment in self._waiting):
            return None
        end = self._boundaries.last()
        return None if end is None else self._batch_of(Segment((), end))

    def committed(self, batch: TransactionBatch) -> None:
        """Call the task in Connect's order: ``commit_record`` for each record, then ``commit``."""
        task = self._task
        assert task is not None
        self._boundaries.ended()
        self._settled |= self._flushing
        records, self._records, self._sent = self._records, [], 0
        self._moved, self._flushing, self._in_hand = {}, {}, False

        def notify() -> None:
            if not batch.abort:
                for record in records:
                    task.commit_record(record)
            task.commit()

        self._caller.later(notify)

    @property
    def lag(self) -> int | None:
        """Return how much the task has left to read, if known; the last value during a poll."""
        task = self._task
        if task is not None and not self._caller.is_busy:
            self._lag = self._caller.call(lambda: task.lag)
        return None if task is None else self._lag

    @property
    def has_more(self) -> bool:
        """Return whether the last poll failed and is retried, or gave records that were all left
        out; otherwise a poll without records means idle.
        """
        return self._failing is not None or self._all_dropped

    @property
    def producer_properties(self) -> Mapping[str, str]:
        """Return no properties: tasks differ too much."""
        return {}

    def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            try:
                self._caller.call(task.stop)
            finally:
                self._caller.close()


def _overrides(method: Callable[..., Any], default: Callable[..., Any]) -> bool:
    """Return whether a task overrides this method."""
    return getattr(method, "__func__", None) is not default


def _named_message(records: Batch, converted: Converted, number: int) -> str:
    """Return the name of the polled record that became message ``number``."""
    if converted.numbers is None:
        return _named(records, bool(converted.bulks), number)
    if number >= len(converted.numbers):
        return f"The dead letter {number - len(converted.numbers) + 1} of the last poll"
    return _named(records, False, converted.numbers[number])


def _named(records: Batch, grouped: bool, number: int) -> str:
    """Return the name of record ``number`` in the source. Records are numbered in their order, or
    ``grouped`` by topic as bulks are.
    """
    if not isinstance(records, Sequence):
        before = len(records) - 1 - number
        nth = f", {before} before the one" if before else ""
        return (
            f"The record of {_text(records.source_partition)}{nth} at "
            f"{_text(records.source_offset)}"
        )
    if grouped:
        topics = list(dict.fromkeys(record.topic for record in records))
        records = sorted(records, key=lambda record: topics.index(record.topic))
    record = records[number]
    return f"The record of {_text(record.source_partition)} at {_text(record.source_offset)}"


def _text(members: Mapping[str, Any] | None) -> str:
    return connect_json(None if members is None else stored_form(members))


def _raw(offset: Offset | None) -> bytes | None:
    return None if offset is None else _text(offset).encode()
