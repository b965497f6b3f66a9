"""The parts of a run in the journal: which are there, which held the lock, and what a kill
leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.errors import ConnectctlError, Refused, Unreachable
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.registry import KINDS
from connectctl.ops.task_runtime.job import steps
from connectctl.ops.task_runtime.job.run_request import RunRequest
from connectctl.ops.task_runtime.job.steps import (
    CreateInternalTopic,
    HandBack,
    JobStep,
    RunTasks,
    StartTasks,
    StopOnWorkers,
    hand_back_left,
    recorded,
)
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from fakes.locks import FakeLock

TAKE_OVER = Plan(
    "run",
    "k1",
    (
        CreateInternalTopic("a", "create the topic a"),
        CreateInternalTopic("b", "create the topic b"),
        StopOnWorkers("c", "stop c on its workers", "STARTED"),
        RunTasks("c", "run c on Spark", request=RunRequest("job.yaml"), made_from={}),
        HandBack("c", "pause c on its workers", verb="pause"),
    ),
    group_id="connect",
)
PATIENCE = RetryPolicy(5.0, sleep=lambda seconds: None)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def take_over(
    journal: Journal, lock: FakeLock, run_tasks: Callable[[], Any] = lambda: "ended"
) -> Any:
    """The parts of a take-over in their order, as the runner does them."""
    held: list[tuple[str, bool]] = []

    def part(kind: type[JobStep], work: Callable[[], Any] = lambda: None) -> Any:
        def noted() -> Any:
            held.append((kind.__name__, lock.holds is not None))
            return work()

        return parts(kind, noted)

    with recorded(journal, TAKE_OVER, "c", lock, PATIENCE) as parts:
        part(CreateInternalTopic)
        part(StopOnWorkers)
        try:
            part(StartTasks)
            outcome = part(RunTasks, run_tasks)
        finally:
            part(HandBack)
    return outcome, held


def test_every_part_is_a_step_of_the_run_and_only_those_on_the_workers_hold_the_lock(
    journal: Journal,
) -> None:
    outcome, held = take_over(journal, FakeLock())
    assert outcome == "ended"
    assert held == [
        ("CreateInternalTopic", False),
        ("StopOnWorkers", True),
        ("StartTasks", False),
        ("RunTasks", False),
        ("HandBack", True),
    ]
    (run,) = journal.runs()
    assert (run.operation, run.subjects, run.state) == ("run", ("c",), RunState.DONE)
    assert all(run.done(number) for number in range(len(TAKE_OVER.steps)))
    assert Plan.from_json(journal.plan(run.id), KINDS) == TAKE_OVER


def test_a_run_that_fails_raises_its_own_error_and_has_handed_back(journal: Journal) -> None:
    def bang() -> None:
        raise ConnectctlError("bang", code="own")

    with pytest.raises(ConnectctlError, match=r"^bang$") as caught:
        take_over(journal, FakeLock(), bang)
    assert caught.value.code == "own"
    (run,) = journal.runs()
    assert (run.state, run.done(4)) == (RunState.FAILED, True)
    assert hand_back_left(TAKE_OVER, run) is None


def test_a_take_over_beside_another_change_is_refused_and_changes_nothing(journal: Journal) -> None:
    lock = FakeLock(other=LockHolder("r", "anna@ops-1", "2026-01-01T10:31:00Z"))
    with pytest.raises(Refused, match="Another connectctl"):
        take_over(journal, lock)
    assert lock.taken == []
    (run,) = journal.runs()
    assert hand_back_left(TAKE_OVER, run) is None


def test_a_hand_back_waits_for_another_change_to_end(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "LOOK", 0.001)
    lock = FakeLock()
    looks = 0
    real = lock.held

    def held(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 5:
            lock.other = None
        return real(*args)

    lock.held = held  # type: ignore[method-assign, assignment]

    def busy() -> str:
        lock.other = LockHolder("r", "anna@ops-1", "2026-01-01T10:31:00Z")
        return "ended"

    assert take_over(journal, lock, busy)[0] == "ended"
    assert looks == 5
    assert journal.runs()[0].state is RunState.DONE


def test_a_hand_back_waits_for_kafka_and_is_not_done_twice_where_it_fails(journal: Journal) -> None:
    lock, failures, done = FakeLock(), [Unreachable("away"), Unreachable("away")], []
    real = lock.held

    def held(*args: Any) -> Any:
        if failures and lock.taken:  # the stop had it
            raise failures.pop()
        return real(*args)

    lock.held = held  # type: ignore[method-assign, assignment]
    with recorded(journal, TAKE_OVER, "c", lock, PATIENCE) as parts:
        parts(StopOnWorkers, lambda: None)

        def hand_back() -> None:
            done.append(1)
            raise Unreachable("the worker is away")

        with pytest.raises(Unreachable, match="the worker"):
            parts(HandBack, hand_back)
    assert (done, failures) == ([1], [])
    (run,) = journal.runs()
    assert (run.state, hand_back_left(TAKE_OVER, run)) == (RunState.FAILED, (4, TAKE_OVER.steps[4]))


def test_runs_in_a_group_of_their_own_do_not_keep_each_other_out(journal: Journal) -> None:
    plan = Plan(
        "run",
        "k1",
        (
            StartTasks("c", "fence older tasks"),
            RunTasks("c", "run c", request=RunRequest("job.yaml"), made_from={}),
        ),
        group_id="jobs",
    )
    with (
        recorded(journal, plan, "c", None, PATIENCE) as one,
        recorded(journal, plan, "c", None, PATIENCE) as other,
    ):
        assert one(StartTasks, lambda: other(StartTasks, lambda: 7)) == 7
        assert [parts(RunTasks, lambda: 8) for parts in (one, other)] == [8, 8]
    assert [run.state for run in journal.runs()] == [RunState.DONE, RunState.DONE]


def test_a_run_that_another_one_overtook_keeps_its_hand_back_for_a_resume(journal: Journal) -> None:
    with recorded(journal, TAKE_OVER, "c", FakeLock(), PATIENCE) as parts:
        parts(StopOnWorkers, lambda: None)
        parts(RunTasks, lambda: "taken")
    (run,) = journal.runs()
    assert (run.state, hand_back_left(TAKE_OVER, run)) == (RunState.FAILED, (4, TAKE_OVER.steps[4]))
