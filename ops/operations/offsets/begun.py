"""Changes that earlier attempts of a run have begun, from its journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run


def change_begun(journal: Journal, run: Run, subject: str, kind: str) -> Mapping[str, Any] | None:
    """Return the planned step of ``kind`` for ``subject`` if an attempt of the run began it,
    otherwise None.
    """
    begun = {mark.step for mark in run.marks}
    steps = [step.get("inner", step) for step in journal.plan(run.id)["steps"]]
    found = (step for number, step in enumerate(steps) if number in begun)
    return next(
        (step for step in found if (step["step"], step["subject"]) == (kind, subject)), None
    )
