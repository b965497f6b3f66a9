"""The committed offsets of a connector, read to an end offset determined after the task's producer
was initialised.

This order is the proof: after InitProducerId has returned, no older producer of the id can commit,
so an end offset determined afterwards is above everything that they committed.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.consume import Progress, consume_to, consumer_of
from connectctl.ops.clients.librdkafka.partition_offsets import end_offsets
from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import KnownEnds

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.sentinels import Offset
    from connectctl.ops.task_runtime.task.commit_history import Position


class CommittedOffsets:
    """The offsets of ``connector`` in a topic. Every ``refresh`` continues from the last one.

    ``reached`` are end offsets that earlier readers found: a lower one, or one below the position
    read here, is not accepted.
    """

    def __init__(self, kafka: Kafka, topic: str, connector: str, reached: KnownEnds | None = None):
        self._kafka = kafka
        self._connector = connector
        self._positions: dict[int, int] = {}
        self._newest: dict[bytes, tuple[bool, int, int, bytes | None]] = {}
        self.topic = topic
        self.reached = reached or KnownEnds()

    def refresh(self, patience: float) -> None:
        """Read to the current end. Raises ``TimedOut`` if an open transaction blocks it for
        ``patience`` s, or the end offset of a partition is unknown; ``ConnectctlError`` if the
        topic was recreated.
        """
        ends = end_offsets(self._kafka, [self.topic], {self.topic: self.reached})[self.topic]
        pending = {p: end for p, end in ends.items() if end > self._positions.get(p, 0)}
        if pending:
            deadline = time.monotonic() + patience
            self._kafka.ask(f"read {self.topic}", lambda: self._read(pending, len(ends), deadline))
        read_to = tuple(max(end, self._positions.get(p, 0)) for p, end in sorted(ends.items()))
        self._check_complete(read_to)
        self.reached = self.reached.further(KnownEnds(self._kafka.layouts[self.topic].id, read_to))

    def _check_complete(self, read_to: tuple[int, ...]) -> None:
        """Check that no partition was read less far than before. Raises ``TimedOut``."""
        known = self.reached.ends
        for p, end in enumerate(known):
            if p >= len(read_to) or read_to[p] < end:
                raise TimedOut(
                    f"{self.topic}-{p} was read incompletely",
                    why=f"its end offset was {end}, read to "
                    f"{read_to[p] if p < len(read_to) else 'nowhere'}",
                    next_step="Check the brokers, then try again.",
                )

    def _read(self, pending: dict[int, Offset], partitions: int, deadline: float) -> None:
        progress = Progress(
            {TopicPartition(self.topic, p): end for p, end in pending.items()},
            {TopicPartition(self.topic, p): self._positions.get(p, 0) for p in pending},
        )
        with closing(consumer_of(self._kafka, "read_committed")) as consumer:
            for runs in consume_to(self._kafka, consumer, progress):
                for partition, messages in runs:
                    for message in messages:
                        self._take(message, partitions)
                    self._positions[partition.partition] = progress.positions[partition]
                if progress.pending and time.monotonic() > deadline:
                    raise self._incomplete(progress)
        self._positions |= {partition.partition: at for partition, at in progress.positions.items()}

    def _incomplete(self, progress: Progress) -> TimedOut:
        """Return the error; a partition whose leader did not respond is not attributed to a
        transaction.
        """
        silent = sorted(progress.pending - progress.held_back.keys())
        names = ", ".join(map(str, silent or sorted(progress.pending)))
        what = f"Could not read {self.topic} to its end"
        if silent:
            return TimedOut(
                what, why=f"no response for {names}", next_step="Check the brokers, then try again."
            )
        return TimedOut(
            what,
            why=f"a transaction is open on {names}",
            next_step="Find its producer: connectctl transactions lag",
        )

    def _take(self, message: Any, partitions: int) -> None:
        raw = message.key()
        key = parse_key(raw)
        if not isinstance(key, SourceKey) or key.connector != self._connector:
            return
        # A record outside the partition of Java's partitioner is from another tool: one in the
        # right one wins.
        at_home = message.partition() == java_partition(raw, partitions)
        known = self._newest.get(raw)
        if known is None or at_home or not known[0]:
            self._newest[raw] = (at_home, message.partition(), message.offset(), message.value())

    def has(self, key: bytes) -> bool:
        """Return whether the topic has a record of ``key``, also a tombstone."""
        return key in self._newest

    def value(self, key: bytes) -> bytes | None:
        return self._newest[key][3] if key in self._newest else None

    def position(self, key: bytes) -> Position | None:
        at_home, partition, offset, _ = self._newest.get(key, (False, 0, 0, None))
        return (partition, offset) if at_home else None

    def positions(self) -> dict[bytes, Position]:
        """Return ``position`` of every key that has one."""
        return {
            key: (partition, offset)
            for key, (home, partition, offset, _) in self._newest.items()
            if home
        }

    def known(self) -> frozenset[bytes]:
        return frozenset(key for key, (*_, value) in self._newest.items() if value is not None)


def current_ends(kafka: Kafka, topic: str) -> KnownEnds:
    """Return the current ends of ``topic``, requested by another client before a task reads it, for
    comparison.
    """
    ends = end_offsets(kafka, [topic])[topic]
    return KnownEnds(kafka.layouts[topic].id, tuple(end for _, end in sorted(ends.items())))


class OffsetStore:
    """The offset store of a connector: its dedicated topic and the global one, or the global one
    alone.

    Reading follows KIP-618: a record of the primary topic wins, also a tombstone; other keys are
    read from the secondary.
    """

    def __init__(self, primary: CommittedOffsets, secondary: CommittedOffsets | None = None):
        self.primary = primary
        self.secondary = secondary

    def refresh(self, patience: float) -> None:
        """Read both topics to their current ends."""
        self.primary.refresh(patience)
        if self.secondary is not None:
            self.secondary.refresh(patience)

    def value(self, key: bytes) -> bytes | None:
        if self.secondary is None or self.primary.has(key):
            return self.primary.value(key)
        return self.secondary.value(key)

    def position(self, key: bytes) -> Position | None:
        return self.primary.position(key)

    def known(self) -> frozenset[bytes]:
        if self.secondary is None:
            return self.primary.known()
        return self.primary.known() | {
            key for key in self.secondary.known() if not self.primary.has(key)
        }
