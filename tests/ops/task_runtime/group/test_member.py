"""What a member gives of what librdkafka tells, without a broker."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group import member as member_module
from connectctl.ops.task_runtime.group.consumer import (
    Assigned,
    GroupEvent,
    GroupOffsets,
    Lost,
    Polled,
    Revoked,
)
from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings
from connectctl.ops.task_runtime.group.member import TaskMember
from connectctl.ops.task_runtime.group.poll_interval import PollInterval
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    PollIntervalExceeded,
    UnknownOutcome,
)
from fakes.consumergroup import Message

PLACE = TopicPartition("in", 0)


class Library:
    """confluent-kafka's consumer: it assigns ``in-0`` in its first poll, and gives messages at the
    offsets in ``next``.
    """

    def __init__(self) -> None:
        self.next: list[int] = []
        self.callbacks: dict[str, Any] = {}
        self.assigned: list[Any] = []
        self.sought: list[int] = []
        self.error: Any = None
        self.on_poll: Callable[[], None] = lambda: None

    def subscribe(self, topics: Sequence[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consume(self, most: int, seconds: float) -> list[Any]:
        if not self.assigned:
            self.callbacks["on_assign"](self, [SimpleNamespace(topic="in", partition=0)])
        self.on_poll()
        if self.error is not None:
            return [SimpleNamespace(error=lambda: self.error)]
        found, self.next = self.next[:most], self.next[most:]
        return [Given(PLACE, offset, b"") for offset in found]

    def memberid(self) -> str:
        return "id-1"

    def incremental_assign(self, places: list[Any]) -> None:
        self.assigned = places

    def seek(self, place: Any) -> None:
        self.sought.append(place.offset)

    def resume(self, places: Any) -> None:
        """None is paused any more."""


def positions(places: Any, *, earliest: bool) -> dict[TopicPartition, int]:
    """A log that begins at 0 and ends at 9."""
    return dict.fromkeys(places, 0 if earliest else 9)


class Given(Message):
    def error(self) -> None:
        return None


class Stable:
    """The committed offsets."""

    def __init__(self, offsets: GroupOffsets):
        self.offsets = offsets
        self.heard: list[tuple[str, bool]] = []

    def waiting(self, text: str, endless: bool = False) -> None:
        self.heard.append((text, endless))

    def __call__(self, partitions: Any) -> GroupOffsets:
        return self.offsets

    def close(self) -> None:
        """It has no connection."""


def joined(
    committed: int | None, properties: Mapping[str, str] = MappingProxyType({})
) -> tuple[TaskMember, Library]:
    library = Library()
    kafka: Any = SimpleNamespace(
        timeout=1.0, properties=dict, ask=lambda doing, call: library, positions=positions
    )
    offsets = {} if committed is None else {PLACE: GroupOffset(committed)}
    stable: Any = Stable(offsets)
    settings = ConsumerSettings("g", properties=properties)
    member = TaskMember(kafka, settings, ["in"], "id", stable, patience=1.0)
    member.join()
    assert member.poll(0, 1) == Assigned([PLACE], {PLACE: GroupOffset(committed or 0)})
    return member, library


def test_an_older_attempt_that_gets_no_assignment_ends_as_stale_and_not_when_its_patience_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library()
    monkeypatch.setattr(library, "consume", lambda most, seconds: [])
    monkeypatch.setattr(member_module, "LOOK", 0.01)
    kafka: Any = SimpleNamespace(
        timeout=1.0, properties=dict, ask=lambda doing, call: library, positions=positions
    )
    answers = iter([None, "generation 8 is newer than 7"])
    stable: Any = Stable({})
    older = TaskMember(
        kafka,
        ConsumerSettings("g"),
        ["in"],
        "id",
        stable,
        stale_because=lambda: next(answers),
        patience=600.0,
    )
    with pytest.raises(UnknownOutcome, match="generation 8 is newer than 7"):
        older.join()
    assert stable.heard == [("the consumer group g rebalances", False)]


def offsets(event: GroupEvent) -> list[int]:
    assert isinstance(event, Polled)
    return [m.offset() for m in event.messages]


def test_it_begins_at_the_groups_offset_and_else_at_the_beginning() -> None:
    assert [p.offset for p in joined(5)[1].assigned] == [5]
    assert [p.offset for p in joined(None)[1].assigned] == [0]


def test_a_log_that_begins_anew_is_a_doubt_because_what_was_read_of_the_older_must_not_be_committed() -> (
    None
):
    member, library = joined(None)
    library.next = [0, 1, 2]
    assert offsets(member.poll(0, 10)) == [0, 1, 2]
    library.next = [0]
    with pytest.raises(UnknownOutcome, match="in-0 starts again at offset 0, after 2"):
        member.poll(0, 10)


def test_a_groups_offset_beyond_the_end_passes_no_record_over() -> None:
    member, library = joined(5)
    library.next = [0, 1]  # auto.offset.reset=earliest
    assert offsets(member.poll(0, 10)) == [0, 1]


def test_what_was_on_its_way_when_a_later_offset_was_sought_is_not_given() -> None:
    member, library = joined(0)
    library.next = [0, 1]
    member.poll(0, 10)
    member.seek({PLACE: 7})
    library.next = [2, 3, 7, 8]
    assert offsets(member.poll(0, 10)) == [7, 8]


@pytest.mark.parametrize(("committed", "start"), [(5, 5), (None, 0)])
def test_behind_a_doubt_of_the_producer_it_reads_again_from_what_is_committed(
    committed: int | None, start: int
) -> None:
    member, library = joined(committed)
    library.next = [5, 6]
    assert offsets(member.poll(0, 10)) == [5, 6]
    assert member.rewind()
    assert library.sought == [start]
    assert member.poll(0, 10) == Assigned((PLACE,), {PLACE: GroupOffset(start)})
    library.next = [5, 6]
    assert offsets(member.poll(0, 10)) == [5, 6]


def test_a_revocation_is_an_event_and_the_partitions_are_its_own_until_the_next_poll() -> None:
    member, library = joined(5)
    given = [SimpleNamespace(topic="in", partition=0)]
    library.on_poll = lambda: library.callbacks["on_revoke"](library, given)
    library.next = [5, 6]
    assert member.poll(0, 10) == Revoked([PLACE])
    assert member.assignment == {PLACE}
    assert member.poll(0, 10) == Polled([])  # nothing of what was on its way
    assert member.assignment == frozenset()


def test_while_a_revocation_is_held_the_consumer_is_called_on_its_own_thread() -> None:
    """From another one, librdkafka 2.16 never answered."""
    member, library = joined(5)
    threads: list[threading.Thread] = []

    def revoke() -> None:
        threads.append(threading.current_thread())
        library.callbacks["on_revoke"](library, [SimpleNamespace(topic="in", partition=0)])

    library.on_poll = revoke
    vars(library)["consumer_group_metadata"] = lambda: threads.append(threading.current_thread())
    assert member.poll(0, 10) == Revoked([PLACE])
    assert member.metadata is None
    member.poll(0, 10)
    assert len(threads) == 2
    assert {*threads} == {threads[0]} != {threading.current_thread()}


def test_partitions_that_are_lost_are_not_its_own_any_more_when_it_tells_so() -> None:
    member, library = joined(5)
    given = [SimpleNamespace(topic="in", partition=0)]
    library.on_poll = lambda: library.callbacks["on_lost"](library, given)
    assert member.poll(0, 10) == Lost([PLACE])
    assert member.assignment == frozenset()


def test_behind_a_doubt_in_a_revocation_it_reads_again_what_it_still_has() -> None:
    member, library = joined(5)
    given = [SimpleNamespace(topic="in", partition=0)]
    library.on_poll = lambda: library.callbacks["on_revoke"](library, given)
    assert member.poll(0, 10) == Revoked([PLACE])
    assert member.rewind()
    assert (member.assignment, library.sought) == (frozenset(), [])


def test_a_member_that_is_closed_in_a_revocation_closes_its_consumer() -> None:
    member, library = joined(5)
    closed = threading.Event()
    vars(library)["close"] = closed.set
    given = [SimpleNamespace(topic="in", partition=0)]
    library.on_poll = lambda: library.callbacks["on_revoke"](library, given)
    assert member.poll(0, 10) == Revoked([PLACE])
    member.close()
    assert closed.wait(60)


def test_behind_a_poll_that_failed_it_is_thrown_away() -> None:
    member, library = joined(0)
    library.next = [0, 1]
    member.poll(0, 10)
    library.next = [0]
    with pytest.raises(UnknownOutcome):
        member.poll(0, 10)
    assert not member.rewind()


def test_a_fatal_error_of_the_poll_that_tells_of_a_newer_attempt_is_fenced() -> None:
    member, library = joined(0)
    # As librdkafka 2.16 gave it; fatal() of it is false.
    text = (
        "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id"
    )
    library.error = SimpleNamespace(name=lambda: "_FATAL", fatal=lambda: False, str=lambda: text)
    with pytest.raises(Fenced, match="another attempt has its"):
        member.poll(0, 10)


def test_a_member_that_loses_its_partitions_because_it_is_fenced_hears_that_it_is_fenced() -> None:
    """librdkafka 2.16 gives the error once, in the poll in which the partitions are lost. A member
    that did not hear it polled forever, in no group.
    """
    member, library = joined(0)
    given = [SimpleNamespace(topic="in", partition=0)]
    library.on_poll = lambda: library.callbacks["on_lost"](library, given)
    text = "Static consumer fenced by other consumer with same group.instance.id"
    library.error = SimpleNamespace(name=lambda: "_FATAL", fatal=lambda: False, str=lambda: text)
    with pytest.raises(Fenced, match="another attempt has its"):
        member.poll(0, 10)


@pytest.mark.parametrize(("epoch", "has_joined"), [(3, True), (0, False)])
def test_a_member_of_kip_848_that_is_assigned_nothing_has_joined_with_its_epoch(
    monkeypatch: pytest.MonkeyPatch, epoch: int, has_joined: bool
) -> None:
    library = Library()
    library.assigned = ["nothing, which it hears nothing of"]
    metadata = b"CGMDv2:" + epoch.to_bytes(4, sys.byteorder) + b"g\0m\0\1"
    monkeypatch.setattr(library, "consumer_group_metadata", lambda: metadata, raising=False)
    kafka: Any = SimpleNamespace(
        timeout=0.2, properties=dict, ask=lambda doing, call: library, positions=positions
    )
    settings = ConsumerSettings("g", properties={"group.protocol": "consumer"})
    stable: Any = None
    member = TaskMember(kafka, settings, ["in"], "id", stable)
    with (
        nullcontext()
        if has_joined
        else pytest.raises(TimedOut, match="No assignment received from the group")
    ):
        member.patience = 0.1 if not has_joined else 5
        member.join()
    assert member.assignment == frozenset()


@pytest.mark.parametrize("endless", [False, True])
def test_a_member_that_waits_for_a_topic_names_it_and_waits_without_an_end_only_where_its_run_has_none(
    monkeypatch: pytest.MonkeyPatch, endless: bool
) -> None:
    library, stable = Library(), Stable({})
    text = "Subscribed topic not available: in: Broker: Unknown topic or partition"
    error = SimpleNamespace(
        name=lambda: "UNKNOWN_TOPIC_OR_PART", fatal=lambda: False, str=lambda: text
    )
    polls = iter([[SimpleNamespace(error=lambda: error)]])
    monkeypatch.setattr(library, "consume", lambda most, seconds: next(polls, []))
    kafka: Any = SimpleNamespace(timeout=1.0, properties=dict, ask=lambda doing, call: library)
    over = iter([False] * 50)
    member = TaskMember(
        kafka, ConsumerSettings("g"), ["in"], "id", cast(Any, stable), lambda: next(over, True)
    )
    member.waits_for_topics, member.patience = endless, 0.0
    with nullcontext() if endless else pytest.raises(TimedOut, match=text):
        member.join()
    assert stable.heard == [(text, endless)]


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock by which members measure the time between two polls."""
    made = [0.0]
    timed = partial(PollInterval, now=lambda: made[0])
    monkeypatch.setattr(member_module, "PollInterval", timed)
    return made


TEN = {"max.poll.interval.ms": "10000"}


@pytest.mark.parametrize("asks", ["poll", "commit", "metadata"])
def test_a_member_that_did_not_poll_for_too_long_names_the_interval_and_the_call_that_was_slow(
    asks: str, seconds: list[float]
) -> None:
    member, library = joined(0, TEN)
    library.next = [0, 1]
    assert offsets(member.poll(0, 1)) == [0]
    seconds[0] = 9.9
    assert offsets(member.poll(0, 1)) == [1]
    seconds[0] = 22.0
    member.took("pre_commit()", 0.5)
    member.took("put()", 11.6)
    with pytest.raises(
        PollIntervalExceeded, match=r"^put\(\) took 11.6 s, more than max.poll.interval.ms of 10 s"
    ):
        member.poll(0, 1) if asks == "poll" else member.commit(
            {}
        ) if asks == "commit" else member.metadata


def test_a_member_that_nobody_polled_between_two_attempts_is_thrown_away(
    seconds: list[float],
) -> None:
    member, _ = joined(0, TEN)
    member.poll(0, 1)
    seconds[0] = 10.0
    assert member.rewind()
    seconds[0] = 10.1
    assert not member.rewind()


def test_time_that_no_call_took_is_told_as_it_is() -> None:
    seconds = [0.0]
    interval = PollInterval(10.0, lambda: seconds[0])
    interval.check()
    with interval.polling():
        seconds[0] = 60.0
        interval.check()
    interval.took("put()", 1.0)
    seconds[0] = 90.0
    with pytest.raises(PollIntervalExceeded, match=r"^30.0 s passed between two polls"):
        interval.check()
