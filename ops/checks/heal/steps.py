"""The steps of ``doctor --heal`` that no other operation has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.health import failed_parts, part_name, parts_in
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.acls import Right
from connectctl.ops.operations.connectors.context import POLL
from connectctl.ops.operations.connectors.cure import CureContext
from connectctl.ops.operations.transactions.abort import EndContext
from connectctl.ops.operations.transactions.hanging import Hanging
from connectctl.ops.operations.transactions.outcome import TransactionResult
from connectctl.ops.operations.transactions.write_marker import (
    AbortHanging,
    CommitHanging,
    MarkHanging,
)

STEADY = 3.0
"""Seconds for which a restarted part must stay RUNNING: many failures repeat with the first
record.
"""


@dataclass
class HealContext(CureContext):
    """The context of the steps. ``ending`` is that of the steps that end transactions."""

    ending: EndContext = field(kw_only=True)


@dataclass(frozen=True)
class RestartPart(Step[HealContext]):
    """Restart a connector itself (``CONNECTOR_INSTANCE``), or one of its tasks, and wait until it
    is RUNNING. ``cause`` is why its failure is transient.
    """

    subject: str
    task: int
    cause: str
    now: str = ""

    @property
    def part(self) -> str:
        """Return the name of the part."""
        return part_name(self.subject, self.task)

    def describe(self) -> str:
        return f"restart {self.part}, whose failure is transient ({self.cause})"

    def is_done(self, context: HealContext) -> str | None:
        failed = self.task in failed_parts(context.read(self.subject))
        return None if failed else "it is not FAILED any more"

    def apply(self, context: HealContext) -> str | None:
        path = "" if self.task == CONNECTOR_INSTANCE else f"/tasks/{self.task}"
        context.change(self.subject, "POST", f"{path}/restart")
        steady: list[float] = []

        def end() -> str | None:
            connector = context.read(self.subject)
            if self.task in parts_in(connector, State.RUNNING):
                steady.append(context.now())
                return "it is RUNNING" if steady[-1] - steady[0] >= STEADY else None
            return "it failed again" if steady and self.task in failed_parts(connector) else None

        found = context.until(end, context.timeout, POLL)
        if found != "it is RUNNING":
            raise ConnectctlError(
                f"The restart of {self.part} did not help",
                why=found or f"it is not RUNNING after {context.timeout:g} s",
                next_step=f"See connectctl connectors show {self.subject} -o wide.",
                code="not-cured",
            )
        return found


@dataclass(frozen=True)
class EndDecided(Step[HealContext]):
    """End a hanging transaction as its coordinator decided."""

    inner: MarkHanging

    @classmethod
    def of(cls, hanging: Hanging) -> Self:
        """Return the step for a transaction whose outcome is decided."""
        commit = hanging.decision.outcome is TransactionResult.COMMIT
        kind = CommitHanging if commit else AbortHanging
        return cls(kind(str(hanging.topic_partition), hanging, now=hanging.why))

    @property
    def subject(self) -> str:
        return self.inner.subject

    @property
    def now(self) -> str:
        return self.inner.now

    def describe(self) -> str:
        return f"{self.inner.describe()}, as decided"

    def rights(self, context: HealContext) -> Iterable[Right]:
        return self.inner.rights(context.ending.within(context))

    def is_done(self, context: HealContext) -> str | None:
        return self.inner.is_done(context.ending.within(context))

    def apply(self, context: HealContext) -> str | None:
        return self.inner.apply(context.ending.within(context))
