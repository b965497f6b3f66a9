"""``run status --remove-members`` as an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.operations.operation import Operation, Planned
from connectctl.ops.task_runtime.job.left_members import OPERATION, MembersContext, RemoveMembers

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.job.internal_topics import RunClients


@dataclass(frozen=True)
class MembersAccess:
    """The clients of the group's runs."""

    scene: RunClients
    group_id: str

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        return self.scene.kafka.cluster_id()


class RemoveLeftMembers(Operation[tuple[str, ...], MembersAccess]):
    """Removes the group members that killed runs of the named connectors left."""

    name = OPERATION
    command = "run status NAME --remove-members"
    steps = (RemoveMembers,)
    irreversible = "a removed member joins again only with the run that it belongs to"

    def access(self, clients: Clients, request: tuple[str, ...]) -> MembersAccess:
        """Return the clients."""
        from connectctl.ops.task_runtime.job.run_clients import run_clients

        return MembersAccess(run_clients(clients), clients.group_id)

    def plan(self, access: MembersAccess, request: tuple[str, ...]) -> Planned:
        """Return the plan. Raises ``Refused`` while a run is alive, or if that is unknown."""
        from connectctl.ops.task_runtime.job.status_report import planned_removal

        return Planned(planned_removal(access.scene, access.group_id, request))

    def request_of(self, plan: Plan) -> tuple[str, ...]:
        """Return the connectors of the plan."""
        return plan.resources

    def context(self, access: MembersAccess, planned: Planned) -> MembersContext:
        """Return the context of the steps."""
        from connectctl.ops.task_runtime.job.status_report import members_context

        return members_context(access.scene, access.group_id)
