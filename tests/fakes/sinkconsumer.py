"""A consumer group's member without a group: a script says what is revoked, lost and assigned in
which poll.

It is as unkind as the protocol allows: within the callback it does not have new partitions yet, so
that it can neither seek nor pause there, and time passes only where a poll has nothing to give.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets, RebalanceListener
from connectctl.ops.task_runtime.spi.sink import SinkRecord, SinkTask
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask

TOPIC = "t"


def place(partition: int) -> TopicPartition:
    return TopicPartition(TOPIC, partition)


@dataclass(frozen=True)
class Message:
    """As confluent-kafka's, as far as sinks look at it."""

    at: TopicPartition
    number: int
    raw: bytes | None = b"v"
    raw_key: bytes | None = None
    raw_headers: Sequence[tuple[str, bytes | None]] | None = None
    stamp: tuple[int, int] = (0, -1)

    def topic(self) -> str:
        return self.at.topic

    def partition(self) -> int:
        return self.at.partition

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.raw_key

    def value(self) -> bytes | None:
        return self.raw

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        return self.raw_headers

    def timestamp(self) -> tuple[int, int]:
        return self.stamp

    def leader_epoch(self) -> int | None:
        return 7


@dataclass
class Clock:
    """Seconds that pass when somebody says so."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(frozen=True)
class Rebalance:
    """What one poll brings before its records, in this order."""

    revoked: Collection[int] = ()
    lost: Collection[int] = ()
    assigned: Collection[int] = ()


class SinkConsumer:
    """``log`` has the values of each partition, ``group`` what is committed; both may outlive it.
    ``script`` has what the next polls bring, one each, ``refusals`` the errors of the next commits.
    """

    metadata: Any = None
    lag: int | None = None

    def __init__(
        self,
        log: Mapping[int, Sequence[bytes | None]],
        first: Iterable[int],
        clock: Clock | None = None,
    ):
        self.log = {place(partition): list(values) for partition, values in log.items()}
        self.first, self.clock = list(first), clock or Clock()
        self.group: dict[TopicPartition, GroupOffset] = {}
        self.script: deque[Rebalance | Exception | None] = deque()
        self.refusals: deque[Exception] = deque()
        self.commits: list[dict[int, int]] = []
        self.positions: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.listener: RebalanceListener | None = None
        self.closed = False

    def took(self, call: str, seconds: float) -> None:
        """Nothing: no interval is exceeded here."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    @property
    def has_more(self) -> bool:
        return any(at < len(self.log[each]) for each, at in self.positions.items())

    def join(self, listener: RebalanceListener, patience: float) -> None:
        self.listener = listener
        self.rebalance(Rebalance(assigned=self.first))

    def rebalance(self, change: Rebalance) -> None:
        assert self.listener is not None
        if change.revoked:
            self.listener.revoked([place(each) for each in change.revoked])
            self._remove(change.revoked)
        if change.lost:
            self._remove(change.lost)
            self.listener.lost([place(each) for each in change.lost])
        added = [place(each) for each in change.assigned]
        begin = {each: self.group[each].offset if each in self.group else 0 for each in added}
        try:
            begun = {each: GroupOffset(0) for each in added}
            self.listener.assigned(added, {**begun, **self.committed(added)})
        finally:
            self.positions |= begin
            self.paused -= set(added)

    def _remove(self, partitions: Collection[int]) -> None:
        for each in partitions:
            self.positions.pop(place(each))
            self.paused.discard(place(each))

    def poll(self, seconds: float, most: int) -> Sequence[Any]:
        assert seconds >= 0
        event = self.script.popleft() if self.script else None
        if isinstance(event, Exception):
            raise event
        if event is not None:
            self.rebalance(event)
        found: list[Message] = []
        for each in sorted(self.positions.keys() - self.paused):
            end = min(len(self.log[each]), self.positions[each] + most - len(found))
            found += [Message(each, n, self.log[each][n]) for n in range(self.positions[each], end)]
            self.positions[each] = max(end, self.positions[each])
        if not found and event is None:
            self.clock.seconds += seconds
        return found

    def committed(self, partitions: Collection[TopicPartition]) -> GroupOffsets:
        return {each: self.group[each] for each in partitions if each in self.group}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        assert offsets
        assert offsets.keys() <= self.positions.keys()
        self.positions |= offsets

    def rewind(self) -> bool:
        raise NotImplementedError

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions
        assert set(partitions) <= self.positions.keys()
        self.paused |= set(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions
        assert set(partitions) <= self.positions.keys()
        self.paused -= set(partitions)

    def commit(self, offsets: GroupOffsets) -> None:
        assert offsets
        assert offsets.keys() <= self.positions.keys()
        if self.refusals:
            raise self.refusals.popleft()
        self.group |= offsets
        self.commits.append(numbers(offsets))

    def close(self) -> None:
        self.closed = True


def numbers(offsets: GroupOffsets) -> dict[int, int]:
    """Offsets by partition."""
    return {each.partition: offset.offset for each, offset in sorted(offsets.items())}


@dataclass
class RecordingSink(SinkTask):
    """Writes down every call. ``on`` has what a call does besides: raise, or ask the context for
    something.
    """

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    on: dict[str, deque[Callable[[RecordingSink], Any] | None]] = field(default_factory=dict)
    batches: list[list[tuple[int, int]]] = field(default_factory=list)

    def _act(self, name: str) -> Any:
        waiting = self.on.get(name)
        action = waiting.popleft() if waiting else None
        return None if action is None else action(self)

    def start(self, configs: Mapping[str, str]) -> None:
        self._act("start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("open", sorted(each.partition for each in partitions)))
        self._act("open")

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            self.calls.append(("put", len(records)))
            self.batches.append([(each.partition, each.offset) for each in records])
        self._act("put")

    def pre_commit(self, offsets: GroupOffsets) -> GroupOffsets:
        self.calls.append(("pre_commit", self.context.is_closing(), numbers(offsets)))
        given: GroupOffsets | None = self._act("pre_commit")
        return offsets if given is None else given

    def close(self, partitions: Collection[TopicPartition]) -> None:
        assert not self.context.is_closing()
        self.calls.append(("close", sorted(each.partition for each in partitions)))
        self._act("close")

    def stop(self) -> None:
        self.calls.append(("stop",))


def raising(error: Exception) -> Callable[[RecordingSink], None]:
    """An action that fails."""

    def act(sink: RecordingSink) -> None:
        raise error

    return act


def run_sink(
    task: WorkerSinkTask, stopping: Callable[[], bool], patience: float, seconds: float = 1.0
) -> None:
    """From ``start`` to ``close``; ``stopping`` is asked at least every ``seconds`` or so."""
    try:
        task.start(patience)
        while not stopping():
            task.iterate(seconds)
    except BaseException:
        # The first failure is the one to report.
        with suppress(Exception):
            task.close()
        raise
    task.close()
