"""A sink's offsets, and what it writes about its data, in one transaction (KIP-447): both are there, or neither is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import Rebalancing, TaskProducer, UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.sink import SinkTask


@dataclass(frozen=True)
class TransactionalCommit:
    """Commits offsets of ``consumer`` with the records that ``task`` has for them, through ``producer``, which is
    initialised. ``patience`` is in seconds. Raises ``UnknownOutcome`` and ``Fenced``: the attempt is over then, and its
    producer is discarded, which aborts what is open.
    """

    producer: TaskProducer
    consumer: GroupConsumer
    task: SinkTask
    patience: float

    def __call__(self, offsets: GroupOffsets) -> None:
        try:
            self.producer.begin()
            if records := list(self.task.transaction_records(offsets)):
                self.producer.send(TransactionBatch(records))
            self.producer.send_group_offsets(offsets, self.consumer, self.patience)
            self.producer.commit(self.patience)
        except Rebalancing:
            self.producer.abort(self.patience)  # and the next commit is of the next generation
            raise
        except ConnectctlError as e:  # which WorkerSinkTask would only note; but what came of it is not known
            raise UnknownOutcome(str(e)) from e
        if why := self.producer.unusable_because():
            raise UnknownOutcome(why)
