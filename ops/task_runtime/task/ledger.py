"""Where a task stands, as the task loop knows it: source offsets in a topic, or the offsets of a consumer group.

A transaction holds records and the offsets that stand for them. What offsets are, where they are read and how they are
written, is the ledger's; when each of it happens, is the loop's (``exactly_once_task``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.task_runtime.task.commit_history import CommitHistory

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.transaction_batch import RefreshableOffsets, StoredOffsets
    from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer


class Ledger(Protocol):
    """The committed offsets of one task. ``refresh`` is called behind the initialisation of each producer."""

    @property
    def topics(self) -> set[str]:
        """The topics that its records go to in the transaction."""

    def refresh(self, patience: float) -> Any:
        """What the source begins with: what is committed now, read within ``patience`` seconds (``TimedOut``). Raises
        ``UnknownOutcome`` where it lacks what this task has committed.
        """

    def open(self, finish: Callable[[], None]) -> None:
        """A producer is ready. ``finish`` commits what its transaction has so far, for a ledger that has to give it up."""

    def before(self, offsets: Any) -> None:
        """``offsets`` are about to be written."""

    def write(self, producer: TaskProducer, offsets: Any) -> None:
        """Put them into the transaction of ``producer``."""

    def after(self, offsets: Any) -> None:
        """Their transaction is committed for certain."""


@dataclass(frozen=True)
class SourceOffsetsLedger:
    """Source offsets: ``topic`` is the task's primary offsets topic, ``store`` reads it, and ``global_offsets`` writes to
    the global topic behind a dedicated one.
    """

    topic: str
    store: RefreshableOffsets
    global_offsets: GlobalOffsetsWriter | None = None
    history: CommitHistory = field(default_factory=CommitHistory)

    @property
    def topics(self) -> set[str]:
        return {self.topic}

    def refresh(self, patience: float) -> StoredOffsets:
        """Read to an end that is taken now, and hold it against what was committed."""
        self.store.refresh(patience)
        self.history.check(self.store)
        if self.global_offsets is not None:
            self.global_offsets.settle(self.store)
        return self.store

    def open(self, finish: Callable[[], None]) -> None:
        """Nothing: source partitions are not taken from a task while it runs."""

    def before(self, offsets: Any) -> None:
        """A tombstone that only the primary topic had would let the global topic's value come back (KAFKA-15018)."""
        if self.global_offsets is not None:
            self.global_offsets.write_tombstones(offsets)

    def write(self, producer: TaskProducer, offsets: Any) -> None:
        producer.send_offsets(self.topic, offsets)

    def after(self, offsets: Any) -> None:
        """The global topic gets the values once the primary topic has them."""
        self.history.committed(offsets, self.store)
        if self.global_offsets is not None:
            self.global_offsets.write_values(offsets)
