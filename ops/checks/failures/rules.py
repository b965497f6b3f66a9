"""FAIL001 to FAIL005: connectors and tasks that fail: rules over ``failures.observe``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.failures.observe import FailureFacts, PartPast
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Severity, some_of
from connectctl.ops.core.rule import Case, rule

NAMED = 5
"""The number of names that a message lists before it counts the rest."""


@rule("FAIL001", Severity.ERROR)
def failed(facts: FailureFacts, goal: Goal) -> Iterator[Case]:
    """Yield FAIL001 for the FAILED parts of each connector that have one cause."""
    for group in _by_cause(facts):
        names = [part.name for part in group]
        message = f"{some_of(names, NAMED)} FAILED: {_cause(group[0])}"
        connector = group[0].connector
        subject = names[0] if len(group) == 1 else connector
        hint = f"connectctl connectors restart {connector}"
        sinces = [part.since for part in group if part.since is not None]
        yield Case(subject, message, hint, since=min(sinces, default=None))


def _by_cause(facts: FailureFacts) -> Iterator[list[PartPast]]:
    groups: dict[tuple[str, str], list[PartPast]] = {}
    for part in facts.parts:
        if part.now is not None and part.now.state == State.FAILED:
            groups.setdefault((part.connector, _cause(part)), []).append(part)
    yield from groups.values()


def _cause(part: PartPast) -> str:
    return (part.now.cause if part.now else None) or "it reported no cause"
