"""The delivered and the committed offsets of a sink, and what it commits.

Source: ``WorkerSinkTask.commitOffsets``. Unlike there, partitions are closed after the commit that
stands for them, and dead letters are written before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.sink import SinkTask
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.spi.transaction_batch import TransactionBatch
from connectctl.ops.task_runtime.task.sink_context import WorkerSinkTaskContext
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    UnknownOutcome,
)


@dataclass
class SinkOffsets:
    """The offsets of one task. ``settle`` waits for the records that must be written before a
    commit. The commit of a ``transactional`` task includes its records.
    """

    task: SinkTask
    context: WorkerSinkTaskContext
    settle: Callable[[], None]
    note: Callable[[str], None]
    meter: SinkMeter
    now: Callable[[], float]
    transactional: bool = False

    def __post_init__(self) -> None:
        self.restart: dict[TopicPartition, GroupOffset] = {}
        """The offset at which each partition is read again: the committed one, the one that the
        task requested, or that of its first record.
        """
        self.delivered: dict[TopicPartition, GroupOffset] = {}
        self.commit_failed = False
        """True if the last commit was refused, and must be repeated."""
        self.lost = False
        """True if the last ``pre_commit`` raised."""
        self._began, self._counted = 0.0, self.meter.sent

    @property
    def active(self) -> int:
        """Return the number of delivered records that are not committed. Offsets without a record
        count as well, as in Connect.
        """
        return sum(
            max(0, each.offset - self.restart[at].offset)
            for at, each in self.delivered.items()
            if at in self.restart
        )

    def begin(self, offsets: GroupOffsets) -> None:
        """Note that partitions are read from ``offsets``. Records from there on no longer count as
        delivered.
        """
        self.restart.update(offsets)
        self.delivered.update(offsets)

    def begin_unknown(self, offsets: GroupOffsets) -> None:
        """Call ``begin`` for those of ``offsets`` that belong to partitions without an offset."""
        self.begin(
            {
                partition: offset
                for partition, offset in offsets.items()
                if partition not in self.restart
            }
        )

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.restart.pop(partition, None)
            self.delivered.pop(partition, None)

    def commit(self) -> TransactionBatch | None:
        """Return a commit of the task's offsets; None if there is nothing to commit, or
        ``pre_commit`` raised and all is read again (``restart``).
        """
        return self._offered(dict(self.delivered), ", rewinding to last committed offsets")

    def last_commit(self, partitions: Collection[TopicPartition]) -> TransactionBatch | None:
        """Return a commit of ``partitions`` before they are closed."""
        offered = {
            partition: offset
            for partition, offset in self.delivered.items()
            if partition in partitions
        }
        return self._offered(offered, " during close", closing=True)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Close ``partitions``, of which nothing is committed any more."""
        try:
            self.task.close(partitions)
        finally:
            self.forget(partitions)

    def _offered(
        self, offered: GroupOffsets, problem: str, *, closing: bool = False
    ) -> TransactionBatch | None:
        """Return a commit of the offsets that the task accepts from ``offered``. An exception of
        ``pre_commit`` is noted with ``problem``.
        """
        self.lost = False
        if not offered:
            return None
        began = self.now()
        try:
            with (
                self.context.timing("pre_commit()"),
                self.context.closing() if closing else nullcontext(),
            ):
                returned = self.task.pre_commit(dict(offered))
        except (Fenced, UnknownOutcome):
            raise
        except Exception as e:  # noqa: BLE001  # as in Connect: whatever it raises, the records come again
            self.meter.failed_commits += 1
            self.note(f"Offset commit failed{problem}: {type(e).__name__}: {e}")
            self.lost = True
            return None
        return self._batch(self._accepted(returned, offered), began)

    def _accepted(
        self, given: GroupOffsets | None, offered: GroupOffsets
    ) -> dict[TopicPartition, GroupOffset]:
        """Return those of ``given`` that can be committed, and are not committed yet."""
        found: dict[TopicPartition, GroupOffset] = {}
        for partition, offset in (given or {}).items():
            most = offered.get(partition)
            if partition not in self.context.assigned:
                self._ignored(partition, offset, "the partition is not assigned")
            elif most is not None and offset.offset > most.offset:
                self._ignored(
                    partition, offset, f"not yet consumed, the next record is {most.offset}"
                )
            elif most is not None and offset != self.restart.get(partition):
                found[partition] = offset
        return found

    def _ignored(self, partition: TopicPartition, offset: GroupOffset, why: str) -> None:
        self.note(f"Ignoring invalid offset {offset.offset} of pre_commit for {partition}: {why}")

    def _batch(
        self, offsets: dict[TopicPartition, GroupOffset], began: float
    ) -> TransactionBatch | None:
        if not offsets:
            self.meter.commit_skips += 1
            self.commit_failed = False
            return None
        # Its error ends the task: otherwise a record without a written dead letter would be lost.
        self.settle()
        self._began = began
        return TransactionBatch(
            list(self.task.transaction_records(offsets)) if self.transactional else (),
            offsets=offsets,
            read=self.meter.sent - self._counted,
            refused=self.refused,
        )

    def refused(self, error: Exception) -> None:
        """Note that the last commit was refused and must be repeated."""
        self.meter.failed_commits += 1
        self.commit_failed = True
        self.note(f"Commit of offsets failed: {error}")

    def committed(self, offsets: GroupOffsets) -> None:
        """Note that the last commit succeeded."""
        self.meter.committed(self.now() - self._began)
        self._counted = self.meter.sent
        self.commit_failed = False
        self.restart.update(offsets)
        self.task.committed(offsets)
