from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import NotAuthorized, Refused
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import to_data
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.operations.upgrade.context import GateSettings
from connectctl.ops.operations.upgrade.mode import Confidence, SourceSupport, WorkerMode
from connectctl.ops.operations.upgrade.planning import RollRequest, plan
from connectctl.ops.operations.upgrade.request import (
    Conditions,
    UpgradeRequest,
    conditions_in,
    request_in,
)
from connectctl.ops.operations.upgrade.restart_order import next_workers
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot, RollingWorker
from connectctl.ops.operations.upgrade.steps import (
    ChangeProperty,
    CheckModes,
    Gate,
    Rejoin,
    ReplaceBinaries,
    RestartFailed,
    RestartWorker,
)
from connectctl.ops.registry import KINDS
from hypothesis import given
from hypothesis import strategies as st

D, P, E, U, OLD = (
    SourceSupport.DISABLED,
    SourceSupport.PREPARING,
    SourceSupport.ENABLED,
    SourceSupport.UNKNOWN,
    SourceSupport.NOT_SUPPORTED,
)


def worker(name: str, value: SourceSupport, **more: Any) -> RollingWorker:
    support = {E: Support.ENABLED, OLD: Support.NOT_SUPPORTED}.get(value, Support.NOT_ENABLED)
    mode = WorkerMode(value, Confidence.CONFIGURED, "file")
    return RollingWorker(
        name,
        f"http://{name}/",
        mode,
        version="4.3.1",
        member=f"m-{name}",
        **({"support": support} | more),
    )


def cluster(*values: SourceSupport, leader: int = 0, **more: Any) -> RollingSnapshot:
    workers = tuple(
        worker(chr(97 + n), value, leader=n == leader) for n, value in enumerate(values)
    )
    return RollingSnapshot("cluster", "connect", "Stable", workers, **more)


def changes(found: Any) -> list[tuple[str, str]]:
    return [
        (w, step.value)
        for step in found.steps
        if isinstance(step, ChangeProperty)
        for w in step.workers
    ]


@pytest.mark.parametrize(
    ("values", "wish", "expected"),
    [
        ((D, D), RollRequest(E), [("b", P), ("a", P), ("a", E), ("b", E)]),
        ((D, D), RollRequest(P), [("b", P), ("a", P)]),
        ((P, P), RollRequest(E), [("b", E), ("a", E)]),
        ((E, E), RollRequest(E), []),
        ((E, E), RollRequest(D), [("b", P), ("a", P), ("a", D), ("b", D)]),
        ((E, E), RollRequest(D, straight=True), [("b", D), ("a", D)]),
        ((P, P), RollRequest(D), [("b", D), ("a", D)]),
        ((E, D), RollRequest(E), [("b", P), ("b", E)]),
        ((E, P), RollRequest(D), [("a", P), ("a", D), ("b", D)]),
        ((P, D, P), RollRequest(E), [("b", P), ("b", E), ("c", E), ("a", E)]),
        ((U, D), RollRequest(D), [("a", D)]),
        ((U, U), RollRequest(E), [("b", P), ("a", P), ("a", E), ("b", E)]),
        ((E, E), RollRequest(P), [("b", P), ("a", P)]),
        ((OLD, D), RollRequest(D), []),
        ((E, P), RollRequest(D, only=("b",)), [("b", D)]),
        ((E, P), RollRequest(D, targets={"a": E}), [("b", D)]),
    ],
)
def test_a_plan_goes_from_what_is_to_what_is_wished(
    values: tuple[SourceSupport, ...], wish: RollRequest, expected: list[tuple[str, str]]
) -> None:
    assert changes(plan(cluster(*values), wish)) == expected


def test_a_converged_cluster_needs_nothing_whatever_else_is_wrong_with_it() -> None:
    error = Finding("ACL001", Severity.ERROR, "x", "No right.")
    assert plan(cluster(E, E), RollRequest(E), [error]).steps == ()


def test_broken_workers_are_first_and_the_leader_is_last() -> None:
    snapshot = cluster(D, D, D, leader=0)
    sick = replace(
        snapshot, workers=(*snapshot.workers[:2], replace(snapshot.workers[2], problem="refused"))
    )
    assert [w for w, _ in changes(plan(sick, RollRequest(P)))] == ["c", "b", "a"]


def test_a_broken_leader_is_first() -> None:
    snapshot = cluster(D, D, leader=1)
    sick = replace(
        snapshot, workers=(snapshot.workers[0], replace(snapshot.workers[1], problem="refused"))
    )
    assert [w for w, _ in changes(plan(sick, RollRequest(P)))] == ["b", "a"]


def test_workers_that_are_restarted_together_have_one_turn() -> None:
    snapshot = cluster(D, D)
    together = tuple(replace(w, restart_group="KafkaConnect prod/c") for w in snapshot.workers)
    found = plan(replace(snapshot, workers=together), RollRequest(E))
    assert [step.workers for step in found.steps if isinstance(step, ChangeProperty)] == [
        ("b", "a")
    ] * 2
    assert found.steps[1].worker is None


def test_every_reason_to_refuse_is_told_at_once() -> None:
    snapshot = cluster(OLD, D, D)
    workers = (
        *snapshot.workers[:2],
        replace(snapshot.workers[2], obstacle="its file cannot be written"),
    )
    error = Finding("ACL001", Severity.ERROR, "connect", "The worker may not write.")
    warning = Finding("X", Severity.WARNING, "connect", "Fine.")
    with pytest.raises(Refused) as caught:
        plan(replace(snapshot, workers=workers), RollRequest(E), [error, warning])
    for words in (
        "came with 3.3",
        "c cannot be changed: its file cannot be written",
        "ACL001 connect",
    ):
        assert words in str(caught.value)
    assert "Fine" not in str(caught.value)


@pytest.mark.parametrize("mended", ["CLUSTER004", "WORKER004"])
def test_what_a_roll_mends_is_no_reason_to_refuse_it(mended: str) -> None:
    assert plan(
        cluster(D, D), RollRequest(P), [Finding(mended, Severity.ERROR, "a", "It does not answer.")]
    ).steps


@pytest.mark.parametrize(
    ("state", "words"), [("PreparingRebalance", "rebalance is over"), ("Empty", "no worker")]
)
def test_a_group_that_is_not_stable_is_not_rolled(state: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        plan(replace(cluster(D, D), state=state), RollRequest(E))


def test_a_plan_says_what_it_does_not_know() -> None:
    snapshot = replace(cluster(D, U), max_delay="300000")
    told = "\n".join(plan(snapshot, RollRequest(E)).warnings)
    assert (
        "a: disabled according to its properties (file); cannot be verified from outside." in told
    )
    assert "b: mode unknown" in told
    assert "up to 300 s" in told
    assert "The leader after the restart of a" in told


def test_a_plan_fits_workers_with_their_modes_and_versions_whoever_leads() -> None:
    before = cluster(D, D, leader=0).to_baseline()
    assert cluster(D, D, leader=1).to_baseline().has_workers_of(before)
    newer = replace(
        cluster(D, D), workers=tuple(replace(w, version="4.4.0") for w in cluster(D, D).workers)
    )
    for other in (cluster(D, P), cluster(D), newer):
        assert not other.to_baseline().has_workers_of(before)


def test_binaries_are_replaced_after_the_modes_or_at_once() -> None:
    two = plan(cluster(E, E), RollRequest(D, straight=True, binaries=True))
    assert changes(two) == [("b", D), ("a", D)]
    one = plan(cluster(E, E), RollRequest(None, binaries=True))
    assert changes(one) == []
    for found in (one, two):
        assert len([step for step in found.steps if isinstance(step, ReplaceBinaries)]) == 2
        assert isinstance(found.steps[-1], RestartFailed)


MODES = st.sampled_from([D, P, E, U])
CLUSTERS = st.builds(
    lambda values, leader, broken: _cluster(values, leader % len(values), broken),
    st.lists(MODES, min_size=1, max_size=5),
    st.integers(0, 4),
    st.sets(st.integers(0, 4), max_size=2),
)


def _cluster(values: list[SourceSupport], leader: int, broken: set[int]) -> RollingSnapshot:
    snapshot = cluster(*values, leader=leader)
    workers = tuple(
        replace(w, problem="refused") if n in broken else w for n, w in enumerate(snapshot.workers)
    )
    return replace(snapshot, workers=workers)


@given(CLUSTERS, st.sampled_from([D, P, E]))
def test_any_mix_of_modes_comes_to_the_wish_one_by_one_and_never_skips_preparing(
    snapshot: RollingSnapshot, to: SourceSupport
) -> None:
    found = plan(snapshot, RollRequest(to))
    now = {w.address: w.value for w in snapshot.workers}
    for step in found.steps:
        if isinstance(step, ChangeProperty):
            (address,) = step.workers
            value = SourceSupport(step.value)
            assert {now[address], value} != {D, E}
            if value is E:
                assert all(mode in (P, E) for mode in now.values())
            now[address] = value
        elif isinstance(step, CheckModes):
            assert step.expected == now
    assert set(now.values()) <= {to}
    kinds = [type(step) for step in found.steps if getattr(step, "workers", None)]
    assert kinds == [ChangeProperty, RestartWorker, Rejoin, Gate] * (len(kinds) // 4)


@given(CLUSTERS, st.sampled_from([D, P, E]))
def test_the_first_roll_takes_what_is_broken_first_and_a_sound_leader_last(
    snapshot: RollingSnapshot, to: SourceSupport
) -> None:
    steps = [
        step for step in plan(snapshot, RollRequest(to)).steps if isinstance(step, ChangeProperty)
    ]
    first = [step.worker for step in steps if step.phase == steps[0].phase]
    by_name = {w.address: w for w in snapshot.workers}
    broken = [by_name[str(name)].broken for name in first]
    assert broken == sorted(broken, reverse=True)
    leaders = [
        n
        for n, name in enumerate(first)
        if by_name[str(name)].leader and not by_name[str(name)].broken
    ]
    assert leaders in ([], [len(first) - 1])


@given(CLUSTERS, st.sampled_from([D, P, E]))
def test_steps_survive_being_written_down(snapshot: RollingSnapshot, to: SourceSupport) -> None:
    found = plan(snapshot, RollRequest(to, binaries=True))
    request = UpgradeRequest(str(to), None, {"a": "b"}, ("c",))
    conditions = Conditions(snapshot.to_baseline(), GateSettings(looks=5))
    data = {"request": to_data(request), "conditions": to_data(conditions)}
    written = json.loads(
        json.dumps(Plan("upgrade", "cluster", found.steps, group_id="connect", **data).as_json())
    )
    read = Plan.from_json(written, KINDS)
    assert (read.steps, request_in(read), conditions_in(read)) == (found.steps, request, conditions)


A, B, C = ("a",), ("b",), ("c",)


@pytest.mark.parametrize(
    ("taken", "slot", "leader", "expected"),
    [
        ({}, 0, "c", A),
        ({}, 0, "a", B),
        ({0: B}, 1, "a", C),
        ({0: B, 1: C}, 2, "a", A),
        ({0: B}, 1, "c", A),
        ({0: B}, 0, "b", B),
        ({0: A, 1: B}, 2, "c", C),
    ],
)
def test_who_leads_by_now_is_left_for_the_end(
    taken: dict[int, tuple[str, ...]], slot: int, leader: str, expected: tuple[str, ...]
) -> None:
    assert next_workers((A, B, C), taken, slot, leader) == expected


@given(
    st.permutations(["a", "b", "c", "d"]), st.lists(st.sampled_from("abcd"), min_size=4, max_size=4)
)
def test_whoever_leads_when_everybody_has_one_turn(order: list[str], leaders: list[str]) -> None:
    planned = tuple((name,) for name in order)
    taken: dict[int, tuple[str, ...]] = {}
    for slot, leader in enumerate(leaders):
        taken[slot] = next_workers(planned, taken, slot, leader)
        assert taken[slot] != (leader,) or slot == 3
    assert sorted(taken.values()) == [("a",), ("b",), ("c",), ("d",)]


def test_a_refusal_keeps_what_is_to_be_done_about_each_finding() -> None:
    found = Finding(
        "TOPIC002",
        Severity.ERROR,
        "offsets topic",
        "It is not found.",
        "Give --offsets-topic TOPIC.",
    )
    with pytest.raises(
        Refused, match=r"TOPIC002 offsets topic: It is not found \(Give --offsets-topic TOPIC\)"
    ):
        plan(cluster(D), RollRequest(P), [found])


def test_a_plan_that_only_misses_a_right_is_not_authorized_and_names_it() -> None:
    right = Right(Operation.READ, Resource.TOPIC, "own")
    unread = Finding("OFFSETS011", Severity.ERROR, "c", "own cannot be read", denied=right)
    unseen = Finding("STORE003", Severity.ERROR, "c", "its dedicated topic does not exist")
    with pytest.raises(NotAuthorized) as refused:
        plan(cluster(D, D), RollRequest(E), [unread, unseen])
    assert (refused.value.right, "OFFSETS011" in str(refused.value)) == (right, True)
    assert "Grant Read on Topic own" in str(refused.value)
    other = Finding("STORE001", Severity.ERROR, "d", "it loses offsets")
    with pytest.raises(Refused) as refused_too:
        plan(cluster(D, D), RollRequest(E), [unread, other])
    assert "OFFSETS011" in str(refused_too.value)
    assert "STORE001" in str(refused_too.value)
