"""Which cures are due, and which are not done: pure.

A connector has ``BUDGET`` cures an hour. A cure that did not help is not repeated within the hour.
After ``MOST_IN_VAIN`` of these there are no further cures: restarts of single connectors do not
end a cause that they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.checks.heal.steps import EndDecided, RestartPart
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.health import part_name
from connectctl.ops.connect.transient_failure import transient_cause
from connectctl.ops.core.finding import counted
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import Step
from connectctl.ops.core.times import utc
from connectctl.ops.operations.transactions.hanging import Hanging

NAME = "doctor --heal"
HOUR = 3600.0
BUDGET = 3
"""Cures of a connector within an hour."""
MOST_IN_VAIN = 3
"""Cures within an hour that did not help, after which there are no more."""
SETTLED = 300.0
"""Seconds that a part must have run after a cure for the cure to have helped."""


@dataclass(frozen=True)
class PastCure:
    """A cure in the journal: of a part of a connector, or of a partition. ``at`` is in seconds since
    the epoch.
    """

    run: str
    connector: str
    part: str
    at: float
    failed: bool = False


@dataclass(frozen=True)
class FailedPart:
    """A FAILED connector or task. ``since`` is in seconds since the epoch, None if unknown."""

    connector: str
    task: int
    trace: str | None
    cause: str | None
    since: float | None = None

    @property
    def name(self) -> str:
        """Return the connector, or connector and task: ``orders/0``."""
        return part_name(self.connector, self.task)


@dataclass(frozen=True)
class HealSnapshot:
    """What is planned from. ``fencing`` are the steps that cure a round of fencing, by connector;
    ``hanging`` are transactions.
    """

    cluster_id: str
    group_id: str
    failed: Sequence[FailedPart] = ()
    fencing: Mapping[str, Sequence[Step[Any]]] = field(default_factory=dict)
    hanging: Sequence[Hanging] = ()
    past: Sequence[PastCure] = ()


@dataclass(frozen=True)
class _Cure:
    connector: str
    part: str
    steps: tuple[Step[Any], ...]
    since: float | None = None
    """Since when the part has failed, in seconds since the epoch."""


def plan_heal(snapshot: HealSnapshot) -> Plan:
    """Return the cures that are due. What is left alone is in ``noops``, with the reason."""
    noops = list(_left_alone(snapshot))
    cures = list(_cures(snapshot))
    in_vain = {(past.run, past.part) for past in snapshot.past if past.failed}
    in_vain |= {(past.run, past.part) for cure in cures if (past := _in_vain(snapshot, cure))}
    spent = Counter(past.connector for past in snapshot.past)
    steps: list[Step[Any]] = []
    for cure in cures:
        why = _why_not(snapshot, cure, spent[cure.connector])
        if why is None and len(in_vain) >= MOST_IN_VAIN:
            why = f"{counted(len(in_vain), 'cure')} of the last hour did not help: find the cause"
        if why is None:
            spent[cure.connector] += 1
            steps += cure.steps
        else:
            noops.append(Noop(cure.part, why))
    return Plan(
        NAME, snapshot.cluster_id, tuple(steps), tuple(noops), snapshot.group_id, independent=True
    )


def _why_not(snapshot: HealSnapshot, cure: _Cure, spent: int) -> str | None:
    if past := _in_vain(snapshot, cure):
        return (
            f"cured at {utc(past.at * 1000)} UTC by the run {past.run}, which did not help; it is "
            "not repeated within an hour"
        )
    if spent >= BUDGET:
        return f"its budget is spent: {counted(BUDGET, 'cure')} an hour"
    return None


def _in_vain(snapshot: HealSnapshot, cure: _Cure) -> PastCure | None:
    """Return the newest cure of the part that did not help: the part failed again at once."""
    for past in sorted(snapshot.past, key=lambda past: -past.at):
        if past.part == cure.part:
            helped = cure.since is not None and cure.since - past.at >= SETTLED
            return None if helped else past
    return None


def _cures(snapshot: HealSnapshot) -> Iterator[_Cure]:
    for name, steps in sorted(snapshot.fencing.items()):
        yield _Cure(name, name, tuple(steps))
    for part, cause in _failed(snapshot):
        if cause is not None:
            step = RestartPart(part.connector, part.task, cause, State.FAILED.value)
            yield _Cure(part.connector, part.name, (step,), part.since)
    for each in snapshot.hanging:
        if each.proven and each.decision.outcome is not None:
            end = EndDecided.of(each)
            yield _Cure(end.subject, end.subject, (end,))


def _left_alone(snapshot: HealSnapshot) -> Iterator[Noop]:
    for part, cause in _failed(snapshot):
        if cause is None:
            reason = part.cause or "it reported no cause"
            yield Noop(part.name, f"its failure is not transient: {reason}")
    for each in snapshot.hanging:
        if not each.proven:
            yield Noop(str(each.topic_partition), "its transaction is not proven to hang")
        elif each.decision.outcome is None:
            why = f"nothing proves how its transaction was decided: {each.decision.why}"
            yield Noop(str(each.topic_partition), why)


def _failed(snapshot: HealSnapshot) -> Iterator[tuple[FailedPart, str | None]]:
    """Yield the failed parts of which no cure of fencing takes care, and why each is transient."""
    for part in snapshot.failed:
        if part.connector not in snapshot.fencing:
            yield part, transient_cause(part.trace)
