"""A transform as a supply of the task loop: each poll's records become what is written for them,
and their offsets the group's, in one transaction for each ``commit.interval.ms``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.kafka.group_positions import GroupOffset, next_offsets
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupConsumer, Lost, Polled, Revoked
from connectctl.ops.task_runtime.spi.transaction_batch import IDLE, Event, TransactionBatch
from connectctl.ops.task_runtime.spi.transform import Record, Records, Transform
from connectctl.ops.task_runtime.task.error_originals import ConsumedRecord
from connectctl.ops.task_runtime.task.record_errors import (
    RecordErrors,
    RecordFailure,
    Stage,
    TransactionalLetters,
)
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings
    from connectctl.ops.task_runtime.spi.metrics import TaskMeter
    from connectctl.ops.task_runtime.task.transform_output import OutputSettings

LONGEST_POLL = 0.2
"""Seconds that a poll waits for records at most."""


@dataclass(eq=False)
class TransformSource:
    """``open_task`` makes a transform; ``interval`` is in seconds, ``most`` are records of a
    poll.
    """

    open_task: Callable[[], Transform]
    configs: Mapping[str, str]
    output: OutputSettings
    interval: float
    most: int
    meter: TaskMeter
    now: Callable[[], float] = time.monotonic
    _errors: RecordErrors | None = None
    """What becomes of records that the transform reports; None if ``errors.*`` is not configured."""
    _letters: TransactionalLetters = field(default_factory=TransactionalLetters)
    """The dead letters of ``_errors``."""
    _task: Transform | None = None
    _member: GroupConsumer | None = None
    _offsets: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    """The offsets that the open transaction commits."""
    _opened: float | None = None
    """When the first of its records was read."""
    _uncommitted: bool = False
    """True if any processed records are not committed."""
    _read: int = 0
    """Records of the open transaction, of which some may have become nothing."""

    def handle_errors(
        self, settings: ErrorSettings, connector: str, task: int, log: Callable[[str], None]
    ) -> None:
        """Handle the records that the transform reports, if ``settings`` say how."""
        if settings.tolerate_all or settings.reports:
            self._errors = RecordErrors(settings, connector, task, self._letters, log, self.meter)

    def resume(self, stored: GroupConsumer) -> None:
        """Begin with ``stored``, the member, which joins and reads where its group's offsets are."""
        self.close()
        self.meter.forget()
        self._read = 0
        self._member, self._offsets, self._opened, self._uncommitted = stored, {}, None, False
        self._task = self.open_task()
        if self._errors is not None:
            self._errors.discard()
            self._task.report = self._report
        self._task.start(self.configs)
        stored.join()

    def next(self) -> Event:
        """Return the output for the next records. If the interval is over, the transaction ends
        with them, and before partitions are revoked with what was read of them.
        """
        assert self._member is not None
        assert self._task is not None
        event = self._member.poll(self._patience(), self.most)
        if isinstance(event, Lost):
            subset = ", ".join(map(str, sorted(event.partitions)[:3]))
            raise UnknownOutcome(
                f"the group has taken {subset or 'the membership'} from this member"
            )
        if isinstance(event, Revoked):
            return self._before_revocation()
        messages = event.messages if isinstance(event, Polled) else ()
        self.meter.lag = self._member.lag
        polled = time.monotonic()
        self.meter.read += len(messages)
        self._read += len(messages)
        if not messages:
            return (self.final_batch() if self._is_due() else None) or IDLE
        if self._opened is None:
            self._opened = self.now()
        made = replace(self.output.batch(self._task.process(Records(messages))), polled=polled)
        if letters := self._letters.taken():
            made = replace(made, records=[*made.records, *letters])
        self._member.took("process()", time.monotonic() - polled)
        self._offsets |= next_offsets(messages)
        self._uncommitted = True
        if self._is_due():
            return replace(made, offsets=self._take(), more=False)
        return made

    def _report(self, record: Record, error: Exception) -> None:
        assert self._errors is not None
        original = ConsumedRecord(
            record.topic,
            record.partition,
            record.offset,
            record.key,
            record.value,
            record.headers,
            record.timestamp,
        )
        kind = type(self._task)
        executing = f"{kind.__module__}.{kind.__qualname__}"
        self._errors.failed(RecordFailure(Stage.TRANSFORMATION, executing, original, error))

    def _before_revocation(self) -> Event:
        """Return the end of the transaction that has records of the partitions; in doubt, another
        attempt reads what became of it.
        """
        return self.final_batch() or IDLE

    def _patience(self) -> float:
        if self._opened is None:
            return LONGEST_POLL
        return min(LONGEST_POLL, max(0.0, self._opened + self.interval - self.now()))

    def _is_due(self) -> bool:
        return self._opened is not None and self.now() - self._opened >= self.interval

    def _take(self) -> dict[TopicPartition, GroupOffset]:
        offsets, self._offsets, self._opened = self._offsets, {}, None
        return offsets

    def final_batch(self) -> TransactionBatch | None:
        """The end of the open transaction: everything that was read is processed."""
        return TransactionBatch(offsets=self._take()) if self._offsets else None

    def committed(self, batch: TransactionBatch) -> None:
        """Note that the offsets are committed for the group."""
        self.meter.read_settled += self._read
        self._read = 0
        self._uncommitted = bool(self._offsets)

    @property
    def lag(self) -> int | None:
        return None if self._member is None else self._member.lag

    @property
    def has_more(self) -> bool:
        """Return whether records are left to read, may be left, or are not committed."""
        return self._uncommitted or self._member is None or self._member.has_more

    @property
    def producer_properties(self) -> Mapping[str, str]:
        return {}

    def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            with suppress(Exception):  # it is at its end in any case
                task.stop()
