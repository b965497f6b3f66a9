"""A change as data: what will be done, in which order, and what need not be.

A planner is a pure function from what was observed to a ``Plan``. Printing the plan is the dry run; the executor carries
it out, and the journal keeps it as it was agreed to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.step import Step, step_from_data, step_to_data


@dataclass(frozen=True)
class Noop:
    """A resource for which the planner found nothing to do, and why."""

    subject: str
    why: str


@dataclass(frozen=True)
class Plan:
    """All that will be done, in order. ``operation`` is a noun and a verb: ``connectors stop``.

    ``group_id`` is the Connect cluster's, empty where none is concerned or known. ``independent``: a step that fails ends
    the later ones of its resource only; else it ends the run. ``undoes`` is the run that it takes back.
    """

    operation: str
    cluster_id: str
    steps: tuple[Step[Any], ...]
    noops: tuple[Noop, ...] = ()
    group_id: str = ""
    independent: bool = False
    undoes: str | None = None

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.subject for step in self.steps))

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that it was made for: those that it changes, and those that need no change."""
        return tuple(dict.fromkeys((*self.subjects, *(noop.subject for noop in self.noops))))

    @property
    def digest(self) -> str:
        """The digest of all that was agreed to: of what the JSON has, without the digest itself."""
        return str(self.as_json()["digest"])

    def _content(self) -> dict[str, Any]:
        undoes = {"undoes": self.undoes} if self.undoes else {}
        return undoes | {
            "operation": self.operation,
            "clusterId": self.cluster_id,
            "groupId": self.group_id,
            "independent": self.independent,
            "steps": [step_to_data(step) for step in self.steps],
            "needless": [{"subject": noop.subject, "why": noop.why} for noop in self.noops],
        }

    def as_json(self) -> dict[str, Any]:
        """The plan as scripts get it and as the journal keeps it; ``from_json`` is the inverse."""
        content = self._content()
        return content | {"digest": _digest(content)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], kinds: Mapping[str, type[Any]]) -> Plan:
        """The plan that was written as ``data``, with steps of ``kinds`` by name. Raises ``BadInput``."""
        try:
            plan = cls(
                data["operation"],
                data["clusterId"],
                tuple(step_from_data(step, kinds) for step in data["steps"]),
                tuple(Noop(noop["subject"], noop["why"]) for noop in data["needless"]),
                data["groupId"],
                data["independent"],
                data.get("undoes"),
            )
        except (KeyError, TypeError, AttributeError) as e:
            raise BadInput(
                "The plan cannot be read", why=f"it has no {e}" if isinstance(e, KeyError) else str(e)
            ) from e
        # Of what was written, and not of what it is read as: a step may have got fields since.
        if "digest" in data and _digest({name: data[name] for name in plan._content()}) != data["digest"]:
            raise BadInput("The plan was changed after it was made", why="its digest does not match")
        return plan


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Outcome(StrEnum):
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
        data = {"subject": self.subject, "says": self.says, "outcome": self.outcome.value, "detail": self.detail}
        if self.error is None:
            return data
        error = {"code": self.error.code, "message": self.error.what, "why": self.error.why}
        return data | {"error": error | {"nextStep": self.error.next_step}}
