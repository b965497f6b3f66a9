"""The interface of the consumer of a sink or transform task: its records, its partitions, and the
offsets of its group.

``member.py`` implements it for a real cluster. The task's thread makes all calls. ``poll`` returns
changes of the assignment as events, before any later record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

GroupOffsets = Mapping[TopicPartition, GroupOffset]
"""Offsets of a consumer group. Sinks and transforms commit them instead of source offsets."""


@dataclass(frozen=True, slots=True)
class Polled:
    """Messages of confluent-kafka without errors, in offset order within each partition."""

    messages: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Assigned:
    """The event that ``partitions`` were added, or are read again after ``rewind``. Their records
    start at ``positions``: the committed offsets, or those that ``auto.offset.reset`` determines.
    """

    partitions: Collection[TopicPartition]
    positions: GroupOffsets


@dataclass(frozen=True, slots=True)
class Revoked:
    """The event that the next call of ``poll`` revokes ``partitions``. Offsets can be committed
    for them until that call.
    """

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    """The event that ``partitions`` were lost: another member may own them already. No offsets may
    be committed for them.
    """

    partitions: Collection[TopicPartition]


GroupEvent = Polled | Assigned | Revoked | Lost


class GroupConsumer(Protocol):
    """A member of a consumer group. It does not commit offsets automatically.

    Raises ``UnknownOutcome`` if it has to be closed and a new member has to join,
    ``PollIntervalExceeded`` if the reason is that it did not poll within
    ``max.poll.interval.ms``, and ``Fenced`` if another attempt uses its ``group.instance.id``.
    """

    def join(self) -> None:
        """Subscribe and wait for the first assignment, which may be empty. Do nothing if the
        member has joined. Raises ``TimedOut``.
        """

    def poll(self, seconds: float, most: int) -> GroupEvent:
        """Return the next event: a change of the assignment, or up to ``most`` records. Wait at
        most ``seconds`` for the first record.
        """

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue to read from these offsets. The partitions are assigned to the member."""

    def rewind(self) -> bool:
        """Read again from the committed offsets, after pending offsets are stable. All partitions
        of the member are assigned again, and none is paused. Return False if the member has to be
        closed.
        """

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Return no records of these partitions until ``resume``."""

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Return records of these partitions again."""

    def commit(self, offsets: GroupOffsets) -> None:
        """Commit synchronously, without a transaction. Raises ``ConnectctlError`` if the commit is
        refused.
        """

    def took(self, call: str, seconds: float) -> None:
        """Record how long ``call`` of the task took, since the last poll."""

    @property
    def metadata(self) -> Any:
        """The ``ConsumerGroupMetadata`` of confluent-kafka for a transaction that commits offsets
        of the group: the current generation, member id and instance id.
        """

    @property
    def lag(self) -> int | None:
        """The number of records between the positions and the cached high watermarks; None if a
        needed watermark is unknown.
        """

    @property
    def has_more(self) -> bool:
        """True if an assigned partition has, or may have, records that were not returned yet."""

    def close(self) -> None:
        """Close the consumer. A static member stays in the group until its session times out or it
        is removed by its instance id.
        """
