"""Ends one open transaction through its coordinator, by fencing. One that hangs has none: ``write_marker``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.connect.transactional_ids import LEADER, may_be_task_id
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step
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

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls, TransactionLogReads


@dataclass
class EndContext(RunContext):
    """What the steps work with; ``timeout`` in seconds. ``log`` shows which id has a producer that is not listed."""

    calls: TransactionCalls
    timeout: float
    log: TransactionLogReads | None = None


@dataclass(frozen=True)
class AbortOpen(Step[EndContext]):
    """Abort the open transaction of a transactional id by fencing its producer. ``force``: a task may run with it."""

    subject: str
    row: FenceTarget
    now: str
    force: bool = False

    def describe(self) -> str:
        return f"abort the transaction of {self.subject} by fencing its producer"

    def is_done(self, context: EndContext) -> str | None:
        found = context.calls.describe([self.subject])[self.subject]
        return None if isinstance(found, Code) or found.is_open else f"no open transaction (state {found.state})"

    def apply(self, context: EndContext) -> str | None:
        if context.resumed:
            self._refuse_if_changed(context)
        fencer = BatchFencer(context.calls, [self.row], context.timeout, now=context.now, sleep=context.sleep)
        fencer.run()
        (result,) = verify(context.calls, list(fencer.results.values()), fencer.held).results
        if result.outcome is not FenceOutcome.FENCED:
            raise (result.problem or NO_ANSWER).error(f"The transaction of {self.subject} is not aborted")
        how = "aborted" if result.aborted else "it had ended by itself; its producer is fenced"
        return f"{how} (epoch {result.epoch_before} → {result.epoch_after})"

    def _refuse_if_changed(self, context: EndContext) -> None:
        """Raises ``Refused`` where the id has another producer than the one whose transaction was to be aborted."""
        found = context.calls.describe([self.subject])[self.subject]
        planned = self.row.transaction
        if isinstance(found, Code) or planned is None or found.who == planned.who:
            return
        raise Refused(
            f"The transaction of {self.subject} was not aborted: the id has another producer since the run began",
            why=f"producer {found.producer_id}, epoch {found.epoch}; it was {planned.producer_id}, {planned.epoch}",
            next_step=f"Check again: connectctl transactions show {self.subject}.",
            code="changed",
        )


def fence_of(sources: FencingSources, id: str) -> FenceSelection:
    """What fencing the transactional id ``id`` would do. Raises what observing raises.

    A leader's is asked for by its whole id, which is as plain as ``--leader``; with the group known, the plan would have
    the leader of the group in it, too.
    """
    request = FenceRequest(ids=(id,), leader=id.startswith(LEADER))
    return select(observe(replace(sources, group_id=None) if request.leader else sources, request), request)


def plan_abort_open(selection: FenceSelection, *, force: bool, group_id: str = "") -> Plan:
    """The plan that aborts the transaction of one id. Raises ``Refused`` where a running task has it."""
    (row,) = selection.rows
    found = row.transaction
    if found is None:
        problem = row.problem or NO_ANSWER
        if row.action is FenceAction.LEAVE:
            problem = replace(problem, message="no coordinator knows this id")
        hint = "See connectctl transactions list."
        raise problem.error(f"{row.id} has no transaction that can be aborted", hint, "not-found")
    if not found.is_open:
        raise Refused(f"{row.id} has no open transaction", why=f"its state is {found.state}", code="not-open")
    if row.running and not force:
        owner = row.running[0]
        raise Refused(
            f"The transaction of {row.id} was not aborted, because a running task would fail",
            why=f"{owner} runs and writes with it",
            next_step=f"Stop it first (connectctl connectors stop {owner.connector} --wait), or give --force.",
            code="running-tasks",
        )
    may_run = not row.owners and not row.id.startswith(LEADER) and may_be_task_id(row.id)
    if may_run and selection.gaps and not force:
        what = f"The transaction of {row.id} was not aborted, because a running task may use it"
        raise refused(selection.gaps, what, force="a task that runs with it fails")
    hidden = [f"partitions that are not shown ({gap.why})" for gap in hidden_topics(found)]
    now = f"{found.state} on {', '.join(map(str, found.partitions or hidden)) or 'no partition'}"
    steps = (AbortOpen(row.id, row, now, force),)
    return Plan("transactions abort", selection.cluster_id, steps, group_id=group_id, independent=True)
