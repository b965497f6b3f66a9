"""What a change of source offsets starts from: the clients it uses, and each connector as it is now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.config import paths
from connectctl.ops.connect.connector import State, state_for_plan
from connectctl.ops.connect.rest_membership import NotAMember
from connectctl.ops.core.errors import BadInput, NotAuthorized
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.observe import Facts, see
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.offsets import changes
from connectctl.ops.operations.offsets.changes import MergeOffsets, ResetOffsets, RestoreBackup
from connectctl.ops.operations.offsets.effective_offsets import check_names
from connectctl.ops.operations.offsets.engine import Asked, Engine, View
from connectctl.ops.operations.offsets.incomplete import check_seen
from connectctl.ops.operations.offsets.planning import ConnectorState, refuse
from connectctl.ops.operations.offsets.purpose import AllKeys
from connectctl.ops.operations.offsets.record_changes import effective_entries
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.steps import Change, asked_by
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.offsets.task_producers import producers_of

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.offsets.observe import Sources


@dataclass(frozen=True)
class OffsetAccess:
    """The clients of a change, and what its engine has read with them."""

    sources: Sources
    calls: ConnectCalls
    group: ConnectGroup
    named_topics: Mapping[str, str | None]
    engine: Engine
    view: View | None = None

    @property
    def group_id(self) -> str:
        return self.group.id

    def states(self, read: Callable[[], Facts], names: Collection[str]) -> dict[str, State]:
        """The states for a plan of those ``names`` that are configured; of none where the group has no workers.

        ``read`` gives the facts about them. Raises ``Refused`` where the addresses in use are not the group's workers, and
        where workers and config topic do not agree.
        """
        if not self.group.members:
            return {}
        listing = see(self.calls, self.sources.kafka, self.group, self.named_topics, read)
        if isinstance(listing.blind, NotAMember):
            raise listing.blind
        found = [each for each in listing.connectors if each.name in names]
        refuse_doubtful(each.connector for each in found)
        return {each.name: state_for_plan(each.connector, each.verdict) for each in found}


def observe_targets(access: OffsetAccess, targets: Sequence[OffsetTarget]) -> tuple[OffsetAccess, list[ConnectorState]]:
    """The connectors as they are now, and the access with what was read. Raises ``BadInput`` for unknown ones."""
    sources, group_id = access.sources, access.group_id
    states = access.states(partial(sources.facts, group_id), [target.name for target in targets])
    workers = sources.workers() if any(target.via == "rest" for target in targets) else WorkerFacts()
    running = {name for name, state in states.items() if state is State.RUNNING}
    view = access.engine.view(sources, [_asked(target, running) for target in targets])
    configs = view.snapshot.configs.connectors if view.snapshot.configs else {}
    found = []
    for target in targets:
        name, configured = target.name, configs.get(target.name)
        places = tuple(view.places[name])
        is_sink = configured is not None and configured.looks_like == "sink"
        if is_sink or not (target.new or configured or any(at.records for at in places)):
            check_names(name, view.snapshot)
        config = configured.config if configured else {}
        producers, _ = producers_of(sources, group_id, name)
        holders, unseen = runs_of(sources, group_id, name)
        up = bool(access.group.members)
        state, silent = states.get(name), access.group.without_rest
        found.append(ConnectorState(name, places, state, up, config, workers, producers, holders, unseen, silent))
    return replace(access, view=view), found


def _asked(target: OffsetTarget, running: Collection[str]) -> Asked:
    if isinstance(target.purpose, RestoreBackup):
        return asked_by(target.purpose, Journal(paths.journal_directory()), target.topic)
    if isinstance(target.purpose, MergeOffsets):
        return Asked(replace(target.purpose, running=target.name in running), target.topic)
    return Asked(target.purpose or AllKeys(target.name), target.topic)


def runs_of(sources: Sources, group_id: str, connector: str) -> tuple[tuple[Holder, ...], NotAuthorized | None]:
    """The runs of connectctl that have the connector, and why there may be more."""
    try:
        return sources.kafka.holders(group_id, connector), None
    except NotAuthorized as e:
        return (), e


def entries_to_copy(origin: ConnectorState) -> tuple[tuple[str, str], ...]:
    """Return the effective offsets of a connector, all of them. Raises ``BadInput`` where it has none.

    Raises as a plan does where not all can be read.
    """
    check_seen(origin.places)
    refuse(at.reason for at in origin.places if at.reason)
    entries = effective_entries(origin.places, running=origin.running)
    if not entries:
        raise BadInput(f"{origin.name} has no source offsets to copy", next_step="See connectctl offsets show.")
    return entries


def check_workers(plan: Plan, access: OffsetAccess) -> None:
    """Ask a worker, if steps of the plan do. Raises its error: a run would begin, and end at its first step."""
    if access.group.members and any(isinstance(step, SetTargetState) for step in plan.steps):
        access.calls.get("/connectors")


def targets_of(saved: Plan) -> tuple[list[OffsetTarget], str | None]:
    """What a saved plan changes, and the first connector of which it resets all offsets."""
    requests = {step.subject: changes.from_data(step.request) for step in saved.steps if isinstance(step, Change)}
    targets = [
        OffsetTarget(
            step.subject,
            lambda connector: requests[connector.name],
            step.dedicated_topic,
            new=True,
            via=step.via,
            purpose=request if isinstance(request, MergeOffsets | RestoreBackup) else None,
        )
        for step in saved.steps
        if isinstance(step, Change) and (request := requests[step.subject])
    ]
    resets = (each for each in requests.values() if isinstance(each, ResetOffsets))
    return targets, next((each.connector for each in resets if each.partitions is None), None)
