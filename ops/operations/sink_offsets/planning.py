"""Plans changes of groups' offsets: steps, or ``Refused`` with all reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import State, at_rest_for_plan
from connectctl.ops.connect.release import CHANGES_OFFSETS, release_of
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.steps import while_stopped
from connectctl.ops.operations.sink_offsets.changes import (
    MOST_MEMBERS,
    GroupChange,
    GroupOffsets,
    OffsetWrite,
    confirmed,
    decide,
    obstacles,
    offset_json,
    partition_json,
)
from connectctl.ops.operations.sink_offsets.steps import BackupGroup, ChangeGroupOffsets

if TYPE_CHECKING:
    from connectctl.ops.connect.run_presence import Holder


@dataclass(frozen=True)
class GroupState:
    """A group with the facts that determine whether its offsets may be changed, and by which
    interface.

    ``state`` is the connector's state from ``state_for_plan``, None without a connector.
    ``workers_up`` is False if the Connect group has no workers. ``version`` is the version of the
    workers, None if none answered. ``holders`` are the connectctl runs that run the connector.
    """

    offsets: GroupOffsets
    state: State | None = None
    workers_up: bool = False
    version: str | None = None
    holders: tuple[Holder, ...] = ()

    @property
    def at_rest(self) -> bool:
        """Return whether no worker runs a task of it, according to ``state``."""
        return at_rest_for_plan(self.state, workers_up=self.workers_up)

    def via(self, requested: str | None, *, stop: bool) -> str:
        """Return ``requested``; by default ``rest`` if the workers can change offsets, because the
        connector validates them.
        """
        if requested is not None:
            return requested
        release = release_of(self.version)
        stopped = self.workers_up and (
            self.state is State.STOPPED or (stop and self.state is not None)
        )
        return "rest" if stopped and release is not None and release >= CHANGES_OFFSETS else "kafka"


@dataclass(frozen=True)
class GroupChanges:
    """A plan, the offsets that it would write by group, and its warnings."""

    plan: Plan
    writes: tuple[tuple[str, OffsetWrite], ...]
    warnings: tuple[str, ...] = ()

    def preview(self) -> list[dict[str, Any]]:
        """Return each offset to commit with its former value, as JSON."""
        return [
            {
                "group": group,
                "partition": partition_json(write.partition),
                "before": offset_json(write.before),
                "after": offset_json(write.after),
            }
            for group, write in self.writes
        ]


def plan_groups(
    operation: str,
    cluster_id: str,
    group_id: str,
    pairs: Sequence[tuple[GroupState, GroupChange]],
    *,
    stop: bool = False,
    via: str | None = None,
    undoes: str | None = None,
) -> GroupChanges:
    """Return the plan for all requests. Raises ``Refused`` with all reasons; ``group_id`` is the
    group of the workers.
    """
    decided = [(state, change, decide(change, state.offsets.committed)) for state, change in pairs]
    # A group without writes is planned as well if its tasks or members may still commit.
    needed = [
        decision
        for decision in decided
        if decision[2] or not decision[0].at_rest or decision[0].offsets.members
    ]
    reasons = [
        reason
        for state, change, writes in needed
        for reason in (
            *_not_at_rest(state, stop),
            *_beyond_workers(state, via),
            *_out_of_range(state, change, writes),
            *obstacles(change, writes, state.offsets.group.id),
        )
    ]
    if reasons:
        raise Refused(
            "Offset change refused", why="; ".join(dict.fromkeys(reasons)), code="refused"
        )
    steps: list[Any] = []
    for state, change, writes in needed:
        steps += _steps(operation, state, change, writes, state.via(via, stop=stop), undoes)
    return GroupChanges(
        Plan(operation, cluster_id, tuple(steps), group_id=group_id),
        tuple((state.offsets.group.id, write) for state, _, writes in decided for write in writes),
        tuple(warning for state, _, writes in decided for warning in _warnings(state, writes)),
    )


def _not_at_rest(state: GroupState, stop: bool) -> Iterator[str]:
    found = state.offsets
    if not state.at_rest and not stop:
        yield (
            f"{found.name} is {state.state}: stop it first (connectctl connectors stop "
            f"{found.name}), or use --stop"
        )
    yield from _in_use(state)
    if state.holders:
        runs = "; ".join(map(str, state.holders))
        yield f"a connectctl run is running {found.name} ({runs}): stop it first with SIGTERM"


def _in_use(state: GroupState) -> Iterator[str]:
    found = state.offsets
    if state.at_rest and found.members:
        yield (
            f"the group {found.group.id} has members ({some_of(found.members, MOST_MEMBERS)}): "
            "its offsets are changed only while it has no members"
        )


def _beyond_workers(state: GroupState, via: str | None) -> Iterator[str]:
    if via != "rest":
        return
    release = release_of(state.version)
    if not state.offsets.connector:
        yield (
            f"workers change offsets of connectors only, and {state.offsets.name} is a group: "
            "omit --via rest"
        )
    elif not state.workers_up or state.version is None:
        yield "no worker answers: omit --via rest"
    elif release is None or release < CHANGES_OFFSETS:
        yield f"the workers are {state.version}, and changing offsets requires 3.6: omit --via rest"


def _out_of_range(
    state: GroupState, change: GroupChange, writes: Sequence[OffsetWrite]
) -> Iterator[str]:
    for topic in sorted(state.offsets.unseen):
        if change.exact or any(write.partition.topic == topic for write in writes):
            yield (
                f"what is committed of the topic {topic} is unknown, because it may not be "
                "described"
            )
    for write in writes:
        if write.after is None or write.partition.topic in state.offsets.unseen:
            continue
        known = state.offsets.range_of(write.partition)
        if known is None:
            yield f"partition not found: {write.partition}"
        elif write.after > known.end and not change.exact:
            yield (
                f"{write.partition} ends at {known.end}, and a task that begins at {write.after} "
                "would not find that offset, and would follow auto.offset.reset"
            )


def _warnings(state: GroupState, writes: Sequence[OffsetWrite]) -> Iterator[str]:
    for write in writes:
        known = state.offsets.range_of(write.partition)
        if (
            write.after is not None
            and known is not None
            and not known.first <= write.after <= known.end
        ):
            yield (
                f"{write.partition} has offsets from {known.first} to {known.end}: a task that "
                f"begins at {write.after} follows auto.offset.reset"
            )


def _steps(
    operation: str,
    state: GroupState,
    change: GroupChange,
    writes: tuple[OffsetWrite, ...],
    via: str,
    undoes: str | None,
) -> list[Any]:
    name, group = state.offsets.name, state.offsets.group.id
    was = None if state.at_rest else state.state
    change_step = ChangeGroupOffsets(
        name,
        group,
        change,
        _summary(operation, state, writes, via, undoes),
        confirmed(writes) if was is None else None,
        via,
        state.offsets.connector,
        undoes,
        None if was is None else str(was),
    )
    return while_stopped(name, was, [BackupGroup(name, group), change_step])


def _summary(
    operation: str, state: GroupState, writes: Sequence[OffsetWrite], via: str, undoes: str | None
) -> str:
    verb = "restore" if undoes else operation.rpartition(" ")[2]
    deleted = sum(write.after is None for write in writes)
    count = [
        f"commit {len(writes) - deleted}" if len(writes) > deleted else "",
        f"delete {deleted}" if deleted else "",
    ]
    what = " and ".join(filter(None, count)) or "nothing as of now"
    way = " through the workers" if via == "rest" else ""
    origin = f" from run {undoes}" if undoes else ""
    return f"{verb} offsets of the group {state.offsets.group.id}{origin}: {what}{way}"
