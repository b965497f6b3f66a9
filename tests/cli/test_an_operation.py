"""An operation of its own, from its plan to its undo: the example of docs/architecture.md."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.cli import flow
from connectctl.cli.main import app
from connectctl.cli.options import ApplyOptions
from connectctl.migrations import operations
from connectctl.ops import registry
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.operation import Operation, Planned, Undone
from fakes.changingworld import Killed
from fakes.session import FakeSession
from typer.testing import CliRunner, Result

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients

NOTES: dict[str, str] = {}
"""What the operation changes: texts by name."""


# The example begins.
@dataclass(frozen=True)
class SetNote(ResourceStep[RunContext]):
    text: str

    def describe(self) -> str:
        return f"write {self.text} to {self.subject}"

    def is_done(self, context: RunContext) -> str | None:
        return "it is there" if NOTES[self.subject] == self.text else None

    def apply(self, context: RunContext) -> str | None:
        NOTES[self.subject] = self.text
        return None


@dataclass(frozen=True)
class Notes:
    group_id: str = ""

    def cluster_id(self) -> str:
        return "notes"


class WriteNote(Operation[tuple[str, str], Notes]):
    name = "note write"
    steps = (SetNote,)

    def access(self, clients: Clients, request: tuple[str, str]) -> Notes:
        return Notes()

    def plan(self, access: Notes, request: tuple[str, str]) -> Planned:
        subject, text = request
        now = NOTES[subject]
        if now == text:
            return Planned(Plan(self.name, "notes", (), (Noop(subject, f"it has {now} already"),)))
        return Planned(Plan(self.name, "notes", (SetNote(subject, text, now=now),)))

    def request_of(self, plan: Plan) -> tuple[str, str] | None:
        step = next(iter(plan.steps), None)
        return (step.subject, step.text) if isinstance(step, SetNote) else None

    def context(self, access: Notes, planned: Planned) -> RunContext:
        return RunContext()

    def undo(self, access: Notes, undone: Undone) -> Planned:
        steps = tuple(
            SetNote(step.subject, step.now, now=NOTES[step.subject])
            for _, step in undone.changed_steps()
        )
        return Planned(Plan(self.name, "notes", steps, undoes=undone.run.id))


# The example ends.


@pytest.fixture(autouse=True)
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setitem(operations.OPERATIONS, WriteNote.name, WriteNote())
    monkeypatch.setitem(registry.KINDS, SetNote.__name__, SetNote)
    monkeypatch.setitem(NOTES, "todo", "old")
    return tmp_path / "journal"


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args), obj=FakeSession())


def write(**more: Any) -> None:
    """What the command of the operation would call."""
    flow.perform(FakeSession(), WriteNote(), ("todo", "new"), ApplyOptions(**{"yes": True} | more))


def last_run() -> str:
    return str(json.loads(run("runs", "list", "-o", "json").stdout)["runs"][0]["id"])


def test_the_page_about_the_architecture_has_this_example() -> None:
    example = (
        Path(__file__)
        .read_text()
        .partition("# The example begins.\n")[2]
        .partition("\n\n# The example ends.")[0]
    )
    assert example in (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


def test_it_is_planned_without_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    write(dry_run=True)
    assert ("1. write new to todo (now old)" in capsys.readouterr().out, NOTES["todo"]) == (
        True,
        "old",
    )


def test_it_is_performed_listed_and_undone() -> None:
    write()
    assert (NOTES["todo"], "note write" in run("runs", "list").stdout) == ("new", True)
    undone = run("runs", "undo", last_run(), "--yes")
    assert (undone.exit_code, NOTES["todo"]) == (0, "old"), undone.output


def test_a_run_that_was_killed_is_resumed(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*given: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "mark", killed)
        with pytest.raises(Killed):
            write()
    assert NOTES["todo"] == "old"
    assert run("runs", "resume", last_run(), "--yes").exit_code == 0
    assert (NOTES["todo"], Journal(journal).get(last_run()).state) == ("new", RunState.DONE)


def test_a_saved_plan_is_executed_unless_it_is_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from connectctl.cli.output.terminal import Output

    write(dry_run=True, output=Output.JSON)
    plan = tmp_path / "plan.json"
    plan.write_text(capsys.readouterr().out)
    NOTES["todo"] = "other"
    assert run("runs", "apply", str(plan), "--yes").exit_code == 4
    NOTES["todo"] = "old"
    applied = run("runs", "apply", str(plan), "--yes")
    assert (applied.exit_code, NOTES["todo"]) == (0, "new"), applied.output
