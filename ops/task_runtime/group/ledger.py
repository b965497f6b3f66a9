"""The offsets of a consumer group as a task's ledger: the member joins behind the initialisation of
each producer, and its group's offsets are in the transactions of the records that were made of them
(KIP-447).

The order is that of ``attempt_loop``; what a group adds to it: the producer of the slot's fixed
transactional id is initialised before the member joins, which ends what its predecessor had
pending, so that stable offsets are there at once. A doubt of the producer, such as a newer
generation of the group that librdkafka has joined meanwhile, is none of the member, which only
reads again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer


class GroupLedger:
    """The ledger of one task. ``open_member`` gives a new member; ``patience`` is in seconds, for
    each request.
    """

    def __init__(self, open_member: Callable[[], GroupConsumer], patience: float):
        self._open_member, self._patience = open_member, patience
        self._member: GroupConsumer | None = None

    @property
    def topics(self) -> set[str]:
        """None: its offsets are no records of a topic that could be looked at."""
        return set()

    @property
    def member(self) -> GroupConsumer:
        assert self._member is not None
        return self._member

    def refresh(self, patience: float) -> GroupConsumer:
        """Return the member with its partitions at their stable offsets, or a new one, which is to
        join.
        """
        if self._member is None or not self._member.rewind():
            self.close()
            self._member = self._open_member()
        return self._member

    def before(self, offsets: Any) -> None:
        """Nothing: they are in one place."""

    def write(self, producer: TaskProducer, offsets: GroupOffsets) -> None:
        """Into the transaction, or committed after the records where there is none."""
        producer.send_group_offsets(offsets, self.member, self._patience)

    def after(self, offsets: Any) -> None:
        """Nothing: the coordinator has them."""

    def close(self) -> None:
        if self._member is not None:
            self._member.close()
            self._member = None
