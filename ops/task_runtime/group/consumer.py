"""What sinks and transforms ask of the consumer of their task slot: its records, its partitions,
and its group's offsets.

``member.py`` has the one of a real cluster. All calls are made by the task's thread. ``poll``
returns changes of the assignment as events, before any later record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

GroupOffsets = Mapping[TopicPartition, GroupOffset]
"""Offsets of a consumer group, in place of source offsets."""


@dataclass(frozen=True, slots=True)
class Polled:
    """Messages of confluent-kafka without an error, in the order of each partition."""

    messages: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Assigned:
    """``partitions`` were added, or are read again after ``rewind``. Their records come from
    ``positions``: what is committed, or where ``auto.offset.reset`` says.
    """

    partitions: Collection[TopicPartition]
    positions: GroupOffsets


@dataclass(frozen=True, slots=True)
class Revoked:
    """``partitions`` will be another member's after the next call of ``poll``; what is committed
    until then still counts.
    """

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    """``partitions`` may be another member's already; nothing may be committed for them."""

    partitions: Collection[TopicPartition]


GroupEvent = Polled | Assigned | Revoked | Lost


class GroupConsumer(Protocol):
    """A member of a consumer group. Offsets are never committed by themselves. Raises
    ``UnknownOutcome`` where it has to be thrown away and to join again, ``PollIntervalExceeded``
    where that is because it did not poll for too long, ``Fenced`` where another attempt has its
    ``group.instance.id``.
    """

    def join(self) -> None:
        """Subscribe, and wait for the first assignment, be it empty; nothing if it has joined.
        Raises ``TimedOut``.
        """

    def poll(self, seconds: float, most: int) -> GroupEvent:
        """Return the next event: a change of the assignment, or up to ``most`` records. Waits for
        at most ``seconds`` for the first one.
        """

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets; the partitions are its own."""

    def rewind(self) -> bool:
        """Give records again from what is committed; pending offsets are waited for. All its
        partitions are assigned again, and none is paused. Return False where the member has to be
        thrown away.
        """

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Give no records of these partitions for now."""

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Give their records again."""

    def commit(self, offsets: GroupOffsets) -> None:
        """Commit without a transaction, and return when it is done. Raises ``ConnectctlError``
        where it was refused.
        """

    def took(self, call: str, seconds: float) -> None:
        """Note how long ``call`` of the task took, after the last poll."""

    @property
    def metadata(self) -> Any:
        """What a transaction that commits this group's offsets names: confluent-kafka's
        ``ConsumerGroupMetadata``, with generation, member id and instance id as they are now.
        """

    @property
    def lag(self) -> int | None:
        """Records between its positions and the ends that it knows; None where it knows too
        little.
        """

    @property
    def has_more(self) -> bool:
        """Whether a partition of its own has records that it was not given, or may have."""

    def close(self) -> None:
        """Let go of it. A static member stays one until its session times out or it is removed by
        its instance id.
        """
