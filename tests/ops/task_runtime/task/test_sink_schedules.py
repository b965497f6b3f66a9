"""Whatever happens to a sink's member in whatever order: nothing is committed that the sink has not
written, and in the end it has written everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkRecord, SinkTask
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    Rebalancing,
    UnknownOutcome,
)
from depth import deep
from fakes.sinkconsumer import Attempt, Clock, Rebalance, SinkConsumer, place
from hypothesis import given, settings
from hypothesis import strategies as st

LOG = {0: [b"a"] * 7, 1: [b"b"] * 5, 2: [b"c"] * 3}
EVERYTHING = {place(partition): set(range(len(values))) for partition, values in LOG.items()}
EVENTS = (
    "nothing",
    "nothing",
    "revoke",
    "revoke",
    "lose",
    "swap",
    "assign",
    "assign",
    "doubt",
    "end",
    "due",
    "refuse",
)
PUTS = ("fine", "fine", "fine", "retriable", "crash", "rewind", "pause", "resume", "request")
COMMITS = ("fine", "fine", "raise", "some", "nothing", "too much")


class Crash(Exception):
    """What a task may raise."""


class BufferingSink(SinkTask):
    """Writes only in ``pre_commit``; what it has not written by then is gone where that fails, or
    where it is closed.

    What fails is about the partitions that ``pre_commit`` was given, which are all of them but
    while closing.
    """

    def __init__(self, draw: st.DataObject, written: dict[TopicPartition, set[int]]):
        self.draw, self.written, self.calm = draw, written, False
        self.buffer: dict[TopicPartition, list[int]] = {}
        self.taken: dict[TopicPartition, int] = {}
        self.assigned: set[TopicPartition] = set()

    def _next(self, choices: Sequence[str]) -> str:
        return "fine" if self.calm else self.draw.draw(st.sampled_from(choices))

    def start(self, configs: Mapping[str, str]) -> None:
        pass

    def open(self, partitions: Collection[TopicPartition]) -> None:
        assert self.assigned.isdisjoint(partitions)
        self.assigned |= set(partitions)
        assert self.assigned == self.context.assignment

    def put(self, records: Sequence[SinkRecord]) -> None:
        what = self._next(PUTS)
        if what == "retriable":
            raise RetriableError("busy")
        if what == "crash":
            raise Crash
        for each in records:
            at = TopicPartition(each.topic, each.partition)
            assert at in self.assigned
            assert each.offset == self.taken.get(at, each.offset)
            self.taken[at] = each.offset + 1
            self.buffer.setdefault(at, []).append(each.offset)
        self._ask(what)

    def _ask(self, what: str) -> None:
        own = sorted(self.assigned)
        if what == "rewind" and own:
            at = self.draw.draw(st.sampled_from(own))
            self.context.offset({at: 0})
            self.taken[at] = 0
        elif what == "pause":
            self.context.pause(*own[:1])
        elif what == "resume":
            self.context.resume(*own)
        elif what == "request":
            self.context.request_commit()

    def pre_commit(self, offsets: GroupOffsets) -> GroupOffsets:
        what = self._next(COMMITS)
        if what == "raise":
            for at in offsets:
                self.buffer.pop(at, None)
                self.taken.pop(at, None)
            raise Crash
        for at, offset in offsets.items():
            assert offset.offset <= self.taken.get(at, offset.offset)
            self.written.setdefault(at, set()).update(self.buffer.pop(at, ()))
        if what == "nothing":
            return {}
        less = {at: GroupOffset(max(0, each.offset - 1)) for at, each in offsets.items()}
        more = {at: GroupOffset(100) for at in EVERYTHING}
        return {"fine": offsets, "some": less, "too much": more}[what]

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned -= set(partitions)
        for at in partitions:
            self.buffer.pop(at, None)
            self.taken.pop(at, None)


class World:
    """A group whose partitions are the task's or nobody's, and one task after the other."""

    def __init__(self, draw: st.DataObject):
        self.draw, self.clock = draw, Clock()
        self.written: dict[TopicPartition, set[int]] = {}
        self.group: dict[TopicPartition, GroupOffset] = {}

    def begin(self, first: Collection[int]) -> None:
        self.consumer = SinkConsumer(LOG, first, self.clock)
        self.consumer.group = self.group
        self.sink = BufferingSink(self.draw, self.written)
        task = WorkerSinkTask(
            lambda: self.sink,
            {},
            reading_converters({}),
            RecordErrors(ErrorSettings(), "c", 0),
            now=self.clock,
        )
        self.attempt = Attempt(task, self.consumer, self.commit)
        self.attempt.start()

    def commit(self, offsets: GroupOffsets) -> None:
        assert offsets.keys() <= self.sink.assigned
        for at, offset in offsets.items():
            assert set(range(offset.offset)) <= self.written.get(at, set()), (
                f"{at} is committed to {offset.offset}"
            )
        self.consumer.commit(offsets)

    def happens(self, event: str) -> None:
        own = sorted(at.partition for at in self.consumer.assignment)
        others = [partition for partition in LOG if partition not in own]
        some = (
            own[: self.draw.draw(st.integers(0, len(own)))] if event in {"revoke", "lose"} else own
        )
        changes: dict[str, Rebalance | Exception] = {
            "revoke": Rebalance(revoked=some),
            "lose": Rebalance(lost=some),
            "swap": Rebalance(revoked=own, assigned=list(LOG)),
            "assign": Rebalance(assigned=others[:1]),
            "doubt": UnknownOutcome("UNKNOWN_MEMBER_ID"),
        }
        if event in changes:
            self.consumer.script.append(changes[event])
        self.clock.seconds += 60 * (event == "due")
        if event == "refuse":
            self.consumer.refusals.append(Rebalancing("rebalance in progress"))

    def round(self, event: str) -> None:
        self.happens(event)
        ended = False
        try:
            self.attempt.round(most=3)
            if event == "end":
                self.attempt.end()
                ended = True
        except (Crash, UnknownOutcome, Fenced):
            ended = True
        if ended:
            self.attempt.body.close()
            self.begin(list(LOG)[: self.draw.draw(st.integers(0, len(LOG)))])

    def calm_down(self) -> None:
        """Nothing fails any more, and all partitions are the task's."""
        self.consumer.refusals.clear()
        self.sink.calm = True
        self.attempt.round(most=3)
        self.sink.context.resume(*self.consumer.assignment)
        self.happens("swap")
        for _ in range(30):
            self.attempt.round(most=3)
        self.attempt.end()


@settings(max_examples=deep(200, 50), deadline=None)
@given(st.data(), st.lists(st.sampled_from(EVENTS), max_size=25), st.integers(0, len(LOG)))
def test_nothing_is_committed_that_is_not_written_and_everything_is_written(
    draw: st.DataObject, events: list[str], first: int
) -> None:
    world = World(draw)
    world.begin(list(LOG)[:first])
    for event in events:
        world.round(event)
    world.calm_down()
    assert world.written == EVERYTHING
    assert {at: offset.offset for at, offset in world.group.items()} == {
        at: len(all_) for at, all_ in EVERYTHING.items()
    }
