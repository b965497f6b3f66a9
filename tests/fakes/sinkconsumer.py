"""A consumer group's member without a group: a script says what is revoked, lost and assigned in
which poll.

It is as unkind as the protocol allows: what is revoked is another member's with the next poll, and
time passes only where a poll has nothing to give. ``Attempt`` is one of the real task loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import (
    Assigned,
    GroupEvent,
    GroupOffsets,
    Lost,
    Polled,
    Revoked,
)
from connectctl.ops.task_runtime.group.consumer_settings import MOST_RECORDS
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.spi.sink import SinkRecord, SinkTask
from connectctl.ops.task_runtime.spi.transaction_batch import END, Read
from connectctl.ops.task_runtime.task.at_least_once import GroupCommits
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop, TaskTransaction
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
        self.changes: Iterator[GroupEvent] = iter(())
        self.changing = self.joined = self.closed = False

    def took(self, call: str, seconds: float) -> None:
        """Nothing: no interval is exceeded here."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    @property
    def has_more(self) -> bool:
        return any(at < len(self.log[each]) for each, at in self.positions.items())

    def join(self) -> None:
        self.joined = True
        (assigned,) = self._rebalance(Rebalance(assigned=self.first))
        self.changes = iter([assigned])

    def _rebalance(self, change: Rebalance) -> Iterator[GroupEvent]:
        if change.revoked:
            yield Revoked([place(each) for each in change.revoked])
            self._remove(change.revoked)
        if change.lost:
            self._remove(change.lost)
            yield Lost([place(each) for each in change.lost])
        added = [place(each) for each in change.assigned]
        begun = {**{each: GroupOffset(0) for each in added}, **self.committed(added)}
        self.positions |= {each: begun[each].offset for each in added}
        self.paused -= set(added)
        yield Assigned(added, begun)

    def _remove(self, partitions: Collection[int]) -> None:
        for each in partitions:
            self.positions.pop(place(each))
            self.paused.discard(place(each))

    def poll(self, seconds: float, most: int) -> GroupEvent:
        assert seconds >= 0
        if (change := next(self.changes, None)) is not None:
            return change
        if not self.changing and self.script:
            event = self.script.popleft()
            if isinstance(event, Exception):
                raise event
            if event is not None:
                self.changes, self.changing = self._rebalance(event), True
                return next(self.changes)
        found: list[Message] = []
        for each in sorted(self.positions.keys() - self.paused):
            end = min(len(self.log[each]), self.positions[each] + most - len(found))
            found += [Message(each, n, self.log[each][n]) for n in range(self.positions[each], end)]
            self.positions[each] = max(end, self.positions[each])
        if not found and not self.changing:
            self.clock.seconds += seconds
        self.changing = False
        return Polled(found)

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


class Commits(GroupCommits):
    """Commits with ``commit``, by default the consumer's."""

    def __init__(self, commit: Callable[[GroupOffsets], None]):
        no_kafka: Any = None
        super().__init__(no_kafka, "g-c-0", timeout_ms=60_000)
        self._commit_offsets = commit

    def send_group_offsets(self, offsets: GroupOffsets, consumer: Any, patience: float) -> None:
        self._commit_offsets(offsets)


class Attempt:
    """One attempt of the task loop with ``body``, event by event."""

    def __init__(
        self,
        body: WorkerSinkTask,
        consumer: SinkConsumer,
        commit: Callable[[GroupOffsets], None] | None = None,
    ):
        self.body, self.consumer = body, consumer
        self.producer = Commits(commit or consumer.commit)
        ledger = GroupLedger(lambda: consumer, 1.0)
        ledger.refresh(1.0)
        self.loop = AttemptLoop(lambda: self.producer, ledger, sleep=lambda seconds: None)
        self.transaction = TaskTransaction(self.loop, self.producer, body)

    def start(self) -> None:
        self.body.resume(self.consumer)

    def round(self, seconds: float = 1.0, most: int = MOST_RECORDS) -> None:
        """All events up to the next records, or up to a poll that gives none."""
        self.body.longest_poll, self.body.most = seconds, most
        while not isinstance(event := self.body.next(), Read):
            self.transaction.handle(event)

    def end(self) -> None:
        """The end of a lease."""
        self.transaction.handle(END)
        self.body.close()

    def run(self, stopped: Callable[[], bool]) -> None:
        """From the start to the end, or to a failure."""
        try:
            self.start()
            while not stopped():
                self.round()
            self.end()
        except BaseException:
            self.body.close()
            raise
