"""The offsets of a consumer group as a task's ledger. The member joins after the initialisation of
each producer. The transaction of the output records contains the group's offsets of their input
(KIP-447).

The order is that of ``attempt_loop``. A group adds one rule: the producer with the fixed
transactional id is initialised before the member joins. This ends a pending transaction of its
predecessor, so that the offsets are stable. If the outcome of a producer's call is unknown, for
example because librdkafka has joined a newer generation of the group, the member stays and only
reads again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer


class GroupLedger:
    """The ledger of one task. ``open_member`` returns a new member. ``patience`` is the seconds for
    each request.
    """

    def __init__(self, open_member: Callable[[], GroupConsumer], patience: float):
        self._open_member, self._patience = open_member, patience
        self._member: GroupConsumer | None = None

    @property
    def topics(self) -> set[str]:
        """An empty set: the transaction adds offsets to the group instead."""
        return set()

    @property
    def member(self) -> GroupConsumer:
        assert self._member is not None
        return self._member

    def refresh(self, patience: float) -> GroupConsumer:
        """Return the member with its partitions at their stable offsets, or a new member that has
        not joined yet.
        """
        if self._member is None or not self._member.rewind():
            self.close()
            self._member = self._open_member()
        return self._member

    def before(self, offsets: Any) -> None:
        """Do nothing: the offsets are stored only in the group."""

    def write(self, producer: TaskProducer, offsets: GroupOffsets) -> None:
        """Add the offsets to the transaction, or commit them after the records without one."""
        producer.send_group_offsets(offsets, self.member, self._patience)

    def after(self, offsets: Any) -> None:
        """Do nothing: the group coordinator stores the offsets."""

    def close(self) -> None:
        if self._member is not None:
            self._member.close()
            self._member = None
