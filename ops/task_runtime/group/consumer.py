"""What sinks and transforms ask of the consumer of their task slot: its records, its partitions,
and its group's offsets.

``member.py`` has the one of a real cluster. All calls are made by the task's thread, and the
listener is called on it, within ``poll``, ``join`` or ``close``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

GroupOffsets = Mapping[TopicPartition, GroupOffset]
"""Offsets of a consumer group, in place of source offsets."""


class RebalanceListener(Protocol):
    """Hears of each change of the assignment before anything else is read. What it raises comes out
    of the poll, and the consumer stays usable.
    """

    def assigned(self, partitions: Collection[TopicPartition], positions: GroupOffsets) -> None:
        """``partitions`` were added. Their records come from ``positions``: what is committed, or
        where ``auto.offset.reset`` says.
        """

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """``partitions`` will be another member's afterwards; what is committed in this call still
        counts.
        """

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """``partitions`` may be another member's already; nothing may be committed for them."""


class GroupConsumer(Protocol):
    """A member of a consumer group. Offsets are never committed by themselves. Raises
    ``UnknownOutcome`` where it has to be thrown away and to join again, ``PollIntervalExceeded``
    where that is because it did not poll for too long, ``Fenced`` where another attempt has its
    ``group.instance.id``.
    """

    def join(self, listener: RebalanceListener, patience: float) -> None:
        """Subscribe, and wait for the first assignment, be it empty, for at most ``patience``
        seconds (``TimedOut``).
        """

    def poll(self, seconds: float, most: int) -> Sequence[Any]:
        """Up to ``most`` of confluent-kafka's messages without an error, in the order of each
        partition; waits for at most ``seconds`` for the first one.
        """

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets; the partitions are its own."""

    def rewind(self) -> bool:
        """Give records again from what is committed; pending offsets are waited for. Return False
        where the member has to be thrown away.
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
