"""The offsets of a consumer group as a task's ledger: the member joins behind the initialisation of
each producer, and its group's offsets are in the transactions of the records that were made of them
(KIP-447).

The order is that of ``exactly_once_task``; what a group adds to it: the producer of the slot's
fixed transactional id is initialised before the member joins, which ends what its predecessor had
pending, so that stable offsets are there at once. A partition that is revoked is given up behind a
commit of everything that was made of its records. One that is lost is another member's already:
nothing of it is committed, and everything begins anew. A doubt of the producer, such as a newer
generation of the group that librdkafka has joined meanwhile, is none of the member, which only
reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer


class GroupLedger:
    """The ledger and the rebalance listener of one task. ``open_member`` gives a new member;
    ``patience`` is in seconds, for a rebalance, which includes the wait for pending offsets, and
    for each request.
    """

    def __init__(self, open_member: Callable[[], GroupConsumer], patience: float):
        self._open_member, self._patience = open_member, patience
        self._member: GroupConsumer | None = None
        self._finish: Callable[[], None] | None = None

    @property
    def topics(self) -> set[str]:
        """None: its offsets are no records of a topic that could be looked at."""
        return set()

    @property
    def member(self) -> GroupConsumer:
        assert self._member is not None
        return self._member

    def refresh(self, patience: float) -> GroupConsumer:
        """The member with its partitions at their stable offsets: a new one that has joined, or
        where the last one is still usable that.
        """
        self._finish = None
        if self._member is not None and self._member.rewind():
            return self._member
        self.close()
        self._member = member = self._open_member()
        member.join(self, self._patience)
        return member

    def open(self, finish: Callable[[], None]) -> None:
        """From now on a revocation finishes the transaction."""
        self._finish = finish

    def before(self, offsets: Any) -> None:
        """Nothing: they are in one place."""

    def write(self, producer: TaskProducer, offsets: GroupOffsets) -> None:
        """Into the transaction, or committed behind the records where there is none."""
        producer.send_group_offsets(offsets, self.member, self._patience)

    def after(self, offsets: Any) -> None:
        """Nothing: the coordinator has them."""

    def assigned(self, partitions: Collection[TopicPartition], positions: GroupOffsets) -> None:
        """The member begins where its group stands."""

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit what was made of their records. In doubt it raises, and the next member reads what
        became of it.
        """
        if self._finish is not None:
            self._finish()

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Raises ``UnknownOutcome``: the open transaction has records of them."""
        some = ", ".join(map(str, sorted(partitions)[:3]))
        raise UnknownOutcome(f"the group has taken {some or 'the membership'} from this member")

    def close(self) -> None:
        self._finish = None
        if self._member is not None:
            self._member.close()
            self._member = None
