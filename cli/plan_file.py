"""Reads a plan saved from ``--dry-run -o json``, and refuses it if its inputs have changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from connectctl.cli import apply
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import stale

NOT_APPLIED = {
    "loggers undo": "Undo the run: connectctl runs undo RUN.",
    "resume": "Resume the run itself: connectctl runs resume RUN.",
    "upgrade abort": "End the run: connectctl upgrade abort --leave.",
}
"""The command to use instead of applying a plan, by its operation or the first word of it."""


def read_plan(path: Path) -> dict[str, Any]:
    """Read the JSON of the plan in ``path``, ``-`` for standard input. Raises ``BadInput``, also
    for ``NOT_APPLIED``.
    """
    try:
        data = read_json(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
        if isinstance(data, dict):
            if data.get("kind", "Plan") != "Plan":
                raise ValueError(
                    f"it is of the kind {data['kind']}; --dry-run -o json prints the plan"
                )
            operation = str(data.get("operation"))
            hint = NOT_APPLIED.get(operation) or NOT_APPLIED.get(operation.partition(" ")[0])
            if hint is None:
                return dict(data)
            raise BadInput(
                f"{path} is not a plan that can be applied: it is a plan of {operation}",
                next_step=hint,
            )
        why: str | None = "it is not a JSON object"
    except (OSError, ValueError) as e:
        why = (e.strerror if isinstance(e, OSError) else None) or str(e)
    raise BadInput(
        f"{path} is not a plan", why=why, next_step="Save one: --dry-run -o json > FILE."
    )


def check_fresh(saved: Plan, now: Plan, printed_by: str) -> None:
    """Raise ``Refused`` if ``now``, the plan for the same request now, differs from the saved plan.

    ``printed_by`` is the command that prints it.
    """
    if now.digest == saved.digest:
        return
    was, now_is = (list(map(str.strip, apply.summary(plan)[1:])) for plan in (saved, now))
    why = next(
        (f"now it would be: {line}" for line in now_is if line not in was),
        "its inputs have changed",
    )
    raise stale(why, f"Make a new plan: {printed_by}.")
