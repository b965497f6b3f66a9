"""Aborts one open transaction through its coordinator, by fencing. For a hanging one see
``write_marker``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connectctl.ops.clients.protocols import TransactionCalls, TransactionLogReads
from connectctl.ops.connect.transactional_ids import LEADER, may_be_task_id
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import NO_ANSWER
from connectctl.ops.kafka.visibility import refused
from connectctl.ops.operations.fencing.batch_fencer import BatchFencer
from connectctl.ops.operations.fencing.observe import FencingSources, observe
from connectctl.ops.operations.fencing.planning import select
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceOutcome,
    FenceRequest,
    FenceSelection,
    FenceTarget,
)
from connectctl.ops.operations.fencing.verify import verify
from connectctl.ops.operations.transactions.listing import hidden_topics


@dataclass
class EndContext(RunContext):
    """The context of the steps; ``timeout`` in seconds. ``log`` has the ids of producers that are
    not listed.
    """

    calls: TransactionCalls
    timeout: float
    log: TransactionLogReads | None = None


@dataclass(frozen=True)
class AbortOpen(ResourceStep[EndContext]):
    """Abort the open transaction of a transactional id by fencing its producer. ``force``: a
    running task may use the id.
    """

    row: FenceTarget
    force: bool = False

    def describe(self) -> str:
        return f"abort the transaction of {self.subject} by fencing its producer"

    def is_done(self, context: EndContext) -> str | None:
        found = context.calls.describe([self.subject])[self.subject]
        return (
            None
            if isinstance(found, Code) or found.is_open
            else f"no open transaction (state {found.state})"
        )

    def apply(self, context: EndContext) -> str | None:
        if context.resumed:
            self._refuse_if_changed(context)
        fencer = BatchFencer(
            context.calls, [self.row], context.timeout, now=context.now, sleep=context.sleep
        )
        fencer.run()
        (result,) = verify(context.calls, list(fencer.results.values()), fencer.held).results
        if result.outcome is not FenceOutcome.FENCED:
            raise (result.problem or NO_ANSWER).error(
                f"The transaction of {self.subject} is not aborted"
            )
        how = "aborted" if result.aborted else "it had ended by itself; its producer is fenced"
        return f"{how} (epoch {result.epoch_before} → {result.epoch_after})"

    def _refuse_if_changed(self, context: EndContext) -> None:
        """Raise ``Refused`` if the id has another producer than in the plan."""
        found = context.calls.describe([self.subject])[self.subject]
        planned = self.row.transaction
        if isinstance(found, Code) or planned is None or found.who == planned.who:
            return
        raise Refused(
            f"The transaction of {self.subject} was not aborted: the id has another producer "
            "since the run began",
            why=f"producer {found.producer_id}, epoch {found.epoch}; it was "
            f"{planned.producer_id}, {planned.epoch}",
            next_step=f"Check again: connectctl transactions show {self.subject}.",
            code="changed",
        )


def fence_of(sources: FencingSources, id: str) -> FenceSelection:
    """Return the effect of fencing the transactional id ``id``. Raises the errors of ``observe``.

    The complete id of a leader has the same effect as ``--leader``. The request then has no group:
    otherwise it would include the leader of this group as well.
    """
    request = FenceRequest(ids=(id,), leader=id.startswith(LEADER))
    return select(
        observe(replace(sources, group_id=None) if request.leader else sources, request), request
    )


def plan_abort_open(selection: FenceSelection, *, force: bool, group_id: str = "") -> Plan:
    """Return the plan that aborts the transaction of one id. Raises ``Refused`` if a running task
    uses the id.
    """
    (row,) = selection.rows
    found = row.transaction
    if found is None:
        problem = row.problem or NO_ANSWER
        if row.action is FenceAction.LEAVE:
            problem = replace(problem, message="no coordinator knows this id")
        hint = "See connectctl transactions list."
        raise problem.error(f"{row.id} has no transaction that can be aborted", hint, "not-found")
    if not found.is_open:
        raise Refused(
            f"{row.id} has no open transaction", why=f"its state is {found.state}", code="not-open"
        )
    if row.running and not force:
        owner = row.running[0]
        raise Refused(
            f"The transaction of {row.id} was not aborted, because a running task would fail",
            why=f"{owner} runs and writes with it",
            next_step=f"Stop it first (connectctl connectors stop {owner.connector} --wait), or "
            "give --force.",
            code="running-tasks",
        )
    may_run = not row.owners and not row.id.startswith(LEADER) and may_be_task_id(row.id)
    if may_run and selection.gaps and not force:
        what = f"The transaction of {row.id} was not aborted, because a running task may use it"
        raise refused(selection.gaps, what, force="a task that runs with it fails")
    hidden = [f"partitions that are not shown ({gap.why})" for gap in hidden_topics(found)]
    now = f"{found.state} on {', '.join(map(str, found.partitions or hidden)) or 'no partition'}"
    steps = (AbortOpen(row.id, row, now=now, force=force),)
    return Plan(
        "transactions abort", selection.cluster_id, steps, group_id=group_id, independent=True
    )
