"""The steps of a run in the journal: which hold the lock, and which are executed whatever happens
to the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import ConnectctlError, Refused, Unreachable
from connectctl.ops.core.executor import execute, left_to_end
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.plan import Outcome, Plan, Result
from connectctl.ops.registry import KINDS
from connectctl.ops.task_runtime.job.run_request import RunRequest
from connectctl.ops.task_runtime.job.steps import (
    CreateInternalTopic,
    HandBack,
    RunTasks,
    StartTasks,
    StopOnWorkers,
)
from fakes.changingworld import Clock
from fakes.locks import FakeLock

TAKE_OVER = Plan(
    "run",
    "k1",
    (
        CreateInternalTopic("a", "create the topic a"),
        CreateInternalTopic("b", "create the topic b"),
        StopOnWorkers("c", "stop c on its workers", now="STARTED"),
        RunTasks("c", "run c on Spark", request=RunRequest("job.yaml"), made_from={}),
        HandBack("c", "pause c on its workers", verb="pause"),
    ),
    group_id="connect",
)
OTHER = LockHolder("r", "anna@ops-1", "2026-01-01T10:31:00Z")


@dataclass(kw_only=True)
class Job(RunContext):
    """A run of a job: which of its parts were done, and whether with the lock."""

    lock: FakeLock
    run_them: Callable[[], None] = lambda: None
    hand_it_back: Callable[[], None] = lambda: None
    continues: bool = False
    done: list[tuple[str, bool]] = field(default_factory=list)

    def _did(self, what: str) -> None:
        self.done.append((what, self.lock.holds is not None))

    def rights(self) -> tuple[()]:
        return ()

    def create_topic(self, topic: str) -> None:
        self._did(f"create {topic}")

    def stop_on_workers(self) -> None:
        self._did("stop")

    def start_tasks(self) -> None:
        self._did("start")

    def run_tasks(self) -> str:
        self._did("run")
        self.run_them()
        return "ended"

    def taken_back(self, name: str) -> None:
        return None

    def hand_back(self, name: str, verb: str) -> None:
        self._did(verb)
        self.hand_it_back()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def job() -> Job:
    clock = Clock()
    return Job(lock=FakeLock(), now=clock.now, sleep=clock.sleep)


def performed(journal: Journal, job: Job, plan: Plan = TAKE_OVER) -> list[Result]:
    run = journal.begin_plan(plan, ["c"])
    return execute(plan.steps, job, journal, run, lock=job.lock)


def left(journal: Journal) -> list[int]:
    (run,) = journal.runs()
    return left_to_end(TAKE_OVER.steps, run)


def test_only_the_steps_on_the_workers_hold_the_lock(journal: Journal, job: Job) -> None:
    results = performed(journal, job)
    assert [result.outcome for result in results] == [Outcome.DONE] * 5
    assert job.done == [
        ("create a", False),
        ("create b", False),
        ("stop", True),
        ("run", False),
        ("pause", True),
    ]
    (run,) = journal.runs()
    assert (run.operation, run.subjects, run.state) == ("run", ("c",), RunState.DONE)
    assert job.lock.taken == [run.id, run.id]
    assert Plan.from_json(journal.plan(run.id), KINDS) == TAKE_OVER


@pytest.mark.parametrize("error", [ConnectctlError("bang", code="own"), KeyboardInterrupt("bang")])
def test_a_run_that_fails_or_is_interrupted_has_handed_back_and_raises_its_own_error(
    journal: Journal, job: Job, error: BaseException
) -> None:
    def bang() -> None:
        raise error

    job.run_them = bang
    with pytest.raises(type(error), match=r"^bang$") as caught:
        performed(journal, job)
    assert caught.value is error
    assert job.done[-1] == ("pause", True)
    assert left(journal) == []
    interrupted = isinstance(error, KeyboardInterrupt)
    assert journal.runs()[0].state is (RunState.OPEN if interrupted else RunState.FAILED)


def test_a_stop_that_fails_is_handed_back_too(
    journal: Journal, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise Unreachable("the worker is away")

    monkeypatch.setattr(job, "stop_on_workers", fail)
    with pytest.raises(Unreachable, match="the worker"):
        performed(journal, job)
    assert job.done[-1] == ("pause", True)
    assert len(job.lock.taken) == 1


def test_a_take_over_beside_another_change_is_refused_and_changes_nothing(
    journal: Journal, job: Job
) -> None:
    job.lock.other = OTHER
    with pytest.raises(Refused, match="Another connectctl"):
        performed(journal, job)
    assert (job.lock.taken, job.done) == ([], [("create a", False), ("create b", False)])
    assert left(journal) == []


def test_a_hand_back_waits_for_another_change_and_for_kafka(journal: Journal, job: Job) -> None:
    looks = 0
    real = job.lock.held

    def held(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise Unreachable("away")
        if looks == 5:
            job.lock.other = None
        return real(*args)

    job.lock.held = held  # type: ignore[method-assign, assignment]

    def busy() -> None:
        job.lock.other = OTHER

    job.run_them = busy
    performed(journal, job)
    assert (looks, journal.runs()[0].state) == (5, RunState.DONE)


def test_a_hand_back_that_another_change_keeps_out_is_left_and_the_command_is_not_executed_again(
    journal: Journal, job: Job
) -> None:
    def busy() -> None:
        job.lock.other = OTHER

    job.run_them = busy
    with pytest.raises(Refused, match="Another connectctl") as caught:
        performed(journal, job)
    assert caught.value.code == "not-ended"  # and not that of a lock, which --lock-wait waits for
    assert (left(journal), journal.runs()[0].state) == ([4], RunState.FAILED)


def test_a_hand_back_that_fails_is_left_and_is_not_done_twice(journal: Journal, job: Job) -> None:
    def fail() -> None:
        raise Unreachable("the worker is away")

    job.hand_it_back = fail
    with pytest.raises(Unreachable, match="the worker"):
        performed(journal, job)
    assert [what for what, _ in job.done].count("pause") == 1
    assert (left(journal), journal.runs()[0].state) == ([4], RunState.FAILED)


def test_a_hand_back_that_fails_after_the_tasks_is_reported_besides_them(
    journal: Journal, job: Job
) -> None:
    def bang() -> None:
        raise ConnectctlError("bang")

    def fail() -> None:
        raise Unreachable("the worker is away")

    job.run_them, job.hand_it_back = bang, fail
    told: list[str] = []
    run = journal.begin_plan(TAKE_OVER, ["c"])
    with pytest.raises(ConnectctlError, match="bang"):
        execute(
            TAKE_OVER.steps,
            job,
            journal,
            run,
            lock=job.lock,
            on_result=lambda result: told.append(str(result.error)),
        )
    assert told[-1] == "the worker is away"
    assert left(journal) == [4]


def test_runs_in_a_group_of_their_own_do_not_keep_each_other_out(
    journal: Journal, job: Job
) -> None:
    steps = (StartTasks("c", "fence older tasks"), TAKE_OVER.steps[3])
    plan = Plan("run", "k1", steps, group_id="jobs")
    other = Job(lock=job.lock, run_them=lambda: None)

    def beside() -> None:
        performed(journal, other, plan)

    job.run_them = beside
    performed(journal, job, plan)
    assert job.lock.taken == []
    assert [run.state for run in journal.runs()] == [RunState.DONE, RunState.DONE]


def test_a_run_that_another_one_overtook_keeps_its_hand_back_for_a_resume(
    journal: Journal, job: Job
) -> None:
    def taken() -> None:
        job.lost = True
        raise ConnectctlError("taken")

    job.run_them = taken
    with pytest.raises(ConnectctlError, match="taken"):
        performed(journal, job)
    assert ("pause", True) not in job.done
    assert (left(journal), journal.runs()[0].state) == ([4], RunState.FAILED)
