"""Checks a saved plan of ``connectctl run``, and refuses it if its inputs have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.core.saved_plan import stale
from connectctl.ops.task_runtime.job.run_request import RunRequest, sha256_of
from connectctl.ops.task_runtime.job.steps import tasks_of

if TYPE_CHECKING:
    from connectctl.ops.core.plan import Plan


@dataclass(frozen=True)
class SavedRun:
    """A plan, its request, and the SHA-256 of its inputs."""

    plan: Plan
    request: RunRequest
    made_from: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan) -> SavedRun:
        """Return the run of ``plan``. Raises ``BadInput`` if the plan runs no tasks, ``Refused``
        for a changed job file.
        """
        tasks = tasks_of(plan)
        saved = cls(plan, tasks.request, tasks.made_from)
        job = Path(saved.request.job)
        try:
            # before the content is used
            saved.check({str(job): sha256_of(job.read_bytes())})
        except OSError as e:
            raise stale(
                f"the job file {job} cannot be read: {e.strerror}", "Restore the job file."
            ) from e
        return saved

    def check(self, now: Mapping[str, str]) -> None:
        """Raise ``Refused`` if a hash in ``now`` differs from that of the saved plan."""
        if changed := sorted(
            name for name, digest in now.items() if self.made_from.get(name) != digest
        ):
            hint = f"Make a new plan: connectctl run {self.request.job} --dry-run -o json."
            raise stale(f"{changed[0]} has changed", hint)
