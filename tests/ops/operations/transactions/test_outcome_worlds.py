"""Whatever coordinators and partitions went through: a decision that is said to be known is the one
that was made.

A small world keeps the rules of Kafka: one open transaction per producer and partition, which a
newer epoch takes over; epochs that move with version 2 and by fencing; markers that are lost;
records that come late; logs that are compacted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from connectctl.ops.clients.kafka_protocol.transaction_log import preceding_log
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT, Batch, Marker
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import LogEntry
from connectctl.ops.kafka.transactions import PartitionProducer
from connectctl.ops.operations.transactions.outcome import (
    DecidedOutcome,
    TransactionResult,
    decide,
    decided_with,
    history,
)
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

AT, ELSEWHERE = TopicPartition("orders", 0), TopicPartition("offsets", 3)
PID = 9
How = Literal["commit", "abort", "fence"]


@dataclass
class World:
    """One producer, its coordinator's log and one partition.

    ``open`` says of each open record how it was decided, ``unmarked`` which decisions the partition
    has no marker of.
    """

    version: int
    now: int = 1_000
    epoch: int = 0
    log: list[LogEntry] = field(default_factory=list)
    partition: list[Batch | Marker] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    start: int = 0
    started: int = -1

    def init(self) -> None:
        self.epoch += 1
        self._write("Empty", self.epoch, frozenset())

    def transact(self, how: How, here: bool, records: int, lost: bool, pace: int) -> None:
        places = frozenset({ELSEWHERE, AT} if here else {ELSEWHERE})
        self.now += pace
        self.started = self.now
        epoch, moves = self.epoch, (self.version == 2) + (how == "fence")
        self._write("Ongoing", epoch, places, self.version)
        for _ in range(records if here else 0):
            self._record("commit" if how == "commit" else "abort")
        self.now += pace
        # A time-out's abort is the coordinator's own, which writes its own version.
        version = 2 if how == "fence" else self.version
        state = "Commit" if how == "commit" else "Abort"
        self.epoch += moves
        self._write(f"Prepare{state}", self.epoch, places, version)
        self.now += pace // 3
        self.unmarked += [how] if here else []
        if here and not lost:
            self._mark(COMMIT if how == "commit" else ABORT)
        self.now += pace // 3
        self._write(f"Complete{state}", self.epoch, frozenset(), version)

    def ghost(self) -> None:
        """A record that comes when its transaction is over: a leader takes it while the epoch is
        not too old.
        """
        self.now += 1
        self._record("late")

    def compact(self, count: int) -> None:
        """Of the first ``count`` records the newest is left."""
        self.log = self.log[max(0, min(count, len(self.log)) - 1) :]

    def judge(self) -> DecidedOutcome:
        epochs = [each.epoch for each in self.partition if isinstance(each, Batch)]
        producer = PartitionProducer(PID, epochs[-1], 0, self.now, self.start)
        past = history(self.log, PID)
        wanted = decided_with(past, AT, producer.epoch)[-2:]
        since = min((each.started_ms for each in wanted), default=0)
        seen = [
            each for each in self.partition if each.offset <= self.start and _time(each) >= since
        ]
        return decide(past, AT, producer, preceding_log(seen, producer, since))

    def _write(
        self, state: str, epoch: int, places: frozenset[TopicPartition], version: int = 0
    ) -> None:
        entry = LogEntry(
            "id", PID, epoch, 60_000, state, places, self.now, self.started, client_version=version
        )
        self.log.append(entry)

    def _record(self, how: str) -> None:
        at = len(self.partition)
        if not self.open:
            self.start = at
        self.partition.append(
            Batch(at, at, 1, PID, self.epoch, 0, self.now, self.now, transactional=True)
        )
        self.open.append(how)

    def _mark(self, outcome: int) -> None:
        self.partition.append(Marker(len(self.partition), PID, self.epoch, self.now, outcome, 0))
        self.open.clear()
        self.unmarked.clear()


def _time(each: Batch | Marker) -> int:
    return each.timestamp if isinstance(each, Marker) else each.last_ts


PACE = st.sampled_from([0, 1, 3, 9, 30, 200])
TRANSACTION = st.tuples(
    st.just("transact"),
    st.sampled_from(["commit", "commit", "abort", "fence"]),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([False, False, True]),
    PACE,
)
CUT = st.one_of(st.just(0), st.integers(0, 30))
DOING = st.one_of(TRANSACTION, TRANSACTION, st.tuples(st.just("init")), st.tuples(st.just("ghost")))


def played(version: int, doings: list[tuple[object, ...]]) -> World:
    world = World(version)
    world.init()
    for name, *arguments in doings:
        getattr(world, str(name))(*arguments)
    return world


@settings(max_examples=deep(500, 125), deadline=None)
@given(st.sampled_from([1, 2]), st.lists(DOING, min_size=1, max_size=8), CUT)
def test_a_known_decision_is_the_one_that_was_made(
    version: int, doings: list[tuple[object, ...]], cut: int
) -> None:
    world = played(version, doings)
    world.compact(cut)
    if not world.open:
        return
    outcome = world.judge().outcome
    if outcome is TransactionResult.COMMIT:
        # One that comes late although no marker came before it cannot be told from those that came
        # in time.
        assert set(world.open) <= {"commit", "late"}
        assert "commit" in world.unmarked
    elif outcome is TransactionResult.ABORT:
        assert "commit" not in world.open


@settings(max_examples=deep(200, 50), deadline=None)
@given(
    st.sampled_from([1, 2]),
    st.lists(
        st.tuples(
            st.just("transact"),
            st.sampled_from(["commit", "abort"]),
            st.booleans(),
            st.integers(1, 2),
        )
    ),
    st.sampled_from(["commit", "abort", "fence"]),
)
def test_one_marker_that_was_lost_is_always_made_out_while_nothing_is_compacted(
    version: int, before: list[tuple[object, ...]], how: How
) -> None:
    world = played(version, [(*each, False, 30) for each in before])
    world.transact(how, True, 1, lost=True, pace=30)
    world.transact("commit", False, 0, lost=False, pace=30)
    assert world.judge().outcome == ("commit" if how == "commit" else "abort")
