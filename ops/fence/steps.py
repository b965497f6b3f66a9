"""The steps of a fence: the ids, then, if wished, the tasks that it failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.connectorsteps import POLL, Await, Hands, Restart
from connectctl.ops.fence.campaign import Campaign
from connectctl.ops.fence.proof import Proof, prove
from connectctl.ops.fence.snapshot import Action, FencePlan
from connectctl.ops.model.connector import State
from connectctl.ops.plan import Needless, Plan

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import TransactionCalls

NOTICE = 10.0
"""Seconds in which a fenced task that writes at all notices."""


@dataclass
class FenceHands(Hands):
    """What the steps work with: the workers, the coordinators, and the campaign, whose results outlive an interruption."""

    transactions: TransactionCalls = field(kw_only=True)
    campaign: Campaign = field(kw_only=True)
    proof: Proof | None = None
    unaware: dict[str, list[int]] = field(default_factory=dict)
    """Tasks by connector that had not noticed their fence when the wait for it was over."""


@dataclass(frozen=True)
class FenceIds:
    """Fence all ids of the plan at once, and prove it."""

    subject: str
    sentence: str
    now: str

    def says(self) -> str:
        return self.sentence

    def holds(self, hands: FenceHands) -> str | None:
        return None

    def do(self, hands: FenceHands) -> str | None:
        campaign = hands.campaign
        campaign.run()
        results = [campaign.results[row.id] for row in campaign.rows]
        hands.proof = prove(hands.transactions, results, campaign.held)
        return summary_of(Counter(result.fate.value for result in hands.proof.results))


@dataclass(frozen=True)
class AwaitFailed:
    """Wait until the tasks whose producers were fenced have noticed: a task fails when it next writes."""

    subject: str
    tasks: tuple[int, ...]
    now: str = ""

    def says(self) -> str:
        numbers = ", ".join(map(str, self.tasks))
        return f"wait until task{'s' if len(self.tasks) > 1 else ''} {numbers} of {self.subject} noticed it and failed"

    def holds(self, hands: FenceHands) -> str | None:
        return None

    def do(self, hands: FenceHands) -> str | None:
        deadline = hands.now() + min(hands.timeout, NOTICE)
        while waiting := self._not_failed(hands):
            if hands.now() >= deadline:
                hands.unaware[self.subject] = waiting
                return f"task {waiting[0]} has nothing to write, and did not notice"
            hands.sleep(POLL)
        return None

    def _not_failed(self, hands: FenceHands) -> list[int]:
        statuses = hands.read(self.subject).tasks
        return [n for n in self.tasks if (status := statuses.get(n)) is not None and status.state != "FAILED"]


@dataclass(frozen=True)
class RestartFailed:
    """Restart what failed of a connector, and tasks that were fenced without noticing; wait until it runs."""

    subject: str
    now: str = ""

    def says(self) -> str:
        return f"restart what failed of {self.subject}, and wait until it is RUNNING"

    def holds(self, hands: FenceHands) -> str | None:
        return None if hands.unaware.get(self.subject) else Restart(self.subject, True, "").holds(hands)

    def do(self, hands: FenceHands) -> str | None:
        if Restart(self.subject, True, "").holds(hands) is None:
            Restart(self.subject, True, "").do(hands)
        for number in hands.unaware.get(self.subject, ()):
            hands.change(self.subject, "POST", f"/tasks/{number}/restart")
        return Await(self.subject, State.RUNNING).do(hands)


def plan_of(plan: FencePlan, *, restart: tuple[str, ...], group_id: str | None) -> Plan:
    """The plan as steps. ``restart`` names connectors of ``group_id`` whose failed tasks are restarted at the end."""
    rows = plan.to_fence
    needless = [
        Needless(row.id, f"{row.action.value}: {row.problem.message if row.problem else ''}")
        for row in plan.rows
        if row.action not in (Action.FENCE, Action.CREATE)
    ]
    steps: list[object] = [FenceIds("transactional ids", sentence(plan), "")] if rows else []
    for connector in restart:
        owners = [owner for row in rows for owner in row.running if owner.group == group_id]
        tasks = tuple(sorted({owner.task for owner in owners if owner.connector == connector}))
        steps += [AwaitFailed(connector, tasks)] if tasks else []
        steps += [RestartFailed(connector)]
    return Plan("fence", plan.cluster_id, tuple(steps), tuple(needless))


def sentence(plan: FencePlan) -> str:
    """What will be fenced, in one sentence."""
    rows = plan.to_fence
    created = sum(row.action is Action.CREATE for row in rows)
    running = sum(bool(row.running) for row in rows)
    aborted = sum(row.transaction is not None and row.transaction.is_open for row in rows)
    parts = [
        f"abort {aborted} open transaction{'' if aborted == 1 else 's'}" if aborted else "",
        f"create {created} that no coordinator knows" if created else "",
        f"fail {running} running task{'' if running == 1 else 's'}" if running else "",
    ]
    more = "; this will " + ", ".join(filter(None, parts)) if any(parts) else ""
    return f"fence {len(rows):,} transactional id{'' if len(rows) == 1 else 's'}{more}"


def summary_of(counts: Counter[str]) -> str:
    """How many ids came to what end."""
    return ", ".join(f"{counts[fate]:,} {fate}" for fate in ("fenced", "unknown", "failed", "skipped") if counts[fate])


def hands_for(
    plan: FencePlan, hands: Hands, calls: TransactionCalls, told: Callable[[object], None], timeout: float
) -> FenceHands:
    """Hands that do the plan, with ``timeout`` in seconds for the fencing."""
    campaign = Campaign(calls, plan.rows, timeout, told, time.monotonic, time.sleep)
    return FenceHands(hands.calls, hands.timeout, transactions=calls, campaign=campaign)
