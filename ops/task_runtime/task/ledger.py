"""The committed offsets of a task: source offsets in a topic, or the offsets of a consumer group.

A transaction contains records and their offsets. The ledger defines what offsets are and how they
are read and written; ``attempt_loop`` determines when.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.task_runtime.task.commit_history import CommitHistory

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.transaction_batch import RefreshableOffsets, StoredOffsets
    from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer


class Ledger(Protocol):
    """The committed offsets of one task. ``refresh`` is called after the initialisation of each
    producer.
    """

    @property
    def topics(self) -> set[str]:
        """The topics to which the transaction writes offsets."""

    def refresh(self, patience: float) -> Any:
        """Return the currently committed offsets, read within ``patience`` seconds (``TimedOut``).
        Raises ``UnknownOutcome`` if they lack commits of this task.
        """

    def before(self, offsets: Any) -> None:
        """Prepare for ``offsets``, which are about to be written."""

    def write(self, producer: TaskProducer, offsets: Any) -> None:
        """Add ``offsets`` to the transaction of ``producer``."""

    def after(self, offsets: Any) -> None:
        """Note that the transaction of ``offsets`` is committed."""


@dataclass(frozen=True)
class SourceOffsetsLedger:
    """Source offsets: ``topic`` is the task's primary offsets topic, ``store`` reads it, and
    ``global_offsets`` writes to the global topic in addition to a dedicated one.
    """

    topic: str
    store: RefreshableOffsets
    global_offsets: GlobalOffsetsWriter | None = None
    history: CommitHistory = field(default_factory=CommitHistory)

    @property
    def topics(self) -> set[str]:
        return {self.topic}

    def refresh(self, patience: float) -> StoredOffsets:
        """Read to the current end, and compare with the task's commits."""
        self.store.refresh(patience)
        self.history.check(self.store)
        if self.global_offsets is not None:
            self.global_offsets.settle(self.store)
        return self.store

    def before(self, offsets: Any) -> None:
        """Write tombstones: one only in the primary topic would make the global topic's value
        effective (KAFKA-15018).
        """
        if self.global_offsets is not None:
            self.global_offsets.write_tombstones(offsets)

    def write(self, producer: TaskProducer, offsets: Any) -> None:
        producer.send_offsets(self.topic, offsets)

    def after(self, offsets: Any) -> None:
        """Write the values to the global topic, after the primary topic has them."""
        self.history.committed(offsets, self.store)
        if self.global_offsets is not None:
            self.global_offsets.write_values(offsets)
