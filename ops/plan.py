"""A change as data: what will be done, in which order, and what need not be; and the loop that does it.

A planner is a pure function from what was seen to a ``Plan``. Printing the plan is the dry run. ``perform`` is the only
thing that runs steps; it never asks the person anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from connectctl.ops.errors import ConnectctlError, TimedOut

Edges_contra = TypeVar("Edges_contra", contravariant=True)


class Step(Protocol[Edges_contra]):
    """One action on one subject; a frozen dataclass."""

    @property
    def subject(self) -> str:
        """What it is done to: a failed step ends all later steps of its subject, and of no other."""
        ...

    @property
    def now(self) -> str:
        """The state of the subject when the plan was made, empty where it does not matter to the step."""
        ...

    def says(self) -> str:
        """The step in one line, for people, as an order: ``stop orders``."""
        ...

    def holds(self, edges: Edges_contra) -> str | None:
        """What is already so and makes the step needless (``already STOPPED``), else None. Asked before doing."""
        ...

    def do(self, edges: Edges_contra) -> str | None:
        """Do it, and say in a few words what came of it. Raises ``ConnectctlError``."""
        ...


@dataclass(frozen=True)
class Needless:
    """A subject for which the planner found nothing to do, and why."""

    subject: str
    why: str


@dataclass(frozen=True)
class Plan:
    """All that will be done, in order. ``operation`` is a noun and a verb: ``connectors stop``."""

    operation: str
    cluster_id: str
    steps: tuple[Any, ...]
    needless: tuple[Needless, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The plan as scripts get it."""
        return {
            "operation": self.operation,
            "clusterId": self.cluster_id,
            "steps": [
                {"step": type(s).__name__, "subject": s.subject, "says": s.says(), "now": s.now or None}
                for s in self.steps
            ],
            "needless": [{"subject": n.subject, "why": n.why} for n in self.needless],
        }


class Outcome(StrEnum):
    """What came of a step."""

    DONE = "done"
    ALREADY = "already"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Result:
    """A step and what came of it. ``error`` is what it raised."""

    subject: str
    says: str
    outcome: Outcome
    detail: str | None = None
    error: ConnectctlError | None = None

    def as_json(self) -> dict[str, Any]:
        """The result as scripts get it."""
        data = {"subject": self.subject, "says": self.says, "outcome": self.outcome.value, "detail": self.detail}
        if self.error is None:
            return data
        error = {"code": self.error.code, "message": self.error.what, "why": self.error.why}
        return data | {"error": error | {"nextStep": self.error.next_step}}


def perform(steps: Sequence[Any], edges: Any, told: Callable[[Any], None] = lambda step: None) -> Iterator[Result]:
    """Do the steps one after the other; ``told`` hears of each before it begins.

    A step that fails does not keep those of other subjects from being done.
    """
    broken: set[str] = set()
    for step in steps:
        if step.subject in broken:
            yield Result(step.subject, step.says(), Outcome.LEFT_OUT, "an earlier step failed")
            continue
        told(step)
        result = _one(step, edges)
        if result.error is not None:
            broken.add(step.subject)
        yield result


def _one(step: Any, edges: Any) -> Result:
    try:
        if already := step.holds(edges):
            return Result(step.subject, step.says(), Outcome.ALREADY, already)
        return Result(step.subject, step.says(), Outcome.DONE, step.do(edges))
    except TimedOut as e:
        return Result(step.subject, step.says(), Outcome.TIMED_OUT, str(e), e)
    except ConnectctlError as e:
        return Result(step.subject, step.says(), Outcome.FAILED, str(e), e)
