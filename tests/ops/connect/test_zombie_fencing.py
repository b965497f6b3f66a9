"""How long a leader's round of fencing takes, by what was measured on real workers."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.zombie_fencing import (
    CURE,
    Backoff,
    FencingRound,
    diagnose,
    ids_to_fence,
)


@pytest.mark.parametrize(
    ("ids", "versions", "measured"),
    [
        (1, ("4.3.1",), 0.15),
        (5, ("4.3.1",), 2.0),
        (10, ("4.3.1",), 6.2),
        (20, ("4.3.1",), 15.9),
        (40, ("4.3.1",), 35.4),
        (40, (), 35.4),
        (40, ("3.6.2", "3.7.0"), 35.4),
        (40, ("3.6.2",), 3.9),
    ],
)
def test_the_prediction_is_near_what_was_measured(
    ids: int, versions: tuple[str, ...], measured: float
) -> None:
    assert Backoff(versions=versions).seconds(ids) == pytest.approx(measured, rel=0.3, abs=0.2)


def test_with_the_cure_two_hundred_ids_are_quick() -> None:
    assert Backoff.of(CURE).seconds(200) < 3
    assert Backoff.of({}) == Backoff(0.1, 1.0)
    assert Backoff.of({"admin.override.retry.backoff.ms": "nonsense"}) == Backoff()


@pytest.mark.parametrize(
    ("record", "tasks", "pending", "ids"),
    [
        (3, 5, True, 3),
        (3, 5, False, 0),
        (None, 5, True, 0),
        (1, 1, True, 0),
        (1, 2, True, 1),
        (2, 0, True, 0),
        (0, 3, True, 0),
    ],
)
def test_what_the_leader_fences(record: int | None, tasks: int, pending: bool, ids: int) -> None:
    assert ids_to_fence(record, tasks, pending) == ids


def round_(ids: list[int], left: list[int], since: float = 5.0, **more: object) -> FencingRound:
    return FencingRound("orders", ids, left, since, Backoff(), **more)  # type: ignore[arg-type]


def test_a_stalling_round_is_told_with_the_time_that_is_left() -> None:
    finding = diagnose(round_([40], [30]))
    assert finding is not None
    assert (finding.id, finding.severity) == ("FENCE008", "warning")
    assert (
        "zombie fencing (40 ids, sequential, 5 s so far), although their status is RUNNING. About "
        "30 s are left." in finding.message
    )
    assert finding.next_step == "connectctl connectors cure orders"


def test_coordinators_work_side_by_side() -> None:
    assert round_([40, 40, 40], [0, 0, 0]).total == round_([40], [0]).total
    assert round_([40, 20], [10, 15]).remaining == 15


def test_a_round_of_workers_before_3_7_has_equal_pauses() -> None:
    """40 ids took 3.9 s on 3.6.2: ``connectors show`` reported 35 s."""
    old = FencingRound("c", [40], [30], 1.0, Backoff(versions=("3.6.2",)))
    assert old.total == pytest.approx(3.9)
    assert old.remaining == pytest.approx(3.0)


def test_without_states_to_tell_ids_apart_time_tells_what_is_left() -> None:
    assert round_([20], [20], since=10).remaining == pytest.approx(Backoff().seconds(20) - 10)


def test_a_round_that_cannot_end_in_time_is_an_error() -> None:
    finding = diagnose(round_([110], [109]))
    assert finding is not None
    assert finding.severity == "error"
    assert "is given 90: all tasks will fail" in finding.message


def test_a_follower_gives_up_before_the_leader() -> None:
    finding = diagnose(round_([40], [30], workers=2))
    assert finding is not None
    assert "through another worker fails after 30 s" in finding.message


def test_a_quick_round_is_not_worth_a_word() -> None:
    assert diagnose(round_([3], [3])) is None


def test_a_round_that_failed_says_so() -> None:
    finding = diagnose(round_([110], [10], failed=(0, 1, 2)))
    assert finding is not None
    assert (
        "could not finish a round of fencing for 110 ids; 3 tasks failed by it" in finding.message
    )
