"""``doctor --heal`` as an operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from connectctl.ops.checks.heal.planning import (
    HOUR,
    NAME,
    FailedPart,
    HealSnapshot,
    PastCure,
    plan_heal,
)
from connectctl.ops.checks.heal.steps import EndDecided, HealContext, RestartPart
from connectctl.ops.checks.runner import CheckRun, doctor_run
from connectctl.ops.connect import zombie_fencing
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import State, cause_of
from connectctl.ops.connect.health import failed_parts, part_name
from connectctl.ops.core.journal import Journal, StepEvent
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step
from connectctl.ops.core.unseen import Unseen, answer_of
from connectctl.ops.operations.connectors.access import ClusterAccess
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.cure import AwaitRound, RestartWhatFailed, SetOverrides
from connectctl.ops.operations.connectors.cure_operation import Cure
from connectctl.ops.operations.connectors.operation import ConnectorOperation
from connectctl.ops.operations.operation import Planned
from connectctl.ops.operations.transactions.abort import EndContext
from connectctl.ops.operations.transactions.hanging import Hanging
from connectctl.ops.operations.transactions.operations import searched
from connectctl.ops.operations.transactions.write_marker import AbortHanging, CommitHanging


@dataclass(frozen=True)
class HealRequest:
    """The connectors that may be cured; none are all."""

    connectors: tuple[str, ...] = ()


class Heal(ConnectorOperation[HealRequest]):
    """Cure what failed of a transient cause. Never stops a connector."""

    name = NAME
    steps = (
        *(RestartPart, EndDecided, AbortHanging, CommitHanging),
        *(SetOverrides, AwaitRound, RestartWhatFailed),
    )
    irreversible = "it restarted tasks, ended transactions, or set properties of fencing"

    def plan(self, access: ClusterAccess, request: HealRequest) -> Planned:
        """Return the plan of the cures that are due. Raises what ``doctor`` raises."""
        clients = access.clients
        # Workers have to answer, and to agree with the config topic: cures go through them.
        connectors = access.connectors(request.connectors or None)
        refuse_doubtful(each.connector for each in connectors)
        run = doctor_run(clients, request.connectors)
        where = access.cluster_id(), access.group_id
        unseen: list[Unseen] = []
        snapshot = HealSnapshot(
            *where,
            tuple(_failed(run)),
            _fencing(access, run),
            _hanging(access, run, unseen),
            tuple(past_cures(clients.journal(), *where, run.now)),
        )
        given = {"connectors": list(request.connectors)} if request.connectors else {}
        notes = tuple(f"{each.what} could not be read: {each.why}" for each in unseen)
        return Planned(replace(plan_heal(snapshot), request=given), notes)

    def request_of(self, plan: Plan) -> HealRequest:
        """Return the connectors of the plan."""
        return HealRequest(tuple(plan.request.get("connectors", ())))

    def context(self, access: ClusterAccess, planned: Planned) -> HealContext:
        """Return the context of the steps."""
        clients = access.clients
        cure = Cure().context(access, planned)
        ending = EndContext(clients.transactions, clients.timeout, clients.transaction_log)
        return HealContext(
            cure.calls,
            cure.timeout,
            facts=cure.facts,
            journal=clients.journal(),
            pending=cure.pending,
            order=cure.order,
            ending=ending,
        )


def _failed(run: CheckRun) -> Iterator[FailedPart]:
    for connector in run.context.checked:
        parts = failed_parts(connector)
        for task, status in parts.items():
            past = run.context.history.statuses.get((connector.name, task), ())
            since = next((each.at for each in past[::-1] if each.state == State.FAILED), None)
            yield FailedPart(connector.name, task, status.trace, cause_of(status), since)


def _fencing(access: ClusterAccess, run: CheckRun) -> dict[str, Sequence[Step[Any]]]:
    """Return the steps that cure the rounds of fencing that block tasks, by connector."""
    return {
        finding.subject: Cure().plan_round(access, finding.subject).steps
        for finding in run.findings_in("rounds of fencing")
        if finding.id == zombie_fencing.BLOCKED_BY_FENCING.id
    }


def _hanging(access: ClusterAccess, run: CheckRun, unseen: list[Unseen]) -> Sequence[Hanging]:
    """Return the transactions that hang on the workers' topics."""
    topics = sorted(each.facts.name for each in run.context.view.topics if each.facts)
    if not topics:
        return ()
    found = answer_of(lambda: searched(access.clients, topics)[0], unseen, "transactions that hang")
    return (*found.found, *found.unproven) if found else ()


def past_cures(journal: Journal, cluster_id: str, group_id: str, now: float) -> Iterator[PastCure]:
    """Yield the cures of the last hour on this Connect cluster, from the journal."""
    for run in journal.runs_of(NAME, cluster_id, group_id):
        recent = [mark for mark in run.marks if now - _seconds(mark) < HOUR]
        steps = journal.plan(run.id)["steps"] if recent else []
        parts: dict[tuple[str, str], list[StepEvent]] = {}
        for mark in recent:
            step = steps[mark.step]
            name = part_name(step["subject"], step.get("task", CONNECTOR_INSTANCE))
            parts.setdefault((step["subject"], name), []).append(mark)
        for (connector, part), marks in parts.items():
            if begun := [_seconds(mark) for mark in marks if mark.what == "begun"]:
                failed = any(mark.what == "failed" for mark in marks)
                yield PastCure(run.id, connector, part, min(begun), failed)


def _seconds(mark: StepEvent) -> float:
    return datetime.fromisoformat(mark.at).timestamp()
