"""Transactions as their coordinators and the partitions' leaders describe them (KIP-98, KIP-664,
KIP-890).

A coordinator keeps one entry per transactional id. Its producer id and epoch are those of the
producer that may write. With transaction version 2 the epoch changes at every commit and the
producer id when epochs run out, so neither proves anything by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from connectctl.ops.kafka.topic_partition import TopicPartition

ENDING = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""States in which the coordinator is at work: InitProducerId is refused, and costs no epoch."""
OPEN = ENDING | {"Ongoing"}
"""States in which readers of read_committed wait."""
ABORTING = frozenset({"PrepareEpochFence", "PrepareAbort", "CompleteAbort"})
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id as its coordinator has it (DescribeTransactions).

    ``timeout_ms`` is the producer's ``transaction.timeout.ms``; ``started_ms`` is in milliseconds
    since the epoch, None without a transaction. ``partitions`` are those of an open transaction, in
    ``ENDING`` states those still to be marked.
    """

    id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int = 0
    started_ms: int | None = None
    partitions: tuple[TopicPartition, ...] = ()
    coordinator: int = -1

    @property
    def is_open(self) -> bool:
        """Return whether a transaction is open, or is being ended."""
        return self.state in OPEN

    @property
    def who(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    @property
    def open_since(self) -> float | None:
        """Return when the open transaction began, in seconds since the epoch; None if none is."""
        return self.started_ms / 1000 if self.is_open and self.started_ms is not None else None

    def seconds_open(self, now: float) -> float | None:
        """Return for how many seconds the transaction has been open, with ``now`` in seconds since
        the epoch; None if none is.
        """
        return None if self.open_since is None else max(0.0, now - self.open_since)


@dataclass(frozen=True, slots=True)
class Listing:
    """A transactional id in a coordinator's list (ListTransactions)."""

    id: str
    state: str
    producer_id: int
    coordinator: int


@dataclass(frozen=True, slots=True)
class PartitionProducer:
    """A producer that a partition's leader remembers (DescribeProducers).

    ``start_offset`` is where its open transaction begins, None where it has none.
    ``last_timestamp`` is the last record's, in milliseconds since the epoch.
    """

    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp: int
    start_offset: int | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ends of a partition: ``stable`` for read_committed (its last stable offset), ``end`` for
    all readers.
    """

    stable: int
    end: int

    @property
    def lag(self) -> int:
        """Return the number of offsets that read_committed readers may not read yet."""
        return max(0, self.end - self.stable)


def task_timeout(before: Transaction | None) -> int:
    """Return the transaction timeout to fence an id with, in milliseconds: its own, because the
    coordinator keeps what it is sent.

    Brokers before 3.7.1 bound their own append by it (KAFKA-16047), so that the 1 ms of an old tool
    is not repeated.
    """
    if before is None or before.timeout_ms < SHORTEST_TIMEOUT_MS:
        return FENCE_TIMEOUT_MS
    return before.timeout_ms


SHORTEST_TIMEOUT_MS = 1_000
FENCE_TIMEOUT_MS = 30_000
"""The timeout that Java's Admin.fenceProducers sends: its request.timeout.ms."""
