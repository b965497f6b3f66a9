from __future__ import annotations

import pytest
from connectctl.ops.kafka.consumer_group import ClientGroup, GroupMember
from connectctl.ops.operations.rolling.waiting import GateResult
from connectctl.ops.operations.streams_upgrade.gates import (
    ApplicationCriteria,
    ApplicationGateState,
    ApplicationHealth,
    evaluate,
)
from hypothesis import given
from hypothesis import strategies as st

DEMAND = ApplicationCriteria(members=2, lag=5, looks=3, timeout=100)


def health(
    at: float, members: int = 2, lag: int = 0, progress: int = 0, state: str = "Stable", **more: str
) -> ApplicationHealth:
    group = ClientGroup(
        "g", state, "consumer", tuple(GroupMember(f"m{n}", "c", "h") for n in range(members))
    )
    return ApplicationHealth(at, group, lag, progress, **more)


def after(
    *looks: ApplicationHealth, criteria: ApplicationCriteria = DEMAND
) -> GateResult[ApplicationGateState]:
    seen = GateResult(ApplicationGateState(0.0))
    for each in looks:
        seen = evaluate(seen.watch, each, criteria)
        if seen.passed or seen.stopped:
            break
    return seen


@pytest.mark.parametrize(
    ("looks", "passed", "unhealthy"),
    [
        ([health(n) for n in range(3)], True, ()),
        ([health(n) for n in range(2)], False, ()),
        ([health(0), health(1, members=1), health(2), health(3)], False, ()),
        (
            [health(n, members=3) for n in range(5)],
            False,
            ("the group has 3 members and should have 2",),
        ),
        (
            [health(n, state="PreparingRebalance") for n in range(5)],
            False,
            ("the group is PreparingRebalance",),
        ),
        ([health(n, lag=100 - n, progress=n) for n in range(3)], True, ()),
        ([health(n, lag=n, progress=n) for n in range(3)], True, ()),
        (
            [health(n, lag=10 + n, progress=n) for n in range(3)],
            False,
            ("lag 12, 2 more than 3 observations before",),
        ),
        ([health(n, lag=10 + n) for n in range(4)], False, ("no offset was committed, lag 13",)),
        ([health(0, problem="no answer")], False, ("no answer",)),
    ],
)
def test_a_gate_opens_for_a_whole_group_that_keeps_up(
    looks: list[ApplicationHealth], passed: bool, unhealthy: tuple[str, ...]
) -> None:
    seen = after(*looks)
    assert (seen.passed, seen.unhealthy) == (passed, unhealthy)


def test_a_gate_that_does_not_open_stops_and_says_why() -> None:
    seen = after(health(1, members=1), health(101, members=1))
    assert seen.stopped == "after 101 s: the group has 1 members and should have 2"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 2)), max_size=30))
def test_no_gate_opens_without_enough_healthy_looks_at_the_end(
    steps: list[tuple[int, int, int]],
) -> None:
    looks, progress = [], 0
    for at, (members, lag, more) in enumerate(steps):
        progress += more
        looks.append(health(at, members, lag, progress))
    seen = after(*looks)
    if seen.passed:
        last = [each for each in looks if seen.watch.last and each.at <= seen.watch.last.at][
            -DEMAND.looks :
        ]
        assert len(last) == DEMAND.looks
        assert all(len(each.group.members) == 2 for each in last)
        assert (last[-1].lag or 0) <= max(last[0].lag or 0, DEMAND.lag)
