"""The offsets of a consumer group as the ledger of a task that has a producer for each of its partitions.

A producer is opened before the committed offset of its partition is read, and the generation is checked behind that: as for
the one of a task (``exactly_once_task``), because the initialisation may have waited for long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.task.partition_producers import PartitionProducers
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer


class PartitionLedger(GroupLedger):
    """See ``GroupLedger``. ``stale_because`` says why the task's generation is not the newest."""

    def __init__(
        self,
        open_member: Callable[[], GroupConsumer],
        patience: float,
        stale_because: Callable[[], str | None] = lambda: None,
    ):
        super().__init__(open_member, patience)
        self._stale_because = stale_because
        self._producers: PartitionProducers | None = None

    def producers(
        self,
        open_producer: Callable[[TopicPartition], TaskProducer],
        timeout_ms: int,
        discarded: Callable[[], None] = lambda: None,
    ) -> PartitionProducers:
        """New producers, of the partitions that will be assigned from now on. ``discarded`` is called at their end."""
        self._producers = PartitionProducers(open_producer, timeout_ms, lambda: self.member.is_replaced, discarded)
        return self._producers

    def assigning(self, partitions: Collection[TopicPartition]) -> None:
        """Open their producers. Raises ``UnknownOutcome`` where the task is stale by then: it looks again and ends."""
        assert self._producers is not None
        if not partitions:
            return
        self._producers.open(partitions, self._patience)
        if why := self._stale_because():
            raise UnknownOutcome(why)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit what was made of their records, and close their producers."""
        assert self._producers is not None
        super().revoked(partitions)
        self._producers.close(partitions)
