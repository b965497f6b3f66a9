"""Kernels that leave out one part of the protocol: each meets the moment that the part is for, and
the topics tell.

The whole kernel goes through the same moments beside them, and nothing is found. Without these the
campaign would prove nothing. The one that uses its producer on after a time-out is in
``test_runtime_doubt``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from connectctl.ops.clients.kafka_protocol import transactional_writer
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    ProducerRecord,
    TaskResult,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.committed_offsets import (
    CommittedOffsets,
    OffsetStore,
    current_ends,
)
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.numbersource import Numbers, Place
from live.oracle import judge

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, RecordSource

pytestmark = pytest.mark.live


class Died(BaseException):
    """The end of a task without a last word."""


class ReadsFirst(AttemptLoop):
    """Reads the offsets, and initialises its producer then."""

    def _attempt(self, source: RecordSource) -> TaskResult | None:
        handle = self.open_producer()
        try:
            source.resume(self.ledger.refresh(self.patience))
            handle.initialise(self.patience)
            self.stats.instances += 1
            return self._transactions(handle, source)
        finally:
            handle.discard()


class RemembersInstead(AttemptLoop):
    """Reads the offsets when it starts; with a new producer it goes on from what it remembers,
    whatever it is told.
    """

    def _attempt(self, source: RecordSource) -> TaskResult | None:
        if not self.stats.instances:
            return super()._attempt(source)
        handle = self.open_producer()
        try:
            handle.initialise(self.patience)
            return self._transactions(handle, source)
        finally:
            handle.discard()


class Moment(TaskProducer):
    """A producer to which something happens at one moment of its life."""

    before_initialise: Callable[[], None] = staticmethod(lambda: None)
    instead_of_commit: Callable[[], None] | None = None
    after_commit: Callable[[], str | None] = staticmethod(lambda: None)

    def initialise(self, patience: float) -> None:
        self.before_initialise()
        super().initialise(patience)

    def commit(self, patience: float) -> None:
        if self.instead_of_commit is not None:
            self.instead_of_commit()
        super().commit(patience)

    def unusable_because(self) -> str | None:
        return self.after_commit() or super().unusable_because()


class OffsetsBefore(Moment):
    """Writes the offsets with another producer, before the transaction of their records ends."""

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        _write(self._kafka.properties(partitioner="murmur2_random"), topic, offsets)


class OffsetsAfter(Moment):
    """Writes the offsets with another producer, when the transaction of their records has ended."""

    _due: tuple[str, Offsets]

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        self._due = topic, offsets

    def commit(self, patience: float) -> None:
        TaskProducer.commit(self, patience)
        if self.instead_of_commit is not None:
            self.instead_of_commit()
        _write(self._kafka.properties(partitioner="murmur2_random"), *self._due)


def _write(properties: dict[str, Any], topic: str, offsets: Offsets) -> None:
    producer = confluent_kafka.Producer(properties)
    for key, value in offsets.items():
        producer.produce(topic, value, key)
    assert producer.flush(300) == 0


@dataclass
class Course:
    """A connector's place, and what a kernel of ``kind`` with producers of ``handles`` leaves
    there.
    """

    place: Place
    kind: type[AttemptLoop] = AttemptLoop
    handles: type[Moment] = Moment
    made: list[Moment] = field(default_factory=list)

    def run(self, supply: RecordSource, **moments: Any) -> TaskResult:
        ledger = SourceOffsetsLedger(self.place.offsets, self.place.store())
        return self.kind(lambda: self.handle(**moments), ledger).run(supply)

    def handle(self, **moments: Any) -> Moment:
        handle = self.handles(self.place.kafka, f"g-{self.place.connector}-0", timeout_ms=15_000)
        vars(handle).update(moments)
        return handle

    def agrees(self, found: set[str]) -> bool:
        """Whether the topics show that, and nothing where nothing is to be found."""
        place = self.place
        verdict = judge(place.kafka, place.topic, place.offsets, place.connector)
        print(verdict.findings)
        return found <= verdict.kinds if found else not verdict.findings


def numbers(place: Place, *which: int) -> TransactionBatch:
    offsets = {place.key: b'{"next":%d}' % (which[-1] + 1)}
    return TransactionBatch(
        [ProducerRecord(place.topic, None, b"%d" % n) for n in which], offsets=offsets
    )


@pytest.mark.parametrize(
    ("kind", "found"), [(AttemptLoop, set()), (ReadsFirst, {"twice", "offset went back"})]
)
def test_offsets_that_are_read_before_initialising_miss_the_last_commit_of_the_older_one(
    cluster: Sandbox, kind: type[AttemptLoop], found: set[str]
) -> None:
    place = Place(cluster)
    older = place.handle()
    older.initialise(30)

    def last_words() -> None:
        step = numbers(place, *range(25))
        older.begin()
        older.send(step)
        older.send_offsets(place.offsets, step.offsets)
        older.commit(30)

    course = Course(place, kind)
    moments = [last_words]
    ended = course.run(
        Numbers(place, 60), before_initialise=lambda: moments.pop()() if moments else None
    )
    assert ended.reason is EndReason.ENDED
    assert course.agrees(found)


@pytest.mark.parametrize(
    ("kind", "found"), [(AttemptLoop, set()), (RemembersInstead, {"twice", "offset went back"})]
)
def test_a_new_producer_without_a_new_reading_repeats_what_another_one_did_meanwhile(
    cluster: Sandbox, kind: type[AttemptLoop], found: set[str]
) -> None:
    place = Place(cluster)
    course = Course(place, kind)
    commits: list[int] = []

    def another() -> str | None:
        commits.append(1)
        if len(commits) != 2:
            return None
        assert Course(place).run(Numbers(place, 40)).stats.records == 20
        return "a connection broke"

    assert course.run(Numbers(place, 60), after_commit=another).reason is EndReason.ENDED
    assert course.agrees(found)


class Believing(CommittedOffsets):
    """Takes whatever comes for an end: here nothing does, as of leaders that have just died."""

    def refresh(self, patience: float) -> None:
        read_to = tuple(self._positions.get(p, 0) for p in self._kafka.partitions(self.topic))
        self._check_complete(read_to)


@pytest.mark.parametrize(
    ("store", "known", "found"),
    [
        (CommittedOffsets, False, set()),
        (Believing, False, {"twice", "offset went back"}),
        (Believing, True, set()),
    ],
)
def test_an_end_that_is_none_is_no_beginning(
    cluster: Sandbox, store: type[CommittedOffsets], known: bool, found: set[str]
) -> None:
    place = Place(cluster)
    course = Course(place)
    assert course.run(Numbers(place, 40)).reason is EndReason.ENDED
    reached = current_ends(place.kafka, place.offsets) if known else None
    offsets = OffsetStore(store(place.kafka, place.offsets, place.connector, reached))
    mutant = AttemptLoop(course.handle, SourceOffsetsLedger(place.offsets, offsets))
    mutant = replace(mutant, patience=3.0)
    if known:
        # What the driver saw before is held against the reading: nothing begins.
        with pytest.raises(TimedOut, match="was read incompletely: its end offset was"):
            mutant.run(Numbers(place, 60))
    else:
        assert mutant.run(Numbers(place, 60)).reason is EndReason.ENDED
    assert course.agrees(found)


@pytest.mark.parametrize(
    ("handles", "found"), [(Moment, set()), (OffsetsBefore, {"missing"}), (OffsetsAfter, {"twice"})]
)
def test_offsets_outside_the_transaction_and_their_records_do_not_die_together(
    cluster: Sandbox, handles: type[Moment], found: set[str]
) -> None:
    place = Place(cluster)
    commits: list[int] = []

    def die() -> None:
        commits.append(1)
        if len(commits) == 2:
            raise Died

    with pytest.raises(Died):
        Course(place, handles=handles).run(Numbers(place, 60), instead_of_commit=die)
    course = Course(place, handles=handles)
    assert course.run(Numbers(place, 60)).reason is EndReason.ENDED
    assert course.agrees(found)


def librdkafkas_partition(key: bytes, count: int) -> int:
    """Where librdkafka puts a key by default (``consistent_random``)."""
    return zlib.crc32(key) % count


@pytest.mark.parametrize(
    ("partitioner", "found"),
    [
        (java_partition, set()),
        (librdkafkas_partition, {"offset in two places", "offset went back", "twice"}),
    ],
)
def test_offsets_where_java_does_not_put_them_are_not_found_again(
    cluster: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    partitioner: Callable[[bytes, int], int],
    found: set[str],
) -> None:
    place = Place(cluster)
    while java_partition(place.key, 5) <= librdkafkas_partition(place.key, 5):
        # The record in the wrong place is to be the lower one, so that the history is read in the
        # order of writing.
        place.connector += "x"
        place.key = f'["{place.connector}",{{"file":1}}]'.encode()
    course = Course(place)
    course.run(Numbers(place, 20))
    with monkeypatch.context() as patch:
        patch.setattr(transactional_writer, "java_partition", partitioner)
        course.run(Numbers(place, 40))
    course.run(Numbers(place, 60))
    assert course.agrees(found)
