"""Clients, and results of reads, that the tasks of one process share.

Otherwise a hundred tasks that start together would read the same two topics to their ends four
hundred times. A read is safe for a task if the end offset is determined after the task's call. So
calls made during a read wait for the next one, and share it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.attempt.coalesced_read import CoalescedRead, coalesced
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.generation_check import GenerationCheck

if TYPE_CHECKING:
    from connectctl.ops.kafka.topics import KnownEnds
    from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
    from connectctl.ops.task_runtime.task.commit_history import Position

PRIMARY, GLOBAL = "offsets", "behind"
"""The offsets topics of ``TaskSpec``, by its fields."""


@dataclass(frozen=True)
class StoreSnapshot:
    """The offsets of a connector as of one read; immutable, also while others read further."""

    values: Mapping[bytes, bytes]
    positions: Mapping[bytes, Position] = field(default_factory=dict)
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)

    def value(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(self.values)


class OffsetsView:
    """The offset store as of a task's last refresh."""

    def __init__(self, read: CoalescedRead[StoreSnapshot]):
        self._read = read
        self._snapshot = StoreSnapshot({})

    def refresh(self, patience: float) -> None:
        """Read the committed offsets. The read has its own timeout."""
        self._snapshot = self._read()

    def value(self, key: bytes) -> bytes | None:
        return self._snapshot.value(key)

    def position(self, key: bytes) -> Position | None:
        return self._snapshot.positions.get(key)

    @property
    def reached(self) -> Mapping[str, KnownEnds]:
        """The ends of the offsets topics at the last refresh, as in ``TaskSpec.reached``."""
        return self._snapshot.reached

    def known(self) -> frozenset[bytes]:
        return self._snapshot.known()


class SharedClients:
    """The tasks of ``spec`` that run in this process. ``home`` is the workers' cluster, ``target``
    that of the records.
    """

    def __init__(self, spec: TaskSpec):
        self.home = Kafka(spec.home, timeout=spec.timeout)
        # Connecting takes time: one client if both are the same cluster.
        self.target = (
            self.home if spec.target == spec.home else Kafka(spec.target, timeout=spec.timeout)
        )
        self._largest: dict[str, int] = {}
        known = spec.reached
        global_offsets = None
        if spec.global_offsets:
            global_offsets = CommittedOffsets(
                self.home, spec.global_offsets, spec.connector, known.get(GLOBAL)
            )
        store = OffsetStore(
            CommittedOffsets(self.target, spec.offsets, spec.connector, known.get(PRIMARY)),
            global_offsets,
        )
        self._offsets = CoalescedRead(lambda: _snapshot(store, spec.patience))
        self.stale_because = CoalescedRead(
            GenerationCheck(self.home, spec.generation, spec.patience).stale_because
        )

    def largest_batches(self, topics: Collection[str]) -> dict[str, int]:
        """Return ``Kafka.largest_batches`` of the target; known values are requested once for all
        tasks.
        """
        if missing := sorted({*topics} - self._largest.keys()):
            self._largest |= coalesced(
                ("largest", self, *missing), lambda: self.target.largest_batches(missing)
            )
        return {topic: self._largest[topic] for topic in topics if topic in self._largest}

    def view(self) -> OffsetsView:
        return OffsetsView(self._offsets)


def _snapshot(store: OffsetStore, patience: float) -> StoreSnapshot:
    store.refresh(patience)
    values = ((key, store.value(key)) for key in store.known())
    reached = {PRIMARY: store.primary.reached} | (
        {GLOBAL: store.secondary.reached} if store.secondary is not None else {}
    )
    return StoreSnapshot(
        {key: value for key, value in values if value is not None},
        store.primary.positions(),
        reached,
    )
