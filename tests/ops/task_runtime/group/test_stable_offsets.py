"""Pending offsets of a group are waited for as long as they last, unless somebody has said for how
long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group import stable_offsets
from connectctl.ops.task_runtime.group.stable_offsets import StableOffsets
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

PLACE = TopicPartition("in", 0)
TEXT = "offsets of g on in-0 are pending (KIP-447), and wait for the transaction of app-0"


class Clock:
    """Time that goes on only as somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Coordinator:
    """Has offsets pending until ``until``."""

    def __init__(self, clock: Clock, until: float):
        self.clock, self.until = clock, until

    def stable_offsets(self, partitions: Any) -> Any:
        if self.clock.now < self.until:
            return {}, frozenset(partitions)
        return {place: GroupOffset(7) for place in partitions}, frozenset()


@pytest.fixture
def waited(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[StableOffsets, Clock, list[tuple[str, bool]]]]:
    def made(until: float, **more: Any) -> tuple[StableOffsets, Clock, list[tuple[str, bool]]]:
        clock, heard = Clock(), list[tuple[str, bool]]()
        monkeypatch.setattr(stable_offsets, "time", clock)
        monkeypatch.setattr(
            stable_offsets, "holders_of_offsets", lambda *_: "the transaction of app-0"
        )
        monkeypatch.setattr(StableOffsets, "_coordinator", lambda self: Coordinator(clock, until))
        kafka: Any = None

        def hear(text: str, endless: bool) -> None:
            heard.append((text, endless))

        return StableOffsets(kafka, "g", waiting=hear, sleep=clock.sleep, **more), clock, heard

    return made


def test_they_are_waited_for_as_long_as_they_last_and_by_the_transaction_that_holds_them(
    waited: Any,
) -> None:
    stable, clock, heard = waited(900.0)
    assert stable([PLACE]) == {PLACE: GroupOffset(7)}
    assert clock.now >= 900.0
    assert heard[-1] == (TEXT, True)


def test_the_transactions_that_hold_them_are_looked_up_again_and_more_and_more_seldom(
    waited: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable, clock, heard = waited(900.0)
    looks: list[float] = []

    def holders(*_: object) -> str:
        looks.append(clock.now)
        return f"the transaction of app-{len(looks)}"

    monkeypatch.setattr(stable_offsets, "holders_of_offsets", holders)
    stable([PLACE])
    assert 5 < len(looks) < 12
    assert heard[-1][0].endswith(f"wait for the transaction of app-{len(looks)}")


def test_where_somebody_has_said_for_how_long_it_ends_with_the_transaction_and_is_not_tried_again(
    waited: Any,
) -> None:
    stable, clock, heard = waited(900.0, limit=20.0)
    with pytest.raises(ConnectctlError) as raised:
        stable([PLACE])
    assert (raised.value.code, raised.value.why, isinstance(raised.value, TimedOut)) == (
        "pending-offsets",
        TEXT,
        False,
    )
    assert 20.0 < clock.now < 22.0
    assert heard[-1] == (TEXT, False)


def test_a_task_that_is_stopped_or_stale_waits_no_longer(waited: Any) -> None:
    stable, clock, _ = waited(900.0)
    stable.stopped = lambda: clock.now > 5.0
    with pytest.raises(TimedOut, match="The task is stopped"):
        stable([PLACE])
    assert clock.now < 8.0
    stable, clock, _ = waited(
        900.0, stale_because=lambda: "newer configs" if clock.now > 5.0 else None
    )
    with pytest.raises(UnknownOutcome, match="newer configs"):
        stable([PLACE])
    assert clock.now < 15.0
