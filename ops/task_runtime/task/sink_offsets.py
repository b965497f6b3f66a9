"""The delivered and the committed offsets of a sink, and its commits.

Source: ``WorkerSinkTask.commitOffsets``. Unlike there, partitions are closed behind the commit that
stands for them, and dead letters are written before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.sink import SinkTask
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.task.retries import is_retriable
from connectctl.ops.task_runtime.task.sink_context import WorkerSinkTaskContext
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    Rebalancing,
    UnknownOutcome,
)


@dataclass
class SinkOffsets:
    """The offsets of one task. ``write`` commits them for the group; ``settle`` waits for what is
    to be written before.
    """

    task: SinkTask
    context: WorkerSinkTaskContext
    write: Callable[[GroupOffsets], None]
    settle: Callable[[], None]
    note: Callable[[str], None]
    meter: SinkMeter
    now: Callable[[], float]

    def __post_init__(self) -> None:
        self.restart: dict[TopicPartition, GroupOffset] = {}
        """Where a partition is read again from: what is committed, what the task asked for, or its
        first record.
        """
        self.delivered: dict[TopicPartition, GroupOffset] = {}
        self.commit_failed = False
        """Whether the last commit failed, and is to be repeated."""

    @property
    def active(self) -> int:
        """How many records were delivered and are not committed; offsets without a record count as
        well, as in Connect.
        """
        return sum(
            max(0, each.offset - self.restart[at].offset)
            for at, each in self.delivered.items()
            if at in self.restart
        )

    def begin(self, offsets: GroupOffsets) -> None:
        """Partitions are read from ``offsets``; nothing behind these counts as delivered any
        more.
        """
        self.restart.update(offsets)
        self.delivered.update(offsets)

    def begin_unknown(self, offsets: GroupOffsets) -> None:
        """The same for those of ``offsets`` that have none yet."""
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

    def commit(self) -> bool:
        """Commit the task's offsets. False if ``pre_commit`` raised, so that all is read again."""
        return self._commit_offered(dict(self.delivered), ", rewinding to last committed offsets")

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Commit ``partitions`` a last time, and close them even if the commit fails."""
        offered = {
            partition: offset
            for partition, offset in self.delivered.items()
            if partition in partitions
        }
        try:
            self._commit_offered(offered, " during close", closing=True)
        finally:
            self.close_lost(partitions)

    def close_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Close ``partitions`` without a commit, which is no longer allowed."""
        try:
            self.task.close(partitions)
        finally:
            self.forget(partitions)

    def _commit_offered(
        self, offered: GroupOffsets, problem: str, *, closing: bool = False
    ) -> bool:
        """Commit what the task gives of ``offered``. False where ``pre_commit`` raised, which is
        noted as a ``problem``.
        """
        if not offered:
            return True
        began = self.now()
        try:
            with (
                self.context.timing("pre_commit()"),
                self.context.closing() if closing else nullcontext(),
            ):
                given = self.task.pre_commit(dict(offered))
        except (Fenced, UnknownOutcome):
            raise
        except Exception as e:  # noqa: BLE001  # as in Connect: whatever it raises, the records come again
            self.meter.failed_commits += 1
            self.note(f"Offset commit failed{problem}: {type(e).__name__}: {e}")
            return False
        self._write(self._accepted(given, offered), began)
        return True

    def _accepted(
        self, given: GroupOffsets | None, offered: GroupOffsets
    ) -> dict[TopicPartition, GroupOffset]:
        """Those of ``given`` that can be committed, and are not yet."""
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

    def _write(self, offsets: dict[TopicPartition, GroupOffset], began: float) -> None:
        if not offsets:
            self.meter.commit_skips += 1
            return
        # Its error ends the task: a dead letter that is not written is a record that nobody has any
        # more.
        self.settle()
        try:
            with self.meter.committing(began, self.now):
                self.write(offsets)
        except (ConnectctlError, Rebalancing) as e:
            if isinstance(e, ConnectctlError) and not is_retriable(e):
                raise  # a missing right, for example: waiting does not help
            self.commit_failed = True
            self.note(f"Commit of offsets failed: {e}")
        else:
            self.commit_failed = False
            self.restart.update(offsets)
            self.task.committed(offsets)
