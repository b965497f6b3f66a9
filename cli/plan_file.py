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

RESUMED = "resume "
"""What the operation of a plan begins with that is the rest of a run."""
PRINTED = {
    RESUMED: "Resume the run itself: connectctl runs resume RUN.",
    "upgrade abort": "End the run: connectctl upgrade abort --leave.",
}
"""What to do instead of applying a plan that is no operation's, by how its operation begins."""


def read_plan(path: Path) -> dict[str, Any]:
    """Read the JSON of the plan in ``path``, ``-`` for standard input. Raises ``BadInput``."""
    try:
        data = read_json(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
        if isinstance(data, dict):
            if data.get("kind", "Plan") != "Plan":
                raise ValueError(
                    f"it is of the kind {data['kind']}; --dry-run -o json prints the plan"
                )
            return dict(data)
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
