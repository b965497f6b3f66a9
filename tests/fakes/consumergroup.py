"""A consumer group and a log of output with transactions, in memory: what a broker would hold for
transactional ids.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import (
    GroupEvent,
    GroupOffsets,
    Lost,
    Polled,
    Revoked,
)
from connectctl.ops.task_runtime.group.poll_interval import PollInterval
from connectctl.ops.task_runtime.spi.transaction_batch import TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    PollIntervalExceeded,
    Rebalancing,
)


@dataclass(frozen=True)
class Message:
    """As much of confluent-kafka's message as is asked for."""

    place: TopicPartition
    at: int
    data: bytes

    def topic(self) -> str:
        return self.place.topic

    def partition(self) -> int:
        return self.place.partition

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return self.data

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return (1, 1_000 + self.at)

    def leader_epoch(self) -> int:
        return 0


@dataclass
class Group:
    """Input by partition, the group's offsets, the committed output. ``fail`` raises at the call
    with that number; a commit that fails may have happened all the same. ``script`` is what the
    coordinator does at the poll with a number.
    """

    input: dict[TopicPartition, list[bytes]]
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    output: list[bytes] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    """The newest of each transactional id."""
    expired: set[str] = field(default_factory=set)
    """Ids whose open transaction the coordinator has aborted, and that nobody has initialised
    since.
    """
    output_partitions: int = 3
    generation: int = 0
    calls: int = 0
    polls: int = 0
    fail: dict[int, Callable[[], Exception]] = field(default_factory=dict)
    commit_anyway: bool = False
    script: dict[int, str] = field(default_factory=dict)
    away: set[TopicPartition] = field(default_factory=set)
    """Partitions that another member has."""
    poll_interval: float = math.inf
    """The seconds of max.poll.interval.ms, by the clock ``now``."""
    now: Callable[[], float] = time.monotonic

    def call(self) -> Exception | None:
        self.calls += 1
        return self.fail.pop(self.calls)() if self.calls in self.fail else None

    def expire(self, id_: str) -> None:
        """What the coordinator does with a transaction that is open for too long: it takes the
        epoch for itself.
        """
        self.expired.add(id_)
        self.epochs[id_] += 1

    def check(self) -> None:
        if error := self.call():
            raise error


class Member:
    """A member that has all partitions but those that are ``away``; none once it has not polled for
    longer than the group's ``poll_interval``.
    """

    def __init__(self, group: Group):
        self.group = group
        self.positions: dict[TopicPartition, int] = {}
        self.changes: Iterator[GroupEvent] = iter(())
        self.changing = False
        self.generation = -1
        self.closed = self.usable = False
        self.interval = PollInterval(group.poll_interval, group.now)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    def took(self, call: str, seconds: float) -> None:
        self.interval.took(call, seconds)

    def _check_interval(self) -> None:
        """Raise ``PollIntervalExceeded`` if the group has taken the partitions by now."""
        try:
            self.interval.check()
        except PollIntervalExceeded:
            if self.generation == self.group.generation:
                self.group.generation += 1
            raise

    @property
    def lag(self) -> int | None:
        return sum(len(self.group.input[place]) - at for place, at in self.positions.items())

    @property
    def has_more(self) -> bool:
        return any(at < len(self.group.input[place]) for place, at in self.positions.items())

    def join(self) -> None:
        if self.generation >= 0:
            return
        self.group.check()
        self._assign(self.group.input.keys() - self.group.away)
        self.group.generation += 1
        self.generation = self.group.generation

    def _assign(self, places: Collection[TopicPartition]) -> None:
        committed = self.committed(places)
        self.positions |= {
            place: committed[place].offset if place in committed else 0 for place in places
        }

    def poll(self, seconds: float, most: int) -> GroupEvent:
        assert not self.closed
        self._check_interval()
        with self.interval.polling():
            return self._polled(most)

    def _polled(self, most: int) -> GroupEvent:
        if not self.changing:
            self.usable = False
            self.group.check()
            self.group.polls += 1
            self.changes = self._rebalance(self.group.script.get(self.group.polls, ""))
            self.changing = True
        if (change := next(self.changes, None)) is not None:
            return change
        self.changing = False
        found: list[Message] = []
        for place in sorted(self.positions):
            at, data = self.positions[place], self.group.input[place]
            some = [Message(place, n, data[n]) for n in range(at, min(len(data), at + most))]
            self.positions[place] += len(some)
            found += some
        self.usable = True
        return Polled(found)

    def _rebalance(self, what: str) -> Iterator[GroupEvent]:
        if what == "revoke" and self.positions:
            place = min(self.positions)
            self.usable = True
            yield Revoked([place])
            self.group.away.add(place)
            self.positions.pop(place)
            self.group.generation += 1
            self.generation = self.group.generation
        elif what == "lost" and self.positions:
            place = min(self.positions)
            self.group.away.add(place)
            self.group.generation += 1
            self.generation = self.group.generation
            self.positions.pop(place)
            self.usable = True
            yield Lost([place])

    def committed(self, partitions: Collection[TopicPartition]) -> GroupOffsets:
        self.group.check()
        return {
            p: GroupOffset(self.group.offsets[p]) for p in partitions if p in self.group.offsets
        }

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.positions |= offsets

    def rewind(self) -> bool:
        for _ in self.changes:  # the partitions are given up all the same
            pass
        self.changing = False
        if self.interval.passed > self.interval.seconds:
            return False
        if self.usable:
            committed = self.committed(self.positions)
            self.positions = {
                p: committed[p].offset if p in committed else 0 for p in self.positions
            }
        return self.usable

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        raise NotImplementedError

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        raise NotImplementedError

    def commit(self, offsets: GroupOffsets) -> None:
        self._check_interval()
        self.group.check()
        if self.generation != self.group.generation:
            raise Rebalancing("ILLEGAL_GENERATION")
        self.group.offsets |= {place: each.offset for place, each in offsets.items()}

    @property
    def metadata(self) -> int:
        self._check_interval()
        return self.generation

    def close(self) -> None:
        self.closed = True


class Producer:
    """A producer of a transactional id; a newer one, or the coordinator that has aborted its
    transaction, fences it.

    It fails a test that uses it on after an outcome is unknown: all that is left then is to abort
    and to close it.
    """

    timeout_ms, overdue = 10_000, False

    def __init__(self, group: Group, id_: str = "g-c-0"):
        self.group, self.id = group, id_
        self.epoch = -1
        self.in_doubt = self.is_open = False
        self.records: list[bytes] = []
        self.offsets: dict[TopicPartition, int] = {}

    def expired(self) -> bool | None:
        return self.id in self.group.expired

    def initialise(self, patience: float) -> None:
        assert self.epoch < 0
        self._call()
        self.epoch = self.group.epochs[self.id] = self.group.epochs.get(self.id, 0) + 1
        self.group.expired.discard(self.id)

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        return None

    def begin(self) -> None:
        self._use()
        self.is_open = True
        self.records, self.offsets = [], {}

    def send(self, batch: TransactionBatch) -> None:
        self._use()
        for record in batch.records:
            if (record.partition or 0) >= self.group.output_partitions:
                raise ConnectctlError(
                    f"there is no partition {record.partition}", code="UNKNOWN_TOPIC_OR_PART"
                )
        self.records += [record.value or b"" for record in batch.records]

    def send_group_offsets(self, offsets: GroupOffsets, consumer: Any, patience: float) -> None:
        self._use()
        if consumer.metadata != self.group.generation:
            self.in_doubt = True
            raise Rebalancing("ILLEGAL_GENERATION")
        self.offsets |= {place: each.offset for place, each in offsets.items()}

    def commit(self, patience: float) -> None:
        assert not self.in_doubt
        self.is_open = False
        error = self.group.call()
        self._newest()
        if error is None or self.group.commit_anyway:
            self.group.output += self.records
            self.group.offsets |= self.offsets
        self.records, self.offsets = [], {}
        if error is not None:
            self.in_doubt = True
            raise error

    def abort(self, patience: float) -> None:
        self.is_open = False
        self._call()
        self._newest()
        self.records, self.offsets = [], {}

    def _use(self) -> None:
        assert not self.in_doubt
        self._call()

    def _call(self) -> None:
        if error := self.group.call():
            self.in_doubt = True
            raise error

    def _newest(self) -> None:
        if self.epoch != self.group.epochs.get(self.id):
            raise Fenced("a newer one")

    def unusable_because(self) -> str | None:
        return None

    def abandon(self) -> None:
        if self.is_open:
            with suppress(Exception):
                self.abort(1)

    def discard(self) -> None:
        self.abandon()
        self.records, self.offsets = [], {}
