"""Finds and removes the static members that a killed driver left in its consumer group, while no
driver is alive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.task_runtime.job.group_members import TaskMembers
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster
from connectctl.ops.task_runtime.spi.subscription import REGEX, TOPICS, subscription

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

OPERATION = "run members"


@dataclass(frozen=True)
class LeftMembers:
    """The instance ids of a connector's tasks in its consumer ``group`` that no live driver uses.
    ``unknown`` is the reason if they could not be read; ``alive`` is the driver that is alive.
    """

    group: str
    ids: tuple[str, ...] = ()
    session_ms: int = 0
    unknown: str | None = None
    alive: str | None = None


def left_members(
    kafka: Kafka,
    group_id: str,
    name: str,
    config: Mapping[str, str],
    members: TaskMembers | None = None,
) -> LeftMembers | None:
    """Return the left members of the connector ``name`` of runs in the Connect group ``group_id``;
    None if its tasks have no static members.

    ``members`` has an open connection to the group. Raises nothing: the result contains the reason
    if the members could not be read.
    """
    if not (config.get(TOPICS) or config.get(REGEX)):
        return None
    try:
        reads = subscription(name, config)
    except BadInput:
        return None
    if reads.consumer.dynamic:
        return None
    group = reads.consumer.group
    if target_cluster(config, kafka.bootstrap):
        return LeftMembers(group, unknown="its consumer group is in another Kafka cluster")
    try:
        holders = kafka.holders(group_id, name)
        ids = (
            ()
            if holders
            else tuple((members or TaskMembers(kafka, group_id, name, reads)).instance_ids())
        )
    except ConnectctlError as e:
        return LeftMembers(group, unknown=str(e))
    return LeftMembers(
        group, ids, reads.consumer.session_ms, alive=str(holders[0]) if holders else None
    )


@dataclass(kw_only=True)
class MembersContext(RunContext):
    """The context of a removal. ``left_members`` returns the left members of a connector.
    ``remove`` removes members from the group, or raises ``ConnectctlError``.
    """

    left_members: Callable[[str], LeftMembers | None]
    remove: Callable[[str, Collection[str]], None]


@dataclass(frozen=True)
class RemoveMembers(ResourceStep[MembersContext]):
    """Remove the members ``ids`` that are still in the consumer ``group``, if no driver lives."""

    group: str
    ids: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"remove the static members {', '.join(self.ids)} from the consumer group {self.group}"
        )

    def apply(self, context: MembersContext) -> str | None:
        found = seen_members(self.subject, context.left_members(self.subject))
        remaining = [id_ for id_ in self.ids if id_ in found.ids]
        context.remove(self.subject, remaining)
        return f"{len(remaining)} removed" if remaining else "they had left"


def seen_members(name: str, left: LeftMembers | None) -> LeftMembers:
    """Return ``left`` of the connector ``name``. Raises ``BadInput`` for a connector without static
    members, and ``Refused`` if a driver is alive or the left members are unknown.
    """
    if left is None:
        raise BadInput(
            f"The tasks of {name} have no static members",
            next_step="Name a sink or transform of runs.",
        )
    if left.unknown or left.alive:
        what = "cannot be seen" if left.unknown else "belong to its run"
        raise Refused(
            f"The members of {name} in the consumer group {left.group} {what}; nothing was removed",
            why=left.unknown or left.alive,
            code="group-member" if left.unknown else "in-use",
        )
    return left


def plan_removal(
    cluster_id: str,
    group_id: str,
    names: Collection[str],
    left_members: Callable[[str], LeftMembers | None],
) -> Plan:
    """Return the plan that removes the left members of ``names``. Raises as ``seen_members``."""
    found = {name: seen_members(name, left_members(name)) for name in names}
    steps = tuple(
        RemoveMembers(name, each.group, each.ids) for name, each in found.items() if each.ids
    )
    noops = tuple(
        Noop(name, f"no member is left in {each.group}")
        for name, each in found.items()
        if not each.ids
    )
    return Plan(OPERATION, cluster_id, steps, noops, group_id=group_id)
