"""Ends one open transaction through its coordinator, by fencing. One that hangs has none: ``marking``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError, Refused
from connectctl.ops.fence.campaign import Campaign
from connectctl.ops.fence.proof import prove
from connectctl.ops.fence.snapshot import Fate
from connectctl.ops.model.ownership import LEADER, may_be_a_tasks
from connectctl.ops.model.verdicts import Code
from connectctl.ops.model.visibility import refused
from connectctl.ops.plan import Plan
from connectctl.ops.transactions.listing import hidden_topics

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import TransactionCalls, TransactionLogReads
    from connectctl.ops.fence.snapshot import FencePlan, Row


@dataclass
class AbortHands:
    """What the steps work with; ``timeout`` in seconds. ``log`` shows which id has a producer that nobody lists."""

    calls: TransactionCalls
    timeout: float
    log: TransactionLogReads | None = None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class AbortOpen:
    """Abort the open transaction of a transactional id by fencing its producer."""

    subject: str
    row: Row
    now: str

    def says(self) -> str:
        return f"abort the transaction of {self.subject} by fencing its producer"

    def holds(self, hands: AbortHands) -> str | None:
        found = hands.calls.describe([self.subject])[self.subject]
        return None if isinstance(found, Code) or found.is_open else f"nothing is open, it is {found.state}"

    def do(self, hands: AbortHands) -> str | None:
        campaign = Campaign(hands.calls, [self.row], hands.timeout, now=hands.now, sleep=hands.sleep)
        campaign.run()
        (result,) = prove(hands.calls, list(campaign.results.values()), campaign.held).results
        if result.fate is not Fate.FENCED:
            problem = result.problem
            why = problem.message if problem else None
            code = problem.code if problem else "failed"
            raise ConnectctlError(f"The transaction of {self.subject} is not aborted", why=why, code=code)
        how = "aborted" if result.aborted else "it had ended by itself; its producer is fenced"
        return f"{how} (epoch {result.epoch_before} → {result.epoch_after})"


def plan_abort_open(plan: FencePlan, *, force: bool) -> Plan:
    """The plan that aborts the transaction of one id. Raises ``Refused`` where a running task has it."""
    (row,) = plan.rows
    found = row.transaction
    if found is None:
        why = row.problem.message if row.problem else None
        raise ConnectctlError(f"{row.id} has no transaction that can be aborted", why=why, code="not-found")
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
    may_run = not row.owners and not row.id.startswith(LEADER) and may_be_a_tasks(row.id)
    if may_run and plan.gaps and not force:
        what = f"The transaction of {row.id} was not aborted, because a running task may use it"
        raise refused(plan.gaps, what, force="a task that runs with it fails")
    hidden = [f"partitions that are not shown ({gap.why})" for gap in hidden_topics(found)]
    now = f"{found.state} on {', '.join(map(str, found.partitions or hidden)) or 'no partition'}"
    return Plan("transactions abort", plan.cluster_id, (AbortOpen(row.id, row, now),))
