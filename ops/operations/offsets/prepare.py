"""The clients of a change of source offsets, and the current state of its connectors."""

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
from connectctl.ops.operations.connectors.observe import Facts, connector_listing
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.offsets import changes
from connectctl.ops.operations.offsets.changes import (
    MergeOffsets,
    ResetOffsets,
    RestoreBackup,
)
from connectctl.ops.operations.offsets.effective_offsets import check_names
from connectctl.ops.operations.offsets.engine import AllKeys, Engine, ReadRequest, View
from connectctl.ops.operations.offsets.incomplete import check_readable
from connectctl.ops.operations.offsets.planning import ConnectorState, refuse
from connectctl.ops.operations.offsets.record_changes import effective_entries
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.steps import Change, read_request
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
    """The clients of a change, and the view that its engine has read with them."""

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
        """Return the states of the configured connectors in ``names`` for a plan; none if the group
        has no workers.

        ``read`` reads the facts about them. Raises ``Refused`` if the addresses are not the group's
        workers, and if workers and config topic contradict each other.
        """
        if not self.group.members:
            return {}
        listing = connector_listing(
            self.calls, self.sources.kafka, self.group, self.named_topics, read
        )
        if isinstance(listing.blind, NotAMember):
            raise listing.blind
        found = [health for health in listing.connectors if health.name in names]
        refuse_doubtful(health.connector for health in found)
        return {health.name: state_for_plan(health.connector, health.verdict) for health in found}


def observe_targets(
    access: OffsetAccess, targets: Sequence[OffsetTarget]
) -> tuple[OffsetAccess, list[ConnectorState]]:
    """Return ``access`` with the view that was read, and the state of each connector. Raises
    ``BadInput`` for unknown ones.
    """
    sources, group_id = access.sources, access.group_id
    target_states = access.states(
        partial(sources.facts, group_id), [target.name for target in targets]
    )
    workers = (
        sources.workers() if any(target.via == "rest" for target in targets) else WorkerFacts()
    )
    running = {name for name, state in target_states.items() if state is State.RUNNING}
    view = access.engine.view(sources, [_read_request(target, running) for target in targets])
    configs = view.snapshot.configs.connectors if view.snapshot.configs else {}
    found = []
    for target in targets:
        name, configured = target.name, configs.get(target.name)
        topic_states = tuple(view.topic_states[name])
        is_sink = configured is not None and configured.looks_like == "sink"
        if is_sink or not (
            target.new or configured or any(topic_state.records for topic_state in topic_states)
        ):
            check_names(name, view.snapshot)
        config = configured.config if configured else {}
        producers, _ = producers_of(sources, group_id, name)
        holders, unseen = runs_of(sources, group_id, name)
        up = bool(access.group.members)
        state, silent = target_states.get(name), access.group.without_rest
        found.append(
            ConnectorState(
                name, topic_states, state, up, config, workers, producers, holders, unseen, silent
            )
        )
    return replace(access, view=view), found


def _read_request(target: OffsetTarget, running: Collection[str]) -> ReadRequest:
    if isinstance(target.purpose, RestoreBackup):
        return read_request(target.purpose, Journal(paths.journal_directory()), target.topic)
    if isinstance(target.purpose, MergeOffsets):
        return ReadRequest(replace(target.purpose, running=target.name in running), target.topic)
    return ReadRequest(target.purpose or AllKeys(target.name), target.topic)


def runs_of(
    sources: Sources, group_id: str, connector: str
) -> tuple[tuple[Holder, ...], NotAuthorized | None]:
    """Return the runs of connectctl that run the connector, and the error if there may be more."""
    try:
        return sources.kafka.holders(group_id, connector), None
    except NotAuthorized as e:
        return (), e


def entries_to_copy(origin: ConnectorState) -> tuple[tuple[str, str], ...]:
    """Return all effective offsets of a connector. Raises ``BadInput`` if it has none.

    Raises like a plan if the offsets cannot all be read.
    """
    check_readable(origin.topic_states)
    refuse(state.reason for state in origin.topic_states if state.reason)
    entries = effective_entries(origin.topic_states, running=origin.running)
    if not entries:
        raise BadInput(
            f"{origin.name} has no source offsets to copy", next_step="See connectctl offsets show."
        )
    return entries


def check_workers(plan: Plan, access: OffsetAccess) -> None:
    """Send a request to a worker if steps of the plan send one. Raises its error, which would end a
    run at its first step.
    """
    if access.group.members and any(isinstance(step, SetTargetState) for step in plan.steps):
        access.calls.get("/connectors")


def targets_of(saved: Plan) -> tuple[list[OffsetTarget], str | None]:
    """Return the targets of a saved plan, and the first connector of which it resets all
    offsets.
    """
    requests = {
        step.subject: changes.from_data(step.request)
        for step in saved.steps
        if isinstance(step, Change)
    }
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
    resets = (request for request in requests.values() if isinstance(request, ResetOffsets))
    return targets, next(
        (request.connector for request in resets if request.partitions is None), None
    )
