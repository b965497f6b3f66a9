from __future__ import annotations

import pytest
from connectctl.ops.connect.connector import Connector, State, Status
from connectctl.ops.connect.target_state_wait import GRACE, STEADY, WaitState, evaluate
from connectctl.ops.operations.connectors.steps import already_satisfied
from hypothesis import given
from hypothesis import strategies as st


def conn(
    own: str | None,
    *tasks: str,
    trace: str = "boom",
    stale_tasks: tuple[str, ...] = (),
    target: str | None = None,
    owner: str | None = None,
) -> Connector:
    def status(state: str) -> Status:
        return Status(state, "one:8083", trace if state == "FAILED" else None)

    return Connector(
        "c",
        status(own) if own else None,
        {n: status(s) for n, s in enumerate(tasks)},
        target_state=target,
        stale_tasks={n + 9: status(s) for n, s in enumerate(stale_tasks)},
        assigned=None if owner is None else dict.fromkeys((-1, *range(len(tasks))), owner),
    )


def outcome(wanted: State, before: Connector, *looks: tuple[float, Connector]) -> str:
    """What a series of looks, each with its time, comes to."""
    waiting = WaitState(wanted, before)
    for elapsed, now in looks:
        seen = evaluate(waiting, now, elapsed)
        if seen.failed or seen.done:
            return f"{'failed' if seen.failed else 'done'} at {elapsed:g}"
        waiting = seen.waiting
    return "waiting"


BROKEN, HEALTHY = conn("RUNNING", "FAILED"), conn("RUNNING", "RUNNING")
RESTARTING = conn("RESTARTING", "RESTARTING")


@pytest.mark.parametrize(
    ("why", "before", "looks", "expected"),
    [
        ("the old failure is not the new one", BROKEN, [(0.1, BROKEN), (1, BROKEN)], "waiting"),
        (
            "it fails again in the same way, seen restarting",
            BROKEN,
            [(0.1, RESTARTING), (1, BROKEN)],
            "failed at 1",
        ),
        (
            "it fails again in another way",
            BROKEN,
            [(0.1, conn("RUNNING", "FAILED", trace="bang"))],
            "failed at 0.1",
        ),
        ("nothing ever changes", BROKEN, [(1, BROKEN), (GRACE, BROKEN)], f"failed at {GRACE:g}"),
        ("the connector itself fails", HEALTHY, [(1, conn("FAILED", "RUNNING"))], "failed at 1"),
        (
            "it gets well",
            BROKEN,
            [(0.1, BROKEN), (1, HEALTHY), (1 + STEADY, HEALTHY)],
            f"done at {1 + STEADY:g}",
        ),
        ("running must last", BROKEN, [(1, HEALTHY), (1.5, HEALTHY)], "waiting"),
        (
            "a sink fails at its first put, after 3 s",
            BROKEN,
            [(1, HEALTHY), (3.5, HEALTHY), (4, BROKEN)],
            "failed at 4",
        ),
        ("it runs for a moment only", BROKEN, [(1, HEALTHY), (2, BROKEN)], "failed at 2"),
        (
            "a gap starts the clock again",
            BROKEN,
            [(1, HEALTHY), (2, RESTARTING), (3, HEALTHY), (4, HEALTHY)],
            "waiting",
        ),
        (
            "a healthy one may not have restarted yet",
            HEALTHY,
            [(0, HEALTHY), (GRACE - 1, HEALTHY)],
            "waiting",
        ),
        (
            "its restart went by unseen",
            HEALTHY,
            [(GRACE, HEALTHY), (GRACE + STEADY, HEALTHY)],
            f"done at {GRACE + STEADY:g}",
        ),
        (
            "a stopped one runs before it has tasks",
            conn("STOPPED"),
            [(1, conn("RUNNING")), (4, conn("RUNNING"))],
            "waiting",
        ),
        (
            "one that never has tasks",
            conn("STOPPED"),
            [(5, conn("RUNNING")), (10, conn("RUNNING"))],
            "done at 10",
        ),
    ],
)
def test_running_is_what_is_new_and_lasts(
    why: str, before: Connector, looks: list[tuple[float, Connector]], expected: str
) -> None:
    assert outcome(State.RUNNING, before, *looks) == expected, why


@pytest.mark.parametrize(
    ("wanted", "now", "done"),
    [
        (State.STOPPED, conn("STOPPED"), True),
        (State.STOPPED, conn("STOPPED", stale_tasks=("RUNNING",)), False),
        (State.STOPPED, conn("STOPPED", stale_tasks=("UNASSIGNED",)), True),
        (State.STOPPED, conn("RUNNING", "RUNNING"), False),
        (State.STOPPED, conn("FAILED"), False),
        (State.STOPPED, conn(None), False),
        (State.PAUSED, conn("PAUSED", "PAUSED"), True),
        (State.PAUSED, conn("PAUSED", "RUNNING"), False),
        (State.PAUSED, conn("PAUSED", "FAILED"), True),
        (State.PAUSED, conn("FAILED", "PAUSED"), True),
        (State.PAUSED, conn("STOPPED"), False),
        (State.PAUSED, conn("PAUSED", stale_tasks=("RUNNING",)), False),
        (State.PAUSED, conn("PAUSED", "PAUSED", target="PAUSED", owner="one:8083"), True),
        (State.PAUSED, conn("PAUSED", "PAUSED", target="PAUSED", owner="two:8083"), False),
    ],
)
def test_stopped_and_paused_mean_that_no_task_runs_any_more(
    wanted: State, now: Connector, done: bool
) -> None:
    seen = evaluate(WaitState(wanted, HEALTHY), now, 0.1)
    assert seen.done is done
    assert not seen.failed


SHOWN = ("RUNNING", "FAILED", "RESTARTING", "UNASSIGNED", "PAUSED")
states = st.sampled_from(SHOWN)
connectors = st.builds(lambda own, tasks: conn(own, *tasks), states, st.lists(states, max_size=3))


@given(before=connectors, seen=st.lists(connectors, max_size=6))
def test_a_wait_for_running_never_ends_well_on_anything_that_does_not_run(
    before: Connector, seen: list[Connector]
) -> None:
    waiting = WaitState(State.RUNNING, before)
    for n, now in enumerate(seen):
        result = evaluate(waiting, now, float(n))
        assert not (result.done and result.failed)
        assert not result.done or result.verdict.state is State.RUNNING
        waiting = result.waiting


OWN = st.sampled_from([*SHOWN, "STOPPED", None])
ANY_VIEW = st.builds(
    lambda own, tasks, stale, target, owner: conn(
        own, *tasks, stale_tasks=tuple(stale), target=target, owner=owner
    ),
    OWN,
    st.lists(states, max_size=3),
    st.lists(states, max_size=1),
    st.sampled_from([None, "STARTED", "PAUSED", "STOPPED"]),
    st.sampled_from([None, "one:8083", "two:8083"]),
)


@given(ANY_VIEW)
def test_what_is_paused_already_is_what_a_wait_for_a_pause_ends_with(now: Connector) -> None:
    already = already_satisfied("pause", now) is not None
    done = evaluate(WaitState(State.PAUSED, HEALTHY), now, 0.1).done
    assert done or not already
    # A worker that accepted the request proves the target state that is not seen.
    assert already or not done or now.target_state is None
    assert not done or State.RUNNING not in {
        status.state for status in now.parts.values() if status
    }
