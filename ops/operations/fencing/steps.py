"""The steps of a fence: the ids, then, if wished, the tasks that it failed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.interrupts import put_in_order
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import Step, from_data, to_data
from connectctl.ops.operations.connectors.steps import POLL, RestartAndAwait, StepContext
from connectctl.ops.operations.fencing.batch_fencer import Campaign, without_request
from connectctl.ops.operations.fencing.snapshot import Action, Fate, FencePlan, IdResult, Row
from connectctl.ops.operations.fencing.verify import prove

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.core.journal import Journal

MOST_NAMED = 3
REQUESTED = (Action.FENCE, Action.CREATE)
NOTICE = 10.0
"""Seconds in which a fenced task that writes at all notices."""


@dataclass
class FenceContext(StepContext):
    """What the steps work with: the workers, the coordinators, and the results, which outlive an interruption.

    ``fencing`` is for how many seconds ids are asked for. ``on_id`` hears of each id when it is final, maybe from another
    thread; ``on_interrupt`` when the fencing was interrupted and ``results`` say how far it got.
    """

    transactions: TransactionCalls = field(kw_only=True)
    journal: Journal | None = field(kw_only=True)
    fencing: float = field(kw_only=True)
    on_id: Callable[[IdResult], None] = lambda result: None
    on_interrupt: Callable[[], None] = lambda: None
    results: tuple[IdResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    unaware: dict[str, list[int]] = field(default_factory=dict)
    """Tasks by connector that had not noticed their fence when the wait for it was over."""
    error: ConnectctlError | None = None
    """What kept the ids from being fenced, where something did."""

    @property
    def record(self) -> Path:
        """Where the results of the ids that are fenced are written down, so that none is fenced twice."""
        assert self.journal is not None
        assert self.run is not None
        return self.journal.path(self.run.id, f"fenced-{self.step}.jsonl")


@dataclass(frozen=True)
class FenceIds(Step):
    """Fence all ids of ``rows`` at once, and prove it.

    ``connectors`` are those whose Kafka cluster has the ids, the workers' own for none. ``force``: tasks may run with them.
    """

    subject: str
    sentence: str
    rows: tuple[Row, ...]
    connectors: tuple[str, ...] = ()
    force: bool = False
    now: str = ""

    def left(self, context: FenceContext) -> list[Row]:
        """The ids that no earlier attempt has fenced."""
        return self._beyond(fenced_before(context.record))

    def _beyond(self, done: Mapping[str, IdResult]) -> list[Row]:
        return [row for row in self.rows if row.id not in done]

    def describe(self) -> str:
        return self.sentence

    def apply(self, context: FenceContext) -> str | None:
        done = fenced_before(context.record)
        with _recorded(context.record) as record:

            def on_id(result: IdResult) -> None:
                record(result)
                context.on_id(result)

            campaign = Campaign(
                context.transactions,
                self._beyond(done),
                context.fencing,
                on_id,
                context.now,
                context.sleep,
                results=done,
            )
            try:
                campaign.run()
                proof = prove(context.transactions, [campaign.results[row.id] for row in self.rows], campaign.held)
            except KeyboardInterrupt:
                # Which ids are fenced is known here alone: a second ^C ends it, not the watch.
                with put_in_order("the results are printed"):
                    campaign.interrupted()
                    context.results = tuple(campaign.results[row.id] for row in self.rows)
                    context.on_interrupt()
                raise
            except ConnectctlError as e:
                context.error = e
                raise
        context.results, context.findings = proof.results, proof.findings
        return summary_of(Counter(result.fate.value for result in proof.results))


def fenced_before(record: Path) -> dict[str, IdResult]:
    """The ids that an earlier attempt of the run has fenced; a line that was cut off by its end counts for nothing."""
    found: dict[str, IdResult] = {}
    for line in record.read_text().splitlines() if record.exists() else ():
        with suppress(ValueError):
            result: IdResult = from_data(IdResult, json.loads(line), {})
            found[result.id] = result
    return found


@contextmanager
def _recorded(record: Path) -> Iterator[Callable[[IdResult], None]]:
    """Gives what writes down a result, where the id is fenced. A line is there whatever becomes of this process."""
    handle = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(result: IdResult) -> None:
        if result.fate is Fate.FENCED:
            os.write(handle, json.dumps(to_data(result)).encode() + b"\n")

    try:
        yield write
    finally:
        os.close(handle)


@dataclass(frozen=True)
class AwaitFailed(Step):
    """Wait until the tasks whose producers were fenced have noticed: a task fails when it next writes."""

    subject: str
    tasks: tuple[int, ...]
    now: str = ""

    def describe(self) -> str:
        numbers = ", ".join(map(str, self.tasks))
        return f"wait until task{'s' if len(self.tasks) > 1 else ''} {numbers} of {self.subject} noticed it and failed"

    def apply(self, context: FenceContext) -> str | None:
        if context.error is not None:
            raise _not_fenced(self.subject, context.error)
        deadline = context.now() + min(context.timeout, NOTICE)
        while waiting := self._not_failed(context):
            if context.now() >= deadline:
                context.unaware[self.subject] = waiting
                return f"task {waiting[0]} has nothing to write, and did not notice"
            context.sleep(POLL)
        return None

    def _not_failed(self, context: FenceContext) -> list[int]:
        statuses = context.read(self.subject).tasks
        return [n for n in self.tasks if (status := statuses.get(n)) is not None and status.state != "FAILED"]


@dataclass(frozen=True)
class RestartFenced(RestartAndAwait):
    """Restart what failed of a connector, and tasks that were fenced without noticing."""

    def is_done(self, context: FenceContext) -> str | None:
        return None if context.unaware.get(self.subject) else super().is_done(context)

    def apply(self, context: FenceContext) -> str | None:
        if context.error is not None:
            raise _not_fenced(self.subject, context.error)
        for number in context.unaware.get(self.subject, ()):
            context.change(self.subject, "POST", f"/tasks/{number}/restart")
        return super().apply(context)


def _not_fenced(connector: str, error: ConnectctlError) -> ConnectctlError:
    return ConnectctlError(f"{connector} is not restarted: its transactional ids are not fenced", why=error.what)


def plan_of(
    plan: FencePlan,
    *,
    restart: tuple[str, ...],
    group_id: str | None,
    connectors: tuple[str, ...] = (),
    force: bool = False,
) -> Plan:
    """The plan as steps. ``restart`` names connectors of ``group_id`` whose failed tasks are restarted at the end.

    ``connectors`` are those that were asked for; ``force``: their tasks may run.
    """
    rows = plan.to_fence
    noops = [
        Noop(row.id, f"{row.action.value}: {row.problem.message if row.problem else ''}")
        for row in plan.rows
        if row.action not in REQUESTED
    ]
    steps: list[Step] = [FenceIds(_subject(rows), sentence(plan), rows, connectors, force)] if rows else []
    for connector in restart:
        owners = [owner for row in rows for owner in row.running if owner.group == group_id]
        tasks = tuple(sorted({owner.task for owner in owners if owner.connector == connector}))
        steps += [AwaitFailed(connector, tasks)] if tasks else []
        steps += [RestartFenced(connector)]
    return Plan("fence", plan.cluster_id, tuple(steps), tuple(noops), group_id or "", independent=True)


def _subject(rows: Sequence[Row]) -> str:
    """The connectors of the ids, or the ids that are no connector's."""
    names = list(dict.fromkeys(row.connector or row.id for row in rows))
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def results_of(plan: FencePlan, context: FenceContext) -> list[IdResult]:
    """What became of each id of the plan, in its order; those that were not to be fenced have their results from it."""
    known = {result.id: result for result in context.results}
    found = (without_request(row) or known.get(row.id) for row in plan.rows)
    return [result for result in found if result is not None]


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
