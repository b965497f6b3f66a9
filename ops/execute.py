"""Carries out a plan with a journal: lock the cluster, then step by step, marked before and after.

It never asks the person anything. A step that already holds is not done again, and that is asked at the moment of doing;
so a run that was killed anywhere can be carried out once more from its beginning, and comes to the same end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.errors import ConnectctlError, PartDone, Refused, TimedOut, Unreachable
from connectctl.ops.interrupts import resumable
from connectctl.ops.journal import Journal, Run, State
from connectctl.ops.plan import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectctl.ops.edges.contract import ClusterLock

Told = Callable[[Any], None]


def execute(
    steps: Sequence[Any],
    edges: Any,
    journal: Journal,
    run: Run,
    *,
    lock: ClusterLock,
    told: Told = lambda step: None,
    done: Callable[[Result], None] = lambda result: None,
    start: int = 0,
    until: int | None = None,
    go_on: str = "connectctl runs resume",
) -> list[Result]:
    """Do the steps in order, the first failure ending the run. Raises ``PartDone`` where something was done before it.

    ``start`` is the first step to do, where the earlier ones are known to be done; before ``until`` the run pauses, and
    stays open. ``done`` hears of each result, ``go_on`` is the command that takes a run up again. ``edges`` get ``run``
    and ``step`` set to what is being done, for what steps write down themselves. A run that is refused before it changed
    anything is over. ``lock`` is the cluster's: it is confirmed before each step, and where it was lost the run stops.
    """
    results: list[Result] = []
    number, doing = start, False
    try:
        with (
            journal.locked(run.cluster_id, run.group_id),
            resumable(f"{go_on} {run.id}"),
            lock.held(run.id, journal.knows) as confirm,
        ):
            for number, planned in list(enumerate(steps))[start:until]:
                edges.run, edges.step, doing = run, number, False
                confirm()
                step = _decided(planned, edges)
                told(step)
                journal.mark(run.id, number, "begun")
                already = step.holds(edges)
                doing = already is None and _changes(step)
                detail = step.do(edges) if already is None else already
                outcome = Outcome.DONE if already is None else Outcome.ALREADY
                results.append(Result(step.subject, step.says(), outcome, detail))
                journal.mark(run.id, number, outcome.value, detail)
                done(results[-1])
            if until is None or until >= len(steps):
                journal.end(run.id, State.DONE)
    except ConnectctlError as e:
        if e.code == "locked" and run.marks:
            raise  # it may be this very run that another process carries out
        pairs = zip(steps[start:], results, strict=False)
        changed = _changed(run, steps) or any(r.outcome is Outcome.DONE and _changes(step) for step, r in pairs)
        over = isinstance(e, Refused) and not changed
        with suppress(ConnectctlError):  # the journal itself may be what failed
            journal.mark(run.id, number, "refused" if over else "failed", str(e))
            journal.end(run.id, State.REFUSED if over else State.FAILED)
        in_doubt = doing and isinstance(e, TimedOut | Unreachable)
        if over or not (changed or results or in_doubt):
            raise
        raise _part_done(e, run, number, doing, go_on) from e
    return results


def _decided(step: Any, edges: Any) -> Any:
    """The step with what is decided only when its turn comes, for steps that have a method ``decided``."""
    decide = getattr(step, "decided", None)
    return step if decide is None else decide(edges)


def _changes(step: Any) -> bool:
    return not getattr(step, "only_looks", False)


def _changed(run: Run, steps: Sequence[Any]) -> bool:
    """Whether an earlier attempt changed something, or may have."""
    return any(mark.what in ("done", "begun") and _changes(steps[mark.step]) for mark in run.marks)


def _part_done(error: ConnectctlError, run: Run, number: int, doing: bool, go_on: str) -> PartDone:
    waited = "; it may have been done all the same" if doing and isinstance(error, TimedOut) else ""
    hint = f"{error.next_step or ''} Then go on: {go_on} {run.id}".strip()
    return PartDone(f"Step {number + 1} of the run failed{waited}: {error.what}", why=error.why, next_step=hint)
