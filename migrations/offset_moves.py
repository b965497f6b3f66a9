"""Shared by migrations that move source offsets: their observation and rollback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets.changes import MergeOffsets, MergePolicy, OffsetRequest
from connectctl.ops.operations.offsets.planning import ConnectorState, current_states, plan_changes
from connectctl.ops.operations.offsets.undo import rollbacks
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.steps import IncludedStep

if TYPE_CHECKING:
    from connectctl.migrations.access import UpgradeAccess
    from connectctl.migrations.registry import Given, Observed
    from connectctl.ops.operations.upgrade.runs import LoadedRun


def to_global(access: UpgradeAccess, given: Given) -> Observed:
    """Return the steps that move connectors to the global topic, as
    ``offsets merge --into global --unset-topic`` does.
    """
    policy, chosen = policy_of(given)

    def request(subject: ConnectorState) -> MergeOffsets:
        dedicated = next(
            (at.topic for at in subject.topic_states if at.side is Side.DEDICATED), None
        )
        if dedicated is None:
            hint = "Its offsets are in the global one."
            raise BadInput(f"{subject.name} has no dedicated offsets topic", next_step=hint)
        return MergeOffsets(subject.name, Side.GLOBAL.value, policy, chosen, dedicated)

    return merges(access, dict.fromkeys(connectors(access, given)), request)


def policy_of(given: Given) -> tuple[str, bool]:
    """Return the policy, and whether it was given. Raises ``BadInput`` for an unknown one."""
    policy = given.get("policy")
    if policy is not None and policy not in list(MergePolicy):
        raise BadInput(f"policy={policy} is not one of {', '.join(MergePolicy)}")
    return policy or MergePolicy.EFFECTIVE.value, policy is not None


def connectors(access: UpgradeAccess, given: Given) -> list[str]:
    """Return the given connectors; by default all with a dedicated offsets topic."""
    return listed(given, "connector") or list(access.snapshot.dedicated)


def listed(given: Given, name: str) -> list[str]:
    """Return the comma-separated values of parameter ``name``."""
    return [part.strip() for part in given.get(name, "").split(",") if part.strip()]


def merges(
    access: UpgradeAccess,
    topics: Mapping[str, str | None],
    request: Callable[[ConnectorState], OffsetRequest],
) -> Observed:
    """Return the steps of ``request`` for the connectors of ``topics``, and lines on how their
    topics differ.
    """
    if not topics:
        return (), ()
    view, subjects = access.offsets(topics)
    pairs = [(subject, request(subject)) for subject in subjects]
    changes = plan_changes("offsets merge", access.snapshot.cluster_id, pairs, stop=True, view=view)
    return changes.plan.steps, tuple(current_states(pairs, changes))


def roll_back(access: UpgradeAccess, restored: LoadedRun) -> Observed:
    """Return the steps that restore the run's backups, and resume the connectors that it
    stopped.
    """
    plain: list[Any] = [
        step.inner if isinstance(step, IncludedStep) else step for step in restored.steps
    ]
    backs = rollbacks(access.journal, restored.run, plain)
    if not backs:
        return (), ()
    topics = {name: planned.dedicated_topic for name, planned in backs.items()}
    view, subjects = access.offsets(
        topics, {name: planned.request for name, planned in backs.items()}
    )
    pairs: list[tuple[ConnectorState, OffsetRequest]] = [
        (subject, backs[subject.name].request) for subject in subjects
    ]
    changes = plan_changes("offsets undo", access.snapshot.cluster_id, pairs, stop=True, view=view)
    why = f"as it was before {restored.run.id}"
    return (
        *(IncludedStep(step, why) for step in changes.plan.steps),
        *runs.restart_steps(restored, subjects),
    ), ()
