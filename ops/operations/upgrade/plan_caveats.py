"""Caveats of a plan: modes that are not verified, and facts known only during execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.numbers import whole_number
from connectctl.ops.core.finding import some_of
from connectctl.ops.operations.upgrade.mode import Confidence, SourceSupport

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


def lines(snapshot: RollingSnapshot, steps: Sequence[Any]) -> Iterator[str]:
    """Yield one line for each unknown."""
    for worker in snapshot.workers:
        mode = worker.mode
        if mode.value is SourceSupport.UNKNOWN:
            yield f"{worker.address}: mode unknown: {mode.source}."
        elif mode.how is Confidence.ASSUMED:
            yield f"{worker.address}: {mode.value} is assumed, not verified: {mode.source}."
        elif mode.how is Confidence.CONFIGURED:
            configured = f"{mode.value} according to its properties ({mode.source})"
            yield f"{worker.address}: {configured}; cannot be verified from outside."
    if snapshot.unseen:
        yield from (f"Could not read {unseen}." for unseen in snapshot.unseen)
    if steps:
        yield from _execution_caveats(snapshot, steps)


def _execution_caveats(snapshot: RollingSnapshot, steps: Sequence[Any]) -> Iterator[str]:
    phases = {step.phase for step in steps if hasattr(step, "phase")}
    leader = snapshot.leader
    if len(phases) > 1 and leader and len(snapshot.workers) > 1:
        yield (
            f"The leader after the restart of {leader.address} is known only then: "
            "the next roll restarts the current leader last."
        )
    yield _rebalance_delay(snapshot.max_delay)
    if snapshot.baseline:
        failing = some_of([*map(str, snapshot.baseline)], 5)
        yield f"Already failing before the upgrade (ignored by the gates): {failing}."


def _rebalance_delay(milliseconds: str | None) -> str:
    if (number := whole_number(milliseconds)) is not None:
        seconds = number / 1000
        return (
            f"Connectors and tasks of a stopped worker stay unassigned for up to {seconds:g} s "
            "(scheduled.rebalance.max.delay.ms)."
        )
    return (
        "Connectors and tasks of a stopped worker stay unassigned for up to the leader's "
        "scheduled.rebalance.max.delay.ms (5 minutes by default); the gates wait for that."
    )
