from __future__ import annotations

import json
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from connectctl.ops import registry
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.core.plan import Noop, Outcome, Plan
from connectctl.ops.core.step import Step
from connectctl.ops.operations.upgrade.request import Conditions, UpgradeRequest
from fakes.executing import performed


@dataclass(frozen=True)
class Note(Step["Log"]):
    subject: str
    text: str
    now: str = ""
    error: Any = None
    already: str | None = None

    def describe(self) -> str:
        return f"note {self.text}"

    def is_done(self, edges: Log) -> str | None:
        return self.already

    def apply(self, edges: Log) -> str | None:
        if self.error:
            raise self.error
        edges.lines.append(self.text)
        return "noted"


@dataclass
class Log(RunContext):
    lines: list[str] = field(default_factory=list)


def test_steps_are_done_in_order() -> None:
    log = Log()
    results = performed([Note("a", "1"), Note("b", "2")], log)
    assert [(r.subject, r.outcome) for r in results] == [("a", Outcome.DONE), ("b", Outcome.DONE)]
    assert log.lines == ["1", "2"]


def test_what_already_holds_is_not_done() -> None:
    log = Log()
    (result,) = performed([Note("a", "1", already="already STOPPED")], log)
    assert (result.outcome, result.detail, log.lines) == (Outcome.ALREADY, "already STOPPED", [])


def test_a_failed_step_ends_its_own_subject_and_no_other() -> None:
    log = Log()
    steps = [
        Note("a", "1", error=ConnectctlError("no")),
        Note("b", "2"),
        Note("a", "3"),
        Note("b", "4"),
    ]
    outcomes = [r.outcome for r in performed(steps, log)]
    assert outcomes == [Outcome.FAILED, Outcome.DONE, Outcome.LEFT_OUT, Outcome.DONE]
    assert log.lines == ["2", "4"]


def test_a_time_out_is_told_from_a_failure() -> None:
    (result,) = performed([Note("a", "1", error=TimedOut("late"))], Log())
    assert result.outcome is Outcome.TIMED_OUT
    assert result.as_json()["error"]["code"] == "timed-out"


@dataclass(frozen=True)
class Colour:
    red: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Paint(Step["Log"]):
    """A step of all that fields may be made of."""

    subject: str
    outcome: Outcome
    colours: tuple[Colour, ...]
    best: Colour | None
    values: dict[str, str | None]
    first: Note
    pair: tuple[str, int]
    now: str = ""

    def describe(self) -> str:
        return "paint it"


def paint(**other: Any) -> Paint:
    red = Colour(1, ("red", "rot"))
    values: dict[str, Any] = {
        "best": red,
        "values": {"a": None, "b": "c"},
        "first": Note("x", "1"),
        "pair": ("p", 7),
    }
    return Paint("a", Outcome.DONE, (red, Colour(2, ())), **(values | other))


PLAN = Plan(
    "notes write",
    "x",
    (Note("a", "1", now="RUNNING"), paint(), paint(best=None)),
    (Noop("b", "there"),),
    "g",
)
KINDS = {"Note": Note, "Paint": Paint}


@pytest.mark.parametrize("independent", [True, False])
def test_a_plan_and_its_json_are_inverse_both_ways(independent: bool) -> None:
    plan = replace(PLAN, independent=independent)
    data = json.loads(json.dumps(plan.as_json()))
    assert Plan.from_json(data, KINDS) == plan
    assert Plan.from_json(data, KINDS).as_json() == data == plan.as_json()


def test_a_plan_is_told_to_scripts_with_what_need_not_be_done() -> None:
    data = replace(PLAN, steps=PLAN.steps[:1]).as_json()
    assert {key: data[key] for key in ("operation", "clusterId", "groupId", "unchanged")} == {
        "operation": "notes write",
        "clusterId": "x",
        "groupId": "g",
        "unchanged": [{"subject": "b", "why": "there"}],
    }
    (step,) = data["steps"]
    assert (step["step"], step["subject"], step["description"], step["now"]) == (
        "Note",
        "a",
        "note 1",
        "RUNNING",
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clusterId": "y"}, "changed after it was made"),
        ({"digest": "0"}, "changed after it was made"),
        ({"steps": [{"step": "Erase", "subject": "a"}]}, "does not know: Erase"),
        ({"steps": [{"step": "Note", "subject": "a"}]}, "does not know: Note"),
        ({"steps": [PLAN.as_json()["steps"][0] | {"more": 1}]}, "does not know: Note"),
        (
            {"steps": [PLAN.as_json()["steps"][1] | {"outcome": "never"}]},
            "Paint that cannot be read",
        ),
        ({"steps": None}, "cannot be read"),
    ],
)
def test_a_plan_that_was_changed_or_is_of_another_version_is_bad_input(
    change: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        Plan.from_json(PLAN.as_json() | change, KINDS)


def test_a_plan_is_read_that_was_made_before_a_step_got_a_field() -> None:
    data = Plan("notes write", "x", (Note("a", "1"),)).as_json()

    @dataclass(frozen=True)
    class Longer(Note):
        more: int = 3

    (step,) = Plan.from_json(data, {"Note": Longer}).steps
    assert step == Longer("a", "1", more=3)


def test_every_kind_of_step_has_a_name_of_its_own_and_fields_that_can_be_read_back() -> None:
    kinds = {*registry.KINDS.values()}
    assert len({kind.__name__ for kind in kinds}) == len(kinds)
    read = dataclasses_of([*kinds, UpgradeRequest, Conditions])
    assert {*kinds} < read


def is_step(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Step)


def dataclasses_of(kinds: list[Any]) -> set[Any]:
    """The dataclasses that plans are read as, those in their fields too; an import for types alone
    is a NameError here.
    """
    found, left = set[Any](), kinds
    while left:
        kind = left.pop()
        # the context of a step is no part of it
        left += [] if is_step(get_origin(kind)) else get_args(kind)
        if isinstance(kind, type) and is_dataclass(kind) and kind not in found:
            found.add(kind)
            left += get_type_hints(kind).values()
    return found
