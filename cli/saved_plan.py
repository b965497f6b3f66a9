"""A plan that ``--dry-run -o json`` printed, as a file: read again, and refused where the cluster is another one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, Refused

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run
    from connectctl.ops.core.plan import Plan


NOT_APPLIED = {
    "resume": "Resume the run itself: connectctl runs resume RUN.",
    "upgrade abort": "End the run: connectctl upgrade abort --leave.",
    "loggers undo": "Name the run to undo: connectctl loggers undo RUN.",
}
"""What is done instead of applying a plan, by its operation or the first word of it."""


def read_plan(path: Path) -> dict[str, Any]:
    """The JSON of the plan in ``path``, of standard input for ``-``. Raises ``BadInput``, also for ``NOT_APPLIED``."""
    try:
        data = read_json(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
        if isinstance(data, dict):
            # A dry run of fence prints its plan beside what it has for each id.
            data = data["plan"] if data.get("kind") == "FenceResult" else data
            operation = str(data.get("operation"))
            hint = NOT_APPLIED.get(operation) or NOT_APPLIED.get(operation.partition(" ")[0])
            if hint is None:
                return dict(data)
            raise BadInput(f"{path} is not a plan that can be applied: it is a plan of {operation}", next_step=hint)
        why: str | None = "it is not a JSON object"
    except KeyError:
        why = "it reports what was fenced; --dry-run -o json prints the plan"
    except (OSError, ValueError) as e:
        why = (e.strerror if isinstance(e, OSError) else None) or str(e)
    raise BadInput(f"{path} is not a plan", why=why, next_step="Save one: --dry-run -o json > FILE.")


def check_where(planned: tuple[str, str], here: tuple[str, str]) -> None:
    """Raises ``Refused`` for a plan of another Kafka cluster or group than the context's."""
    if planned != here:
        raise Refused(
            f"The plan is for the group {planned[1] or '(none)'} on the Kafka cluster {planned[0]}",
            why=f"the context is for {here[1] or '(none)'} on {here[0]}",
            next_step="Give the context that the plan was made in: --context.",
            code="other-cluster",
        )


def check_same_cluster(run: Run, cluster_id: str, group_id: str) -> None:
    """Raises ``Refused`` where the run belongs to another Connect cluster than the context's."""
    if (run.cluster_id, run.group_id) != (cluster_id, group_id):
        raise Refused(
            f"The run {run.id} is of the group {run.group_id} on the Kafka cluster {run.cluster_id}",
            why=f"the context is of {group_id} on {cluster_id}",
            next_step="Give the context that the run was made in: --context.",
        )


def check_fresh(saved: Plan, now: Plan) -> None:
    """Raises ``Refused`` where ``now``, what would be planned for the same request, is not what was saved."""
    if now.digest == saved.digest:
        return
    was, now_is = (list(map(str.strip, apply.summary(plan)[1:])) for plan in (saved, now))
    changed = [f"now it would be: {line}" for line in now_is if line not in was][:1]
    why = changed[0] if changed else "its inputs have changed"
    raise stale(why, f"Make a new plan: connectctl {saved.operation} … --dry-run -o json.")


def stale(why: str, next_step: str) -> Refused:
    """The error for a plan that is not carried out, because the cluster has changed since it was made."""
    return Refused(f"The plan is stale: {why}; nothing was done", next_step=next_step, code="stale")
