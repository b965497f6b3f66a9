"""A change as data: the steps in their order, and the resources that need no change.

A planner is a pure function from a snapshot to a ``Plan``. Printing the plan is the dry run; the
executor executes it, and the journal stores it as confirmed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from connectctl.ops.config.json_shape import an_object, array, flag, text
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.step import Step, confirmed_data, step_from_data, step_to_data


@dataclass(frozen=True)
class Noop:
    """A resource that needs no change, and why."""

    subject: str
    why: str


@dataclass(frozen=True)
class Plan:
    """The steps of a change, in order. ``operation`` is a noun and a verb: ``connectors stop``.

    ``group_id`` is the Connect cluster's, empty if none is involved or known. ``independent``: a
    failed step skips only the later ones of its resource; otherwise it ends the run. ``undoes`` is
    the run that the plan undoes. ``warnings`` are sentences to be read before it is confirmed.
    ``request`` is the request, if the steps do not contain it. ``conditions`` are further inputs of
    the steps, as observed or given; they are not confirmed.
    """

    operation: str
    cluster_id: str
    steps: tuple[Step[Any], ...]
    noops: tuple[Noop, ...] = ()
    group_id: str = ""
    independent: bool = False
    undoes: str | None = None
    warnings: tuple[str, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def subjects(self) -> tuple[str, ...]:
        """The resources that the plan changes."""
        return tuple(dict.fromkeys(step.subject for step in self.steps))

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of the plan: those that it changes, and those that need no change."""
        return tuple(dict.fromkeys((*self.subjects, *(noop.subject for noop in self.noops))))

    @property
    def digest(self) -> str:
        """The digest of the confirmed content: of the JSON without the digest itself."""
        return str(self.as_json()["digest"])

    def _content(self) -> dict[str, Any]:
        optional = {"undoes": self.undoes, "request": dict(self.request)}
        return {name: value for name, value in optional.items() if value} | {
            "operation": self.operation,
            "clusterId": self.cluster_id,
            "groupId": self.group_id,
            "independent": self.independent,
            "steps": [step_to_data(step) for step in self.steps],
            "unchanged": [{"subject": noop.subject, "why": noop.why} for noop in self.noops],
        }

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the plan, for scripts and the journal; ``from_json`` is the
        inverse.
        """
        content = self._content()
        # Warnings are read, not done: what they rest on may move without changing a step.
        optional = {"warnings": list(self.warnings), "conditions": dict(self.conditions)}
        more = {name: value for name, value in optional.items() if value}
        return content | more | {"digest": self._digest_of(content)}

    def _digest_of(self, content: Mapping[str, Any]) -> str:
        """Return the digest of ``content``, which is this plan's, without what its steps only
        observed.
        """
        steps = [
            confirmed_data(step, data)
            for step, data in zip(self.steps, content["steps"], strict=True)
        ]
        return hashlib.sha256(
            json.dumps({**content, "steps": steps}, sort_keys=True).encode()
        ).hexdigest()

    @classmethod
    def from_json(cls, data: Mapping[str, Any], kinds: Mapping[str, type[Any]]) -> Plan:
        """Return the plan for its JSON ``data``, with steps of ``kinds`` by name. Raises
        ``BadInput``.
        """
        try:
            _SHAPE(data)
            plan = cls(
                data["operation"],
                data["clusterId"],
                tuple(step_from_data(step, kinds) for step in data["steps"]),
                tuple(Noop(noop["subject"], noop["why"]) for noop in data["unchanged"]),
                data["groupId"],
                data["independent"],
                data.get("undoes"),
                tuple(data.get("warnings", ())),
                data.get("request", {}),
                data.get("conditions", {}),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise BadInput("The plan cannot be read", why=str(e)) from e
        # Computed from the stored JSON, not from the parsed plan: a step may have new fields.
        if (
            "digest" in data
            and plan._digest_of({name: data[name] for name in plan._content()}) != data["digest"]
        ):
            raise BadInput(
                "The plan was changed after it was made", why="its digest does not match"
            )
        return plan


_SHAPE = an_object(
    {
        "operation": text,
        "clusterId": text,
        "groupId": text,
        "steps": array(an_object({"step": text})),
        "unchanged": array(an_object({"subject": text, "why": text})),
        "independent": flag,
    },
    {"undoes": text, "request": an_object({}), "conditions": an_object({})},
)


class Outcome(StrEnum):
    """The outcome of a step."""

    DONE = "done"
    ALREADY = "already"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Result:
    """A step and its outcome. ``error`` is the exception that it raised."""

    subject: str
    description: str
    outcome: Outcome
    detail: str | None = None
    error: ConnectctlError | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the result."""
        step = {"subject": self.subject, "description": self.description}
        data = step | {"outcome": self.outcome.value, "detail": self.detail}
        if self.error is None:
            return data
        error = {"code": self.error.code, "message": self.error.what, "why": self.error.why}
        return data | {"error": error | {"nextStep": self.error.next_step}}
