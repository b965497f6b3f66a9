"""Operations that change source offsets, and the committed offsets of sinks' groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from connectctl.ops.clients.protocols import Clients
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import Run
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.steps import Await, SetTargetState, restarts_instead
from connectctl.ops.operations.offsets import sources as clients_of
from connectctl.ops.operations.offsets.context import OffsetContext
from connectctl.ops.operations.offsets.planning import Changes, first_to_do, plan_changes
from connectctl.ops.operations.offsets.prepare import (
    OffsetAccess,
    check_workers,
    observe_targets,
    targets_of,
)
from connectctl.ops.operations.offsets.steps import Backup, Change, Check, Configure, CreateTopic
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.offsets.task_producers import FenceTasks
from connectctl.ops.operations.offsets.undo import group_rollbacks, rollbacks
from connectctl.ops.operations.operation import Operation, Planned, Remaining, Undone
from connectctl.ops.operations.sink_offsets.changes import GroupTarget
from connectctl.ops.operations.sink_offsets.planning import GroupChanges, plan_groups
from connectctl.ops.operations.sink_offsets.prepare import observe_groups
from connectctl.ops.operations.sink_offsets.steps import BackupGroup, ChangeGroupOffsets
from connectctl.ops.operations.upgrade.steps import IncludedStep


@dataclass(frozen=True, kw_only=True)
class OffsetClients(OffsetAccess):
    """The clients of a change of offsets, with all others that it may open."""

    clients: Clients

    def cluster_id(self) -> str:
        """Return the id of the workers' Kafka cluster."""
        return self.sources.kafka.cluster_id()


@dataclass(frozen=True)
class OffsetsRequest:
    """The change of connectors in ``sources``; of the groups that ``groups`` returns if ``sources``
    is empty or has a sink.

    ``stop``: running connectors are stopped during the change. ``via`` is the interface that
    changes groups, None for the default. ``typed`` is the name that the user must type, because all
    of its offsets are deleted. ``undoes`` is the run that is undone.
    """

    sources: Sequence[OffsetTarget]
    groups: Callable[[], Sequence[GroupTarget]] | None = None
    stop: bool = False
    via: str | None = None
    typed: str | None = None
    undoes: str | None = None


@dataclass(frozen=True, kw_only=True)
class OffsetsPlan(Planned):
    """A plan, with the records or offsets that it would write."""

    changes: Changes | GroupChanges
    access: OffsetClients

    def check(self, *, dry_run: bool) -> None:
        """Send a request to a worker if steps send one."""
        if not dry_run and self.plan.steps:
            check_workers(self.plan, self.access)


class OffsetsOperation(Operation[OffsetsRequest, OffsetClients]):
    """The base of operations on offsets."""

    view = "offset_changes.OffsetsView"
    needs_group = True
    deletes_all: ClassVar[bool] = False
    """Whether it may delete all offsets of a group, whose name is then typed."""
    steps = (
        SetTargetState,
        Await,
        FenceTasks,
        Backup,
        CreateTopic,
        Change,
        Configure,
        Check,
        BackupGroup,
        ChangeGroupOffsets,
    )

    def access(self, clients: Clients, request: OffsetsRequest) -> OffsetClients:
        """Return the clients; the workers' group is described, and the internal topics are
        found.
        """
        return self.access_for(clients, None)

    def access_for(self, clients: Clients, plan: Plan | None) -> OffsetClients:
        """Return the clients, which do not depend on the plan."""
        found, _ = clients_of.observe_connectors(clients, [])
        return OffsetClients(
            found.sources,
            found.calls,
            found.group,
            found.named_topics,
            found.engine,
            clients=clients,
        )

    def plan(self, access: OffsetClients, request: OffsetsRequest) -> OffsetsPlan:
        """Return the plan. Raises ``Refused`` with all reasons against it."""
        try:
            planned = (self._plan_sources if request.sources else self._plan_groups)(
                access, request
            )
        except BadInput as e:
            if e.code != "sink" or request.groups is None:
                raise
            planned = self._plan_groups(access, request)
        plan = replace(planned.plan, undoes=request.undoes, warnings=planned.notes)
        return replace(planned, plan=plan, notes=())

    def _plan_sources(self, access: OffsetClients, request: OffsetsRequest) -> OffsetsPlan:
        observed, subjects = observe_targets(access, request.sources)
        access.sources.check_proven()
        pairs = [
            (subject, target.request(subject))
            for subject, target in zip(subjects, request.sources, strict=True)
            if target.request
        ]
        changes = plan_changes(
            self.name,
            access.cluster_id(),
            pairs,
            stop=request.stop,
            group_id=access.group_id,
            view=observed.view,
            via=request.sources[0].via,
        )
        typed = (f"source offsets of {request.typed}", request.typed) if request.typed else None
        names = tuple(subject.name for subject, _ in pairs)
        return OffsetsPlan(
            changes.plan,
            notes=tuple(map(addresses_masked, changes.warnings)),
            typed=typed,
            changes=changes,
            access=access,
            subjects=names,
        )

    def _plan_groups(self, access: OffsetClients, request: OffsetsRequest) -> OffsetsPlan:
        targets = request.groups() if request.groups else ()
        # An undo stops what can be stopped: its hint, printed for any run, has --stop.
        if request.stop and not request.undoes and not all(each.connector for each in targets):
            raise BadInput(
                "--stop requires a connector, not a group",
                next_step="Stop the members of the group yourself.",
            )
        states = observe_groups(access, access.clients.group_offsets, targets)
        pairs = [(state, target.change) for state, target in zip(states, targets, strict=True)]
        changes = plan_groups(
            self.name,
            access.cluster_id(),
            access.group_id,
            pairs,
            stop=request.stop,
            via=request.via,
            undoes=request.undoes,
        )
        typed = (f"committed offsets of {request.typed}", request.typed) if request.typed else None
        names = tuple(target.name for target in targets)
        notes = changes.warnings if changes.plan.steps else ()
        return OffsetsPlan(
            changes.plan, notes=notes, typed=typed, changes=changes, access=access, subjects=names
        )

    def request_of(self, plan: Plan) -> OffsetsRequest:
        """Return the change that the steps make."""
        groups = [step for step in plan.steps if isinstance(step, ChangeGroupOffsets)]
        if not groups:
            targets, typed = targets_of(plan)
            return OffsetsRequest(targets, stop=True, typed=typed, undoes=plan.undoes)
        every = [step.subject for step in groups if step.change.exact and not step.change.entries]
        targets_of_groups = [
            GroupTarget(step.subject, step.change, step.connector) for step in groups
        ]
        return OffsetsRequest(
            (),
            lambda: targets_of_groups,
            stop=all(target.connector for target in targets_of_groups),
            via=groups[0].via,
            typed=every[0] if every and self.deletes_all else None,
            undoes=groups[0].undoes,
        )

    def context(self, access: OffsetClients, planned: Planned) -> OffsetContext:
        """Return the context of the steps."""
        return clients_of.context_of(access.clients, access, access.clients.journal())

    def remaining(self, access: OffsetClients, run: Run, plan: Plan) -> Remaining:
        """Return the remaining steps: from the connector's first step while its offsets are not
        written and verified.
        """
        return Remaining(first_to_do(run, plan.steps), instead=restarts_instead(run, plan.steps))

    def undo_hint(self, run: Run) -> str:
        """Return the command that also stops running connectors."""
        return f"Undo it with: connectctl offsets undo {run.id} --stop"

    def undo(self, access: OffsetClients, undone: Undone) -> OffsetsPlan:
        """Return the plan that restores every record, and every committed offset, from the run's
        backups.
        """
        journal, run = undone.journal, undone.run
        # An upgrade includes the steps of a change of offsets.
        steps = [
            step.inner if isinstance(step, IncludedStep) else step for step in undone.plan.steps
        ]
        restores, groups = rollbacks(journal, run, steps), group_rollbacks(journal, run, steps)
        if not restores and not groups:
            raise Refused(
                f"The run {run.id} saved no offsets, so it changed none",
                next_step="There is nothing to undo.",
            )
        if groups:
            return UndoOffsets().plan(
                access, OffsetsRequest((), lambda: groups, stop=undone.stop, undoes=run.id)
            )
        targets = [
            OffsetTarget(
                name,
                lambda subject: restores[subject.name].request,
                restore.dedicated_topic,
                new=True,
                purpose=restore.request,
            )
            for name, restore in restores.items()
        ]
        return UndoOffsets().plan(access, OffsetsRequest(targets, stop=undone.stop, undoes=run.id))


class SetOffsets(OffsetsOperation):
    """``offsets set``."""

    name = "offsets set"


class ResetOffsets(OffsetsOperation):
    """``offsets reset``."""

    name = "offsets reset"
    deletes_all = True


class RestoreOffsets(OffsetsOperation):
    """``offsets restore``."""

    name = "offsets restore"


class MergeOffsets(OffsetsOperation):
    """``offsets merge``."""

    name = "offsets merge"


class CopyOffsets(OffsetsOperation):
    """``offsets copy``."""

    name = "offsets copy"


class UndoOffsets(OffsetsOperation):
    """``offsets undo``."""

    name = "offsets undo"
