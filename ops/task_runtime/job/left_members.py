"""Static members that a driver which was killed left in its consumer group: found while no driver
is alive, and removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import Step
from connectctl.ops.task_runtime.job.group_members import TaskMembers
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster
from connectctl.ops.task_runtime.spi.subscription import REGEX, TOPICS, subscription

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

OPERATION = "run members"


@dataclass(frozen=True)
class LeftMembers:
    """The instance ids of a connector's tasks in its consumer ``group`` that no live driver has.
    ``unknown`` says why that could not be seen, ``alive`` which driver is alive.
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
    """Those of the connector ``name`` of runs in the Connect group ``group_id``; None where it has
    no static members.

    ``members`` are those that are connected already. Raises nothing: what cannot be seen is
    unknown.
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
    """``look`` finds the left members of a connector, ``remove`` takes some out of the group and
    raises where it cannot.
    """

    look: Callable[[str], LeftMembers | None]
    remove: Callable[[str, Collection[str]], None]


@dataclass(frozen=True)
class RemoveMembers(Step[MembersContext]):
    """Take ``ids`` out of the consumer ``group``: those that are there when it is done, while no
    driver is alive.
    """

    subject: str
    group: str
    ids: tuple[str, ...]
    now: str = ""

    def describe(self) -> str:
        return (
            f"remove the static members {', '.join(self.ids)} from the consumer group {self.group}"
        )

    def apply(self, context: MembersContext) -> str | None:
        seen = seen_members(self.subject, context.look(self.subject))
        there = [id_ for id_ in self.ids if id_ in seen.ids]
        context.remove(self.subject, there)
        return f"{len(there)} removed" if there else "they had left"


def seen_members(name: str, left: LeftMembers | None) -> LeftMembers:
    """``left`` of ``name``. Raises ``BadInput`` for a connector without static members, and
    ``Refused`` where a driver is alive or what is left is unknown.
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
    look: Callable[[str], LeftMembers | None],
) -> Plan:
    """The plan that removes the left members of ``names``. Raises as ``seen_members`` does."""
    seen = {name: seen_members(name, look(name)) for name in names}
    steps = tuple(
        RemoveMembers(name, each.group, each.ids) for name, each in seen.items() if each.ids
    )
    noops = tuple(
        Noop(name, f"no member is left in {each.group}")
        for name, each in seen.items()
        if not each.ids
    )
    return Plan(OPERATION, cluster_id, steps, noops, group_id=group_id)
