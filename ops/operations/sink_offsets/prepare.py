"""Reads the current state of the groups of a change of committed offsets."""

from __future__ import annotations

from collections.abc import Sequence

from connectctl.ops.clients.protocols import GroupOffsetWrites
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.operations.offsets.prepare import OffsetAccess, runs_of
from connectctl.ops.operations.sink_offsets.changes import GroupTarget
from connectctl.ops.operations.sink_offsets.observe import (
    offsets_of_connector,
    offsets_of_group,
    sinks_among,
)
from connectctl.ops.operations.sink_offsets.planning import GroupState


def observe_groups(
    access: OffsetAccess, groups: GroupOffsetWrites, targets: Sequence[GroupTarget]
) -> list[GroupState]:
    """Return the current state of the groups. Raises ``BadInput`` for a name that is not a sink
    connector.
    """
    kafka, group_id = access.sources.kafka, access.group_id

    def of_group(target: GroupTarget) -> GroupState:
        return GroupState(
            offsets_of_group(groups, kafka, target.name, target.change.topics, stable=True)
        )

    named = [target.name for target in targets if target.connector]
    if not named:
        return list(map(of_group, targets))
    facts = access.sources.facts(group_id)
    if facts.configured is None:
        raise ConnectctlError(
            "The config topic could not be read to its end", why="an open transaction blocks it"
        )
    configured = {connector.name: connector for connector in sinks_among(named, facts.configured)}
    states = access.states(lambda: facts, named)
    version, up = access.sources.workers().version, bool(access.group.members)

    def of_connector(target: GroupTarget) -> GroupState:
        connector = configured[target.name]
        offsets = offsets_of_connector(groups, kafka, connector, target.change.topics, stable=True)
        holders, _ = runs_of(access.sources, group_id, target.name)
        return GroupState(offsets, states.get(target.name), up, version, holders)

    return [of_connector(target) if target.connector else of_group(target) for target in targets]
