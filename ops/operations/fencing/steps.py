"""The steps of ``fence``: fence the ids, then, with --restart-failed, restart the tasks that
failed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, counted, some_of
from connectctl.ops.core.interrupts import put_in_order
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep, Step, from_data, to_data
from connectctl.ops.operations.connectors.context import POLL, StepContext
from connectctl.ops.operations.connectors.steps import RestartAndAwait
from connectctl.ops.operations.fencing.batch_fencer import BatchFencer, without_request
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceOutcome,
    FenceSelection,
    FenceTarget,
    IdResult,
)
from connectctl.ops.operations.fencing.verify import verify

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.core.journal import Journal

MAX_NAMED = 3
REQUESTED = (FenceAction.FENCE, FenceAction.CREATE)
DETECTION_TIMEOUT = 10.0
"""Seconds within which a fenced task that writes anything fails."""


@dataclass
class FenceContext(StepContext):
    """The context of the steps: workers, coordinators, and the results, which are kept after an
    interruption.

    ``fencing`` is the timeout of fencing in seconds. ``on_id`` is called with each final result,
    possibly from another thread; ``on_interrupt`` after an interruption, when ``results`` are set.
    """

    transactions: TransactionCalls = field(kw_only=True)
    journal: Journal | None = field(kw_only=True)
    fencing: float = field(kw_only=True)
    on_id: Callable[[IdResult], None] = lambda result: None
    on_interrupt: Callable[[], None] = lambda: None
    check: Callable[[Sequence[FenceTarget]], None] = lambda rows: None
    """Raises ``Refused`` if tasks run with the ids to fence."""
    results: tuple[IdResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    undetected: dict[str, list[int]] = field(default_factory=dict)
    """Fenced tasks that had not failed when the wait timed out, by connector."""
    error: ConnectctlError | None = None
    """The error if the ids could not be fenced."""

    @property
    def record(self) -> Path:
        """Return the file of the fenced ids, which prevents that an id is fenced twice."""
        journal, run = self.journal_and_run()
        return journal.path(run.id, f"fenced-{self.step}.jsonl")


@dataclass(frozen=True)
class FenceIds(ResourceStep[FenceContext]):
    """Fence all ids of ``rows`` at once, and verify the fence.

    ``connectors`` are those whose Kafka cluster has the ids; none: the workers' cluster. ``force``:
    tasks may use them.
    """

    sentence: str
    rows: tuple[FenceTarget, ...]
    connectors: tuple[str, ...] = ()
    force: bool = False

    def _remaining(self, done: Mapping[str, IdResult]) -> list[FenceTarget]:
        return [row for row in self.rows if row.id not in done]

    def describe(self) -> str:
        return self.sentence

    def apply(self, context: FenceContext) -> str | None:
        done = fenced_before(context.record)
        if not self.force:
            context.check(self._remaining(done))
        with _recorded(context.record) as record:

            def on_id(result: IdResult) -> None:
                record(result)
                context.on_id(result)

            fencer = BatchFencer(
                context.transactions,
                self._remaining(done),
                context.fencing,
                on_id,
                context.now,
                context.sleep,
                results=done,
            )
            try:
                fencer.run()
                proof = verify(
                    context.transactions, [fencer.results[row.id] for row in self.rows], fencer.held
                )
            except KeyboardInterrupt:
                # Only this process has the list of fenced ids: a second ^C ends it, a watchdog does
                # not.
                with put_in_order("the results are printed"):
                    fencer.interrupted()
                    context.results = tuple(fencer.results[row.id] for row in self.rows)
                    context.on_interrupt()
                raise
            except ConnectctlError as e:
                context.error = e
                raise
        context.results, context.findings = proof.results, proof.findings
        return summary_of(Counter(result.outcome.value for result in proof.results))


def fenced_before(record: Path) -> dict[str, IdResult]:
    """Return the ids that an earlier attempt of the run fenced; a truncated last line is
    ignored.
    """
    found: dict[str, IdResult] = {}
    for line in record.read_bytes().splitlines() if record.exists() else ():
        with suppress(ValueError, TypeError, KeyError, AttributeError, IndexError):
            result: IdResult = from_data(IdResult, read_json(line), {})
            found[result.id] = result
    return found


@contextmanager
def _recorded(record: Path) -> Iterator[Callable[[IdResult], None]]:
    """Yield a function that appends a result to the file if the id is fenced. A line survives a
    crash of this process.
    """
    handle = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    encode = json.JSONEncoder().encode

    def write(result: IdResult) -> None:
        if result.outcome is FenceOutcome.FENCED:
            os.write(handle, encode(to_data(result)).encode() + b"\n")

    try:
        yield write
    finally:
        os.close(handle)


@dataclass(frozen=True)
class AwaitFailed(ResourceStep[FenceContext]):
    tasks: tuple[int, ...]

    def describe(self) -> str:
        numbers = ", ".join(map(str, self.tasks))
        return (
            f"wait for task{'s' if len(self.tasks) > 1 else ''} {numbers} of {self.subject} to fail"
        )

    def apply(self, context: FenceContext) -> str | None:
        if context.error is not None:
            raise _not_fenced(self.subject, context.error)
        seconds = min(context.timeout, DETECTION_TIMEOUT)
        if context.until(lambda: None if self._not_failed(context) else True, seconds, POLL):
            return None
        waiting = context.undetected[self.subject] = self._not_failed(context)
        return f"task {waiting[0]} is idle and has not detected the fence" if waiting else None

    def _not_failed(self, context: FenceContext) -> list[int]:
        found = context.read(self.subject)
        failed = failed_parts(found)
        return [n for n in self.tasks if found.tasks.get(n) is not None and n not in failed]


@dataclass(frozen=True)
class RestartFenced(RestartAndAwait[FenceContext]):
    """Restart the failed tasks of a connector, and fenced tasks that have not failed yet."""

    def is_done(self, context: FenceContext) -> str | None:
        return None if context.undetected.get(self.subject) else super().is_done(context)

    def apply(self, context: FenceContext) -> str | None:
        if context.error is not None:
            raise _not_fenced(self.subject, context.error)
        for number in context.undetected.get(self.subject, ()):
            context.change(self.subject, "POST", f"/tasks/{number}/restart")
        return super().apply(context)


def _not_fenced(connector: str, error: ConnectctlError) -> ConnectctlError:
    return ConnectctlError(
        f"Not restarting {connector}: its transactional ids are not fenced", why=error.what
    )


def plan_fence(
    selection: FenceSelection,
    *,
    restart: tuple[str, ...],
    group_id: str | None,
    connectors: tuple[str, ...] = (),
    force: bool = False,
) -> Plan:
    """Return the plan that fences the ids. ``restart`` are connectors of ``group_id`` whose failed
    tasks are restarted afterwards.

    ``connectors`` are those of the request; ``force``: their tasks may be running.
    """
    rows = selection.to_fence
    noops = [
        Noop(row.id, f"{row.action.value}: {row.problem.message if row.problem else ''}")
        for row in selection.rows
        if row.action not in REQUESTED
    ]
    names = list(dict.fromkeys(row.connector or row.id for row in rows))
    fence = FenceIds(some_of(names, MAX_NAMED), sentence(selection), rows, connectors, force)
    steps: list[Step[FenceContext]] = [fence] if rows else []
    for connector in restart:
        owners = [owner for row in rows for owner in row.running if owner.group == group_id]
        numbers = {owner.task for owner in owners if owner.connector == connector}
        tasks = tuple(sorted(number for number in numbers if number is not None))
        steps += [AwaitFailed(connector, tasks)] if tasks else []
        steps += [RestartFenced(connector)]
    return Plan(
        "fence", selection.cluster_id, tuple(steps), tuple(noops), group_id or "", independent=True
    )


def results_of(selection: FenceSelection, fenced: Iterable[IdResult]) -> list[IdResult]:
    """Return the result of each id that was selected; ``fenced`` are those of the requests."""
    known = {result.id: result for result in fenced}
    found = (without_request(row) or known.get(row.id) for row in selection.rows)
    return [result for result in found if result is not None]


def sentence(selection: FenceSelection) -> str:
    rows = selection.to_fence
    created = sum(row.action is FenceAction.CREATE for row in rows)
    running = sum(bool(row.running) for row in rows)
    aborted = sum(row.transaction is not None and row.transaction.is_open for row in rows)
    parts = [
        f"abort {counted(aborted, 'open transaction')}" if aborted else "",
        f"create {created} unknown to the coordinators" if created else "",
        f"fail {counted(running, 'running task')}" if running else "",
    ]
    more = "; this will " + ", ".join(filter(None, parts)) if any(parts) else ""
    return f"fence {counted(len(rows), 'transactional id')}{more}"


def summary_of(counts: Counter[str]) -> str:
    return ", ".join(
        f"{counts[outcome]:,} {outcome}"
        for outcome in ("fenced", "unknown", "failed", "skipped")
        if counts[outcome]
    )
