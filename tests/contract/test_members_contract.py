"""What a task's members of a consumer group keep to that do not poll for too long, be they real or
made for tests: the same test on both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import Polled
from connectctl.ops.task_runtime.task.transactional_producer import PollIntervalExceeded
from fakes.consumergroup import Group, Member

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

SECONDS = 6
"""The shortest max.poll.interval.ms of a member: no shorter than a session that brokers allow."""
PATIENCE = 300.0


@dataclass(frozen=True)
class Stage:
    """How to open a member of one task, the partition with three records, and how to let time pass
    between two looks at a member.
    """

    open: Callable[[], Any]
    place: TopicPartition
    rest: Callable[[], None]


def read(member: Any, count: int) -> list[int]:
    """The offsets of the next records."""
    found: list[int] = []
    end = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < end, found
        if isinstance(event := member.poll(0.5, 10), Polled):
            found += [message.offset() for message in event.messages]
    return found


def exceeded(member: Any) -> bool:
    try:
        return member.metadata is None
    except PollIntervalExceeded:
        return True


class MembersContract:
    def test_a_member_that_did_not_poll_for_too_long_is_refused_and_the_next_one_reads_what_is_not_committed(
        self, stage: Stage
    ) -> None:
        member = stage.open()
        member.join()
        assert read(member, 3) == [0, 1, 2]
        member.commit({stage.place: GroupOffset(1)})
        member.took("put()", 60.0)
        end = time.monotonic() + PATIENCE
        while not exceeded(member):
            assert time.monotonic() < end
            stage.rest()
        slow = rf"^put\(\) took 60.0 s, more than max.poll.interval.ms of {SECONDS} s"
        with pytest.raises(PollIntervalExceeded, match=slow):
            member.poll(0.5, 10)
        with pytest.raises(PollIntervalExceeded, match=slow):
            member.commit({stage.place: GroupOffset(3)})
        assert not member.rewind()
        member.close()
        newer = stage.open()
        newer.join()
        assert read(newer, 2) == [1, 2]
        newer.commit({stage.place: GroupOffset(3)})


class TestFakeMember(MembersContract):
    """The member that tests of transforms believe in."""

    @pytest.fixture
    def stage(self) -> Stage:
        seconds = [0.0]
        place = TopicPartition("in", 0)
        group = Group({place: [b"0", b"1", b"2"]}, poll_interval=SECONDS, now=lambda: seconds[0])

        def rest() -> None:
            seconds[0] += 1.0

        return Stage(lambda: Member(group), place, rest)


@pytest.mark.live
class TestRealMember(MembersContract):
    """The real one on a real broker."""

    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Iterator[Stage]:
        from live.groupslots import Slots

        ms = str(SECONDS * 1000)
        given = {"max_poll_interval_ms": ms, "session_timeout_ms": ms}
        with Slots.new(cluster, 1, **given) as slots:
            slots.write(3)
            yield Stage(
                lambda: slots.member(0), TopicPartition(slots.source, 0), lambda: time.sleep(0.1)
            )
