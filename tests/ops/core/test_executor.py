"""Plans are carried out with a journal: what is done, marked, told and left after every kind of
failure.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import (
    ConnectctlError,
    NotAuthorized,
    PartDone,
    Refused,
    TimedOut,
    Unreachable,
)
from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Outcome
from connectctl.ops.core.step import Step
from fakes.locks import FakeLock


@dataclass
class Edges(RunContext):
    """What steps do goes here; ``errors`` are raised by the step of that name."""

    done: list[str] = field(default_factory=list)
    errors: dict[str, ConnectctlError] = field(default_factory=dict)


@dataclass(frozen=True)
class Do(Step[Edges]):
    """A step that changes something."""

    subject: str
    now: str = ""

    def describe(self) -> str:
        return f"do {self.subject}"

    def is_done(self, edges: Edges) -> str | None:
        return "already so" if self.subject in edges.done else None

    def apply(self, edges: Edges) -> str | None:
        if error := edges.errors.get(self.subject):
            raise error
        edges.done.append(self.subject)
        return f"step {edges.step}"


@dataclass(frozen=True)
class Look(Do):
    """A step that changes nothing."""

    read_only: ClassVar[bool] = True


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def execute_(steps: Any, edges: Edges, journal: Journal, run: Run, **more: Any) -> Any:
    """As ``execute``, with a lock that nobody else holds."""
    return execute(steps, edges, journal, run, **({"lock": FakeLock()} | more))


def begun(journal: Journal) -> Run:
    return journal.begin("offsets set", "cluster", "group", ("c",), {})


def marks(journal: Journal, run: Run) -> list[tuple[int, str]]:
    return [(m.step, m.what) for m in journal.get(run.id).marks]


def test_every_step_is_marked_before_and_after(journal: Journal) -> None:
    run, edges = begun(journal), Edges(["b"])
    results = execute_([Do("a"), Do("b")], edges, journal, run)
    assert [r.outcome for r in results] == [Outcome.DONE, Outcome.ALREADY]
    assert marks(journal, run) == [(0, "begun"), (0, "done"), (1, "begun"), (1, "already")]
    assert journal.get(run.id).state is RunState.DONE
    assert journal.get(run.id).marks[1].detail == "step 0"


STEPS: list[Any] = [Look("look"), Do("a"), Do("b")]


@pytest.mark.parametrize(
    ("fails", "error", "raised", "state"),
    [
        ("look", ConnectctlError("no"), ConnectctlError, RunState.FAILED),
        ("look", Refused("no"), Refused, RunState.REFUSED),
        ("look", Unreachable("no"), Unreachable, RunState.FAILED),
        ("look", NotAuthorized("no"), NotAuthorized, RunState.REFUSED),
        ("a", Refused("no"), Refused, RunState.REFUSED),
        ("a", ConnectctlError("no"), PartDone, RunState.FAILED),
        ("b", Refused("no"), PartDone, RunState.FAILED),
        ("b", TimedOut("no"), PartDone, RunState.FAILED),
    ],
)
def test_a_failure_is_part_done_unless_nothing_was_done(
    journal: Journal,
    fails: str,
    error: ConnectctlError,
    raised: type[ConnectctlError],
    state: RunState,
) -> None:
    run, edges = begun(journal), Edges(errors={fails: error})
    with pytest.raises(ConnectctlError) as caught:
        execute_(STEPS, edges, journal, run)
    assert type(caught.value) is raised
    assert journal.get(run.id).state is state
    if raised is PartDone:
        assert f"connectctl runs resume {run.id}" in str(caught.value)


@pytest.mark.parametrize("error", [TimedOut("late"), Unreachable("lost")])
def test_a_first_change_without_an_answer_may_have_been_made(
    journal: Journal, error: ConnectctlError
) -> None:
    with pytest.raises(PartDone):
        execute_([Do("a")], Edges(errors={"a": error}), journal, begun(journal))


@pytest.mark.parametrize("kind", [ConnectctlError, NotAuthorized])
def test_a_first_change_that_was_answered_with_no_was_not_made(
    journal: Journal, kind: type[ConnectctlError]
) -> None:
    with pytest.raises(ConnectctlError) as caught:
        execute_([Do("a")], Edges(errors={"a": kind("no")}), journal, begun(journal))
    assert type(caught.value) is kind


def test_what_an_earlier_attempt_changed_counts(journal: Journal) -> None:
    run, edges = begun(journal), Edges(errors={"b": ConnectctlError("no")})
    with pytest.raises(PartDone):
        execute_(STEPS, edges, journal, run)
    edges.errors = {"b": Refused("no")}
    with pytest.raises(PartDone):
        execute_(STEPS, edges, journal, journal.get(run.id), start=2)
    edges.errors = {}
    execute_(STEPS, edges, journal, journal.get(run.id), start=2)
    assert edges.done == ["look", "a", "b"]
    assert journal.get(run.id).state is RunState.DONE


@pytest.mark.parametrize("killed_after", range(7))
def test_a_run_that_was_killed_anywhere_comes_to_the_same_end(
    journal: Journal, killed_after: int
) -> None:
    class Killed(BaseException):
        pass

    real, left = journal.mark, [killed_after]

    def mark(*args: Any) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        real(*args)

    run, edges = begun(journal), Edges()
    journal.mark = mark  # type: ignore[assignment,method-assign]
    with suppress(Killed):
        execute_(STEPS, edges, journal, run)
    journal.mark = real  # type: ignore[method-assign]
    execute_(STEPS, edges, journal, journal.get(run.id))
    assert edges.done == ["look", "a", "b"]


def test_who_comes_second_is_refused_and_leaves_no_open_run(journal: Journal) -> None:
    run, edges = begun(journal), Edges()
    with journal.locked("cluster", "group"), pytest.raises(Refused, match="Another connectctl"):
        execute_(STEPS, edges, journal, run)
    assert edges.done == []
    assert journal.get(run.id).state is RunState.REFUSED


def test_a_run_that_another_process_carries_out_is_not_ended_by_who_would_resume_it(
    journal: Journal,
) -> None:
    run = begun(journal)
    journal.mark(run.id, 0, "begun")
    with journal.locked("cluster", "group"), pytest.raises(Refused):
        execute_(STEPS, Edges(), journal, journal.get(run.id))
    assert journal.get(run.id).state is RunState.OPEN


@pytest.mark.parametrize("at", range(4))
def test_a_journal_that_fails_half_way_says_how_to_go_on(journal: Journal, at: int) -> None:
    real, count = journal.mark, [0]

    def mark(*args: Any) -> None:
        count[0] += 1
        if count[0] > at:
            raise ConnectctlError("The journal cannot be written", code="journal")
        real(*args)

    run, edges = begun(journal), Edges()
    journal.mark = mark  # type: ignore[assignment,method-assign]
    with pytest.raises(ConnectctlError) as caught:
        execute_(STEPS[1:], edges, journal, run)
    assert isinstance(caught.value, PartDone) or edges.done == []


def test_who_has_the_lock_keeps_others_out_and_the_run_is_over(journal: Journal) -> None:
    run, edges = begun(journal), Edges()
    other = LockHolder("another", "anna@ops-1", "2026-01-01T10:31:00Z")
    with pytest.raises(Refused, match="another of anna@ops-1 since 2026"):
        execute_(STEPS, edges, journal, run, lock=FakeLock(other))
    assert (edges.done, journal.get(run.id).state) == ([], RunState.REFUSED)


def test_a_lock_that_is_lost_stops_the_run_before_the_next_step(journal: Journal) -> None:
    run, edges, lock = begun(journal), Edges(), FakeLock(lost_at=2)
    with pytest.raises(PartDone, match=r"Step 2 .* lock was lost"):
        execute_([Do("a"), Do("b")], edges, journal, run, lock=lock)
    assert (edges.done, lock.holds) == (["a"], None)


def test_a_run_of_this_journal_whose_process_is_gone_is_known_as_ours(journal: Journal) -> None:
    run = begun(journal)
    execute_([Do("a")], Edges(), journal, run, lock=FakeLock(LockHolder(run.id, "anna@ops-1", "")))
    assert journal.get(run.id).state is RunState.DONE
