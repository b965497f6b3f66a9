"""A sink's offsets, and what it writes about its data, in one transaction (KIP-447): both are
there, or neither is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import TransactionBatch
from connectctl.ops.task_runtime.task.fence_cause import LONGER, explained
from connectctl.ops.task_runtime.task.retries import is_retriable
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    Rebalancing,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.sink import SinkTask


@dataclass(frozen=True)
class TransactionalCommit:
    """Commits offsets of ``consumer`` with the records that ``task`` has for them, through
    ``producer``, which is initialised. ``patience`` is in seconds. Raises ``UnknownOutcome`` and
    ``Fenced``, after which the attempt is over and its discarded producer has aborted what was
    open, and ``ConnectctlError`` where the user has to act.
    """

    producer: TaskProducer
    consumer: GroupConsumer
    task: SinkTask
    patience: float
    checked_topics: set[str] = field(default_factory=set)
    """Topics in which no older transaction of the producer is open."""

    def __call__(self, offsets: GroupOffsets) -> None:
        try:
            self._commit(offsets)
        except Rebalancing:
            self.producer.abort(self.patience)  # and the next commit is of the next generation
            raise
        except Fenced as e:
            raise explained(self.producer, e, f"{LONGER}.") from e
        except ConnectctlError as e:
            if is_retriable(e):
                raise UnknownOutcome(str(e)) from e
            raise
        if why := self.producer.unusable_because():
            raise UnknownOutcome(why)

    def _commit(self, offsets: GroupOffsets) -> None:
        records = list(self.task.transaction_records(offsets))
        batch = TransactionBatch(records)
        if new := batch.topics - self.checked_topics:
            if why := self.producer.open_older_transaction(sorted(new)):
                raise UnknownOutcome(why)
            self.checked_topics.update(new)
        self.producer.begin()
        if records:
            self.producer.send(batch)
        self.producer.send_group_offsets(offsets, self.consumer, self.patience)
        self.producer.commit(self.patience)
