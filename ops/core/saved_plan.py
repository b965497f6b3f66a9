"""Refuses a saved plan or a run whose cluster is not the context's, or has changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.core.errors import Refused

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run


def check_where(planned: tuple[str, str], here: tuple[str, str]) -> None:
    """Raise ``Refused`` for a plan of another Kafka cluster or group than the context's."""
    if planned != here:
        raise Refused(
            f"The plan is for the group {planned[1] or '(none)'} on the Kafka cluster {planned[0]}",
            why=f"the context is for {here[1] or '(none)'} on {here[0]}",
            next_step="Give the context that the plan was made in: --context.",
            code="other-cluster",
        )


def check_same_cluster(run: Run, cluster_id: str, group_id: str) -> None:
    """Raise ``Refused`` if the run belongs to another Connect cluster than the context's."""
    if (run.cluster_id, run.group_id) != (cluster_id, group_id):
        raise Refused(
            f"The run {run.id} is of the group {run.group_id} on the Kafka cluster "
            f"{run.cluster_id}",
            why=f"the context is of {group_id} on {cluster_id}",
            next_step="Give the context that the run was made in: --context.",
        )


def stale(why: str, next_step: str) -> Refused:
    """Return the error for a plan that is not executed, because the cluster has changed since it
    was made.
    """
    return Refused(f"The plan is stale: {why}; nothing was done", next_step=next_step, code="stale")
