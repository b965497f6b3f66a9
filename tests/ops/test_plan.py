from __future__ import annotations

from dataclasses import dataclass, field

from connectctl.ops.errors import ConnectctlError, TimedOut
from connectctl.ops.plan import Needless, Outcome, Plan, perform


@dataclass(frozen=True)
class Note:
    subject: str
    text: str
    now: str = ""
    error: ConnectctlError | None = None
    already: str | None = None

    def says(self) -> str:
        return f"note {self.text}"

    def holds(self, edges: Log) -> str | None:
        return self.already

    def do(self, edges: Log) -> str | None:
        if self.error:
            raise self.error
        edges.lines.append(self.text)
        return "noted"


@dataclass
class Log:
    lines: list[str] = field(default_factory=list)


def test_steps_are_done_in_order_and_results_come_one_by_one() -> None:
    log = Log()
    results = perform([Note("a", "1"), Note("b", "2")], log)
    assert next(results).outcome is Outcome.DONE
    assert log.lines == ["1"]
    assert [r.subject for r in results] == ["b"]
    assert log.lines == ["1", "2"]


def test_what_already_holds_is_not_done() -> None:
    log = Log()
    (result,) = perform([Note("a", "1", already="already STOPPED")], log)
    assert (result.outcome, result.detail, log.lines) == (Outcome.ALREADY, "already STOPPED", [])


def test_a_failed_step_ends_its_own_subject_and_no_other() -> None:
    log = Log()
    steps = [Note("a", "1", error=ConnectctlError("no")), Note("b", "2"), Note("a", "3"), Note("b", "4")]
    outcomes = [r.outcome for r in perform(steps, log)]
    assert outcomes == [Outcome.FAILED, Outcome.DONE, Outcome.LEFT_OUT, Outcome.DONE]
    assert log.lines == ["2", "4"]


def test_a_time_out_is_told_from_a_failure() -> None:
    (result,) = perform([Note("a", "1", error=TimedOut("late"))], Log())
    assert result.outcome is Outcome.TIMED_OUT
    assert result.as_json()["error"]["code"] == "timed-out"


def test_a_plan_is_told_to_scripts_with_what_need_not_be_done() -> None:
    plan = Plan("notes write", "x", (Note("a", "1", now="RUNNING"),), (Needless("b", "already there"),))
    assert plan.as_json() == {
        "operation": "notes write",
        "clusterId": "x",
        "steps": [{"step": "Note", "subject": "a", "says": "note 1", "now": "RUNNING"}],
        "needless": [{"subject": "b", "why": "already there"}],
    }
