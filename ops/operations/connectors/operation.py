"""The base of operations on connectors: their clients, and the context of their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.operations.connectors.access import ClusterAccess, observed_cluster
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.steps import restarts_instead
from connectctl.ops.operations.operation import Operation, Planned, R, Remaining

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.journal import Run
    from connectctl.ops.core.plan import Plan


class ConnectorOperation(Operation[R, ClusterAccess]):
    """An operation whose steps work with a ``StepContext``."""

    independent = True
    needs_group = True

    def access(self, clients: Clients, request: R) -> ClusterAccess:
        """Return the observed cluster. Raises ``BadInput`` for a group that does not exist."""
        return observed_cluster(clients)

    def access_for(self, clients: Clients, plan: Plan) -> ClusterAccess:
        """Return the observed cluster: it does not depend on the request."""
        return observed_cluster(clients)

    def remaining(self, access: ClusterAccess, run: Run, plan: Plan) -> Remaining:
        """Return what is left; what has failed since the run changed it is restarted, if it is to
        be RUNNING.
        """
        return Remaining(instead=restarts_instead(run, plan.steps))

    def context(self, access: ClusterAccess, planned: Planned) -> StepContext:
        """Return the context of the steps."""
        clients = access.clients
        return StepContext(
            access.calls, clients.timeout, facts=access.facts, journal=clients.journal()
        )
