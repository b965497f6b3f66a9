"""Operations that create, change and delete connectors, and their undo."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from connectctl.ops.connect.goal import Goal
from connectctl.ops.connector_config.report import report
from connectctl.ops.connector_config.validations import MOST
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.journal import Run
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.access import ClusterAccess
from connectctl.ops.operations.connectors.carried_offsets import (
    CarryOffsets,
    DeleteCarried,
    to_repeat,
)
from connectctl.ops.operations.connectors.config import files as config_files
from connectctl.ops.operations.connectors.config import outlook as config_outlook
from connectctl.ops.operations.connectors.config.applied_directory import Directory
from connectctl.ops.operations.connectors.config.cluster_facts import observe_cluster
from connectctl.ops.operations.connectors.config.directory import AwaitRelease, PruneRequest
from connectctl.ops.operations.connectors.config.files import given_of, resolved, warnings_of
from connectctl.ops.operations.connectors.config.history import index_of, versions_of
from connectctl.ops.operations.connectors.config.initial_by_topic import (
    by_topic,
    with_offsets_first,
)
from connectctl.ops.operations.connectors.config.offsets import (
    SetConnectorOffsets,
    check_removable,
    initial,
    removal,
)
from connectctl.ops.operations.connectors.config.outlook import Entries, OffsetsOfChange
from connectctl.ops.operations.connectors.config.plan import (
    ConfigPlan,
    Desired,
    Planner,
    refuse_existing,
)
from connectctl.ops.operations.connectors.config.steps import (
    AwaitGone,
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
    ReadOffsets,
    RestoreOffsets,
    stored_offsets,
)
from connectctl.ops.operations.connectors.config.stored_outlook import ConfigOutlook
from connectctl.ops.operations.connectors.config.undo import plan_undo
from connectctl.ops.operations.connectors.config.values import Config, changed
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.observe import ConnectorHealth, matching
from connectctl.ops.operations.connectors.operation import ConnectorOperation
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords
from connectctl.ops.operations.connectors.remaining_resources import remaining_resources
from connectctl.ops.operations.connectors.state_operations import (
    UNDO,
    ChangeState,
    plan_former_states,
)
from connectctl.ops.operations.connectors.steps import Await, SetTargetState, VerifyState
from connectctl.ops.operations.offsets import sources as offsets
from connectctl.ops.operations.offsets.steps import Backup, Change
from connectctl.ops.operations.operation import Planned, R, Remaining, Undone


@dataclass(frozen=True, kw_only=True)
class ConfigRequest:
    """``carry``: source offsets are carried over. ``force``: errors that workers accept do not
    refuse the change.

    ``wait``: the run waits until the connectors are in their states.
    """

    wait: bool = False
    carry: bool = False
    force: bool = False


class ConfigOperation(ConnectorOperation[R]):
    """The base of operations that change configurations."""

    steps = (
        CreateConnector,
        ChangeConnector,
        DeleteConnector,
        AwaitGone,
        AwaitRelease,
        SetConnectorOffsets,
        CarryOffsets,
        DeleteCarried,
        ReadOffsets,
        RestoreOffsets,
        SetTargetState,
        Await,
        VerifyState,
        Backup,
        Change,
    )

    def planner(
        self, access: ClusterAccess, found: Collection[ConnectorHealth], *, wait: bool
    ) -> Planner:
        """Return a planner for the connectors ``found``."""
        current = {health.name: health for health in found}
        return Planner(self.name, access.cluster_id(), access.group_id, current, wait=wait)

    def plan_again(self, access: ClusterAccess, saved: Plan) -> Planned:
        """Return the saved plan, with its secrets read again from its files.

        Raises ``Refused`` if a connector or a file has changed since.
        """
        if any(isinstance(step, Change) for step in saved.steps):
            raise BadInput(
                "The plan writes initial offsets to the offsets topic, and cannot be applied from "
                "a file",
                next_step="Give the files: connectctl connectors create -f FILE --offsets FILE.",
            )
        changes = [
            step for step in saved.steps if isinstance(step, CreateConnector | ChangeConnector)
        ]
        named = {Path(step.file) for step in changes if step.file}
        # A plan without secrets can be applied on a machine without its files.
        files = sorted(path for path in named if path.exists())
        by_name = {
            desired.name: desired for desired in config_files.desired(files, access.clients.reveal)
        }
        configs = resolved(access.calls, saved, by_name)
        references = {name: desired.references for name, desired in by_name.items()}
        return ConfigPlan(saved, configs=configs, references=references)

    def context(self, access: ClusterAccess, planned: Planned) -> StepContext:
        """Return the context of the steps; that of offsets if the plan writes initial ones to their
        topic.
        """
        if any(isinstance(step, Change) for step in planned.plan.steps):
            clients = access.clients
            return offsets.context_of(
                clients, offsets.observe_connectors(clients, [])[0], clients.journal()
            )
        verified = planned.verified if isinstance(planned, ConfigPlan) else ()
        return replace(super().context(access, planned), verified=verified)

    def remaining(self, access: ClusterAccess, run: Run, plan: Plan) -> Remaining:
        """Return the remaining steps; the stop of a connector whose offsets are not yet written is
        repeated.
        """
        return replace(super().remaining(access, run, plan), again=to_repeat(run, plan.steps))

    def undo(self, access: ClusterAccess, undone: Undone) -> Planned:
        """Return the plan that restores the former configurations."""
        current = {health.name: health for health in access.connectors()}
        passwords, stored = (
            partial(defined_passwords, access.calls),
            partial(stored_offsets, access.calls),
        )
        journal, run, plan = undone.journal, undone.run, undone.plan
        planned = plan_undo(journal, run, plan, current, passwords, stored, wait=undone.wait)
        if not any(isinstance(step, Change) for step in plan.steps):
            return planned
        note = (
            f"The offsets that it wrote stay; to undo those: connectctl offsets undo {run.id} "
            "--stop"
        )
        return replace(planned, notes=(*planned.notes, note))


@dataclass(frozen=True, kw_only=True)
class CreateRequest(ConfigRequest):
    """The connectors to create. ``entries`` are initial offsets of the only one."""

    connectors: tuple[Desired, ...]
    stopped: bool = False
    entries: Entries = ()


class CreateConnectors(ConfigOperation[CreateRequest]):
    """``connectors create``."""

    name = "connectors create"

    def plan(self, access: ClusterAccess, request: CreateRequest) -> Planned:
        """Return the plan. Raises ``Refused`` for a connector that exists."""
        connectors, entries = request.connectors, request.entries
        planner = self.planner(access, access.connectors(), wait=request.wait)
        refuse_existing(connectors, planner.current)
        outlook = ConfigOutlook(access, planner.current.values(), connectors)
        if request.carry:
            entries = outlook.carried(connectors, entries)

        def effect_of(connector: Desired) -> OffsetsOfChange:
            return outlook.of_new(connector, entries)

        validate_changed(access, planner, connectors, force=request.force)
        state = "STOPPED" if request.stopped else None
        desired = [replace(connector, state=state or connector.state) for connector in connectors]
        if by_topic(access, entries) and desired[0].state in (None, "RUNNING"):
            planner.create(desired[0], OffsetsOfChange(effect_of(desired[0]).sentences))
            return with_offsets_first(
                access.clients, planner.planned(), desired[0].name, entries, force=request.force
            )
        initial(access.calls, planner, desired, entries, effect_of, force=request.force)
        return planner.planned()


@dataclass(frozen=True, kw_only=True)
class ApplyRequest(ConfigRequest):
    """The connectors in files. ``prune`` selects the connectors to delete, None for none."""

    connectors: tuple[Desired, ...]
    prune: PruneRequest | None = None


class ApplyConnectors(ConfigOperation[ApplyRequest]):
    """``connectors apply``."""

    name = "connectors apply"

    def plan(self, access: ClusterAccess, request: ApplyRequest) -> Planned:
        """Return the plan that makes the connectors what their files declare."""
        planner = self.planner(access, access.connectors(), wait=request.wait)
        planner.declared = True
        directory = Directory.of(access, planner, request.connectors, request.prune)
        return plan_changes(access, planner, request.connectors, request, directory=directory)


@dataclass(frozen=True, kw_only=True)
class PatchRequest(ConfigRequest):
    """Properties of the connectors that ``pattern`` matches, None for one to remove."""

    pattern: str
    properties: Mapping[str, str | None]


class PatchConnectors(ConfigOperation[PatchRequest]):
    """``connectors patch``."""

    name = "connectors patch"

    def plan(self, access: ClusterAccess, request: PatchRequest) -> Planned:
        """Return the plan. Raises ``BadInput`` if no connector matches."""
        found = access.connectors()
        planner = self.planner(access, matching(found, [request.pattern]), wait=request.wait)
        properties = request.properties
        desired = [
            Desired(name, changed(health.connector.config, properties))
            for name, health in planner.current.items()
        ]
        return plan_changes(access, planner, desired, request, existing=found)


@dataclass(frozen=True, kw_only=True)
class EditRequest(ConfigRequest):
    """The connector as it was before the edit, and its edited configuration."""

    found: ConnectorHealth
    desired: Desired


class EditConnector(ConfigOperation[EditRequest]):
    """``connectors edit``."""

    name = "connectors edit"

    def plan(self, access: ClusterAccess, request: EditRequest) -> Planned:
        """Return the plan. Other connectors may have been created during the edit."""
        planner = self.planner(access, [request.found], wait=request.wait)
        return plan_changes(
            access, planner, [request.desired], request, existing=access.connectors()
        )


@dataclass(frozen=True, kw_only=True)
class RollbackRequest(ConfigRequest):
    """The revision ``to`` of a connector's configuration."""

    connector: str
    to: str


class RollbackConnector(ConfigOperation[RollbackRequest]):
    """``connectors rollback``."""

    name = "connectors rollback"

    def plan(self, access: ClusterAccess, request: RollbackRequest) -> Planned:
        """Return the plan. Raises ``BadInput`` for an unknown revision, and for a deletion."""
        name, to = request.connector, request.to
        found, unseen = versions_of(access, name, KINDS)
        config = found[index_of(found, name, to, unseen)].config
        if config is None:
            hint = f"Delete it: connectctl connectors delete {name}."
            raise BadInput(
                f"Revision {to} of {name} is its deletion", next_step=hint, code="unknown-revision"
            )
        planner = self.planner(access, access.connectors(), wait=request.wait)
        return plan_changes(access, planner, [Desired(name, config)], request)


@dataclass(frozen=True, kw_only=True)
class DeleteRequest:
    """Connectors by name or glob; ``with_offsets``: their source offsets are deleted first."""

    names: tuple[str, ...]
    with_offsets: bool = False
    wait: bool = False


class DeleteConnectors(ConfigOperation[DeleteRequest]):
    """``connectors delete``."""

    name = "connectors delete"

    def plan(self, access: ClusterAccess, request: DeleteRequest) -> Planned:
        """Return the plan, with the resources that remain."""
        planner = self.planner(access, access.connectors(request.names), wait=request.wait)
        with_offsets, clients = request.with_offsets, access.clients
        calls = (lambda: clients.transactions) if access.kafka is not None else None
        if with_offsets:
            check_removable(access.calls, planner.current.values())
        for name, health in planner.current.items():
            leaves = remaining_resources(
                access.calls, health.connector, access.group_id, calls, with_offsets=with_offsets
            )
            planner.delete(name, leaves, removal(health) if with_offsets else ())
        return planner.planned()


class UndoConnectors(ConfigOperation[None]):
    """The undo of changes of configurations and of states, as an operation of its own."""

    name = UNDO

    def plan_again(self, access: ClusterAccess, saved: Plan) -> Planned:
        """Return the saved plan, or for states the plan that undoes the same run now."""
        if not saved.steps or any(
            not isinstance(step, SetTargetState | Await) for step in saved.steps
        ):
            return super().plan_again(access, saved)
        journal = access.clients.journal(read_only=True)
        run = journal.get(str(saved.undoes))
        wait = any(isinstance(step, Await) for step in saved.steps)
        kinds = {kind.__name__: kind for kind in ChangeState.steps}
        return Planned(
            plan_former_states(access, Undone(journal, run, journal.plan_of(run, kinds), wait))
        )


KINDS = {kind.__name__: kind for kind in ConfigOperation.steps}
"""The steps that change configurations, by name."""


def plan_changes(
    access: ClusterAccess,
    planner: Planner,
    targets: Sequence[Desired],
    request: ConfigRequest,
    *,
    directory: Directory | None = None,
    existing: Collection[ConnectorHealth] | None = None,
) -> ConfigPlan:
    """Return the plan that creates missing connectors and changes the others.

    ``directory`` is a directory applied as a whole; ``existing`` are all connectors, if the planner
    does not have all.
    """
    validate_changed(access, planner, targets, force=request.force)
    connectors = planner.current.values() if existing is None else existing
    outlook = ConfigOutlook(
        access, connectors, targets, directory.pruned.delete if directory else ()
    )
    carry, force = request.carry, request.force
    for desired in targets:
        if desired.name in planner.current:
            former = planner.current[desired.name].connector
            effects = config_outlook.of_change(
                access.calls, former, desired.config, carry=carry, force=force
            )
            if desired.config != former.config:
                effects += config_outlook.of_others(
                    desired.name, desired.config, outlook.others(desired.name)
                )
            planner.change(desired, effects, force=force)
            continue
        new = replace(desired, state=desired.state or desired.kept_state)
        entries = outlook.carried([desired], ()) if carry and outlook.has_former(desired) else ()
        if entries:
            initial(
                access.calls,
                planner,
                [new],
                entries,
                partial(outlook.of_new, entries=entries),
                force=force,
            )
        else:
            planner.create(new, outlook.of_new(desired))
    if directory is not None:
        directory.finish(planner)
    return planner.planned()


def validate_changed(
    access: ClusterAccess, planner: Planner, targets: Sequence[Desired], *, force: bool
) -> None:
    """Validate changed configurations as ``validate`` does, and record their warnings and their
    secret properties.
    """
    found = planner.current
    differing = [
        desired
        for desired in targets
        if desired.name not in found or desired.config != dict(found[desired.name].connector.config)
    ]
    former: dict[str, Config] = {
        desired.name: found[desired.name].connector.config
        for desired in differing
        if desired.name in found
    }
    planner.passwords = {
        desired.name: defined_passwords(access.calls, desired.config)
        | defined_passwords(access.calls, former.get(desired.name, {}))
        | desired.hidden
        for desired in differing
    }
    if not differing:
        return
    configs = given_of(differing)
    known = observe_cluster(
        access.calls,
        configs,
        access.kafka,
        access.group,
        access.clients.named_topics,
        group_id=access.group_id or None,
        most=MOST,
        named_servers=access.clients.settings.named_servers,
    )
    planner.warnings = warnings_of(report(configs, Goal.NOW, known), force=force)
