"""WORKER015 and WORKER016: rolling changes of the workers."""

from __future__ import annotations

from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Severity, some_of
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.operations.upgrade.run_state import RollState

_NAMED = 3
"""The number of names that a message lists before it counts the rest."""


@rule("WORKER015", Severity.WARNING)
def unfinished(roll: RollState, goal: Goal) -> Case | None:
    """Return WORKER015 for a rolling change that has not ended."""
    run = roll.unfinished
    hint = f"connectctl upgrade resume {run}, or connectctl upgrade abort {run}"
    return Case("workers", f"The run {run} ({roll.purpose}) has not ended.", hint) if run else None


@rule("WORKER016", Severity.WARNING)
def half_rolled(roll: RollState, goal: Goal) -> Case | None:
    """Return WORKER016 if some workers are preparing and others are disabled."""
    by_mode = {
        mode: sorted(w for w, m in roll.modes.items() if m == mode)
        for mode in ("preparing", "disabled")
    }
    message = "; ".join(f"{some_of(names, _NAMED)} {mode}" for mode, names in by_mode.items())
    step = "connectctl upgrade status"
    return (
        Case("workers", f"They have different modes: {message}.", step)
        if all(by_mode.values())
        else None
    )
