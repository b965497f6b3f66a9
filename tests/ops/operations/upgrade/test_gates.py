from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.connect.health import UnhealthyComponent
from connectctl.ops.operations.upgrade.gates import (
    GateState,
    HealthCriteria,
    HealthSnapshot,
    WorkersGateResult,
    evaluate,
    unhealthy,
)
from hypothesis import given
from hypothesis import strategies as st

DEMAND = HealthCriteria(("a:1", "b:1"), looks=3, timeout=60)
GOOD = HealthSnapshot(0.0, "Stable", {"a:1": "m1", "b:1": "m2"})
FAILED = UnhealthyComponent("orders", 0, "FAILED", "IOException: disk full")
FENCED = UnhealthyComponent("orders", 1, "FAILED", "TimeoutException", fencing=True)


def through(
    looks: Iterable[HealthSnapshot], criteria: HealthCriteria = DEMAND
) -> list[WorkersGateResult]:
    """What a gate makes of the looks, one second apart, until it passes or stops."""
    watch, seen = GateState(0.0), []
    for at, health in enumerate(looks):
        seen.append(evaluate(watch, replace(health, at=float(at)), criteria))
        watch = seen[-1].watch
        if seen[-1].passed or seen[-1].stopped:
            break
    return seen


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"state": "PreparingRebalance"}, "the group is PreparingRebalance"),
        ({"members": {"a:1": "m1"}}, "b:1 is not in the group"),
        ({"silent": {"b:1": "Connection refused"}}, "b:1 does not answer: Connection refused"),
        ({"silent": {"c:1": "Connection refused"}}, None),
        ({"delay_ms": 4000}, "unassigned tasks wait for 4 s"),
        ({"unhealthy_components": (FAILED,)}, "orders/0 is FAILED (IOException: disk full)"),
        (
            {"unhealthy_components": (UnhealthyComponent("orders", -1, "UNASSIGNED"),)},
            "orders is UNASSIGNED",
        ),
        ({"problem": "the brokers do not tell"}, "the brokers do not tell"),
    ],
)
def test_what_is_not_healthy_is_said(change: dict[str, Any], words: str | None) -> None:
    found = unhealthy(replace(GOOD, **change), DEMAND)
    assert words in found[0] if words else found == ()


def test_a_gate_opens_after_enough_healthy_looks_in_a_row() -> None:
    seen = through([GOOD, GOOD, replace(GOOD, state="PreparingRebalance"), GOOD, GOOD, GOOD, GOOD])
    assert [s.passed for s in seen] == [False] * 5 + [True]


def test_a_gate_waits_until_nothing_has_moved_for_as_long_as_the_cluster_takes_to_settle() -> None:
    before = replace(GOOD, assigned={("orders", 0): "m1"})
    taken, given = replace(GOOD, assigned={}), replace(GOOD, assigned={("orders", 0): "m2"})
    seen = through([before, before, before, taken, *[given] * 20], replace(DEMAND, settle=5))
    assert len(seen) == 10
    assert seen[-1].passed
    again = replace(given, members={"a:1": "m1", "b:1": "m3"})
    assert len(through([given, given, *[again] * 20], replace(DEMAND, settle=5))) == 8


def test_what_never_settles_stops_a_gate_with_a_reason() -> None:
    moving = [replace(GOOD, assigned={("orders", 0): f"m{n % 2}"}) for n in range(80)]
    assert (
        through(moving)[-1].stopped
        == "after 60 s: connectors and tasks keep moving between workers"
    )


def test_what_was_failed_before_is_the_baseline() -> None:
    criteria = replace(DEMAND, baseline={FAILED.part: 2})
    assert through([replace(GOOD, unhealthy_components=(FAILED,))] * 3, criteria)[-1].passed


def test_a_task_that_was_unassigned_before_may_not_fail_now() -> None:
    criteria = replace(DEMAND, baseline={FAILED.part: 1})
    assert unhealthy(replace(GOOD, unhealthy_components=(FAILED,)), criteria)


def test_what_stays_failed_stops_the_gate_without_waiting_for_its_deadline() -> None:
    seen = through([replace(GOOD, unhealthy_components=(FAILED,))] * 60)
    assert len(seen) == 4
    assert seen[-1].stopped == "orders/0 is FAILED (IOException: disk full)"


def test_failures_that_are_tolerated_do_not_stop_it() -> None:
    health = replace(GOOD, unhealthy_components=(FAILED,))
    assert through([health] * 3, replace(DEMAND, max_failures=1))[-1].passed
    both = replace(GOOD, unhealthy_components=(FAILED, replace(FAILED, task=7)))
    assert through([both] * 60, replace(DEMAND, max_failures=1))[-1].stopped


def test_a_worker_that_stays_away_stops_it_at_the_deadline() -> None:
    seen = through([replace(GOOD, members={"a:1": "m1"})] * 100)
    assert len(seen) == 61
    assert seen[-1].stopped == "after 60 s: b:1 is not in the group"


def test_a_pending_rebalance_delay_does_not_count_for_the_deadline() -> None:
    delayed = replace(
        GOOD,
        delay_ms=300_000,
        unhealthy_components=(UnhealthyComponent("orders", 0, "UNASSIGNED"),),
    )
    seen = through([delayed] * 300 + [GOOD] * 3)
    assert seen[-1].passed
    assert seen[-1].watch.delay == 300
    assert through([delayed] * 500)[-1].stopped


def test_tasks_whose_round_of_fencing_failed_are_named_for_a_restart() -> None:
    health = replace(GOOD, unhealthy_components=(FAILED, FENCED))
    assert through([health])[-1].fenced == (FENCED,)
    assert through([replace(health, state="PreparingRebalance")])[-1].fenced == ()


def test_a_single_step_downgrade_lets_them_be() -> None:
    criteria = replace(DEMAND, forgives_fencing=True)
    assert through([replace(GOOD, unhealthy_components=(FENCED,))] * 3, criteria)[-1].passed
    assert not through([replace(GOOD, unhealthy_components=(FAILED,))] * 3, criteria)[-1].passed


LOOKS = st.lists(
    st.builds(
        lambda state, away, delay, component: replace(
            GOOD,
            state=state,
            members={"a:1": "m1"} if away else GOOD.members,
            delay_ms=delay,
            unhealthy_components=(component,) if component else (),
        ),
        st.sampled_from(["Stable", "Stable", "Stable", "PreparingRebalance"]),
        st.booleans(),
        st.sampled_from([0, 0, 5000]),
        st.sampled_from([None, None, FAILED, FENCED]),
    ),
    max_size=90,
)


@given(LOOKS)
def test_a_gate_never_opens_on_anything_but_healthy_looks_and_always_ends(
    looks: list[HealthSnapshot],
) -> None:
    seen = through([*looks, *[replace(GOOD, members={})] * 80])
    last = seen[-1]
    if last.passed:
        assert not any(unhealthy(health, DEMAND) for health in looks[len(seen) - 3 : len(seen)])
    else:
        assert last.stopped
