"""The checks of preflight for the cluster of a command's clients."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from connectctl.ops.checks.acls import principals as acl_principals
from connectctl.ops.checks.acls.principals import Principals
from connectctl.ops.checks.context import Edges, observe_cluster
from connectctl.ops.checks.runner import CheckRun
from connectctl.ops.clients.protocols import Clients
from connectctl.ops.config import paths
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.tasks_max.observe import Release
from connectctl.ops.operations.upgrade.observe import ClusterReader
from connectctl.ops.operations.upgrade.roll_state import RollState, roll_state


def check_run(
    clients: Clients,
    connectors: Sequence[str],
    goal: Goal,
    principals: Principals | None = None,
    *,
    acls: bool = False,
    release: Release | None = None,
) -> CheckRun:
    """Return the checks of the cluster; ``acls`` also without a named principal."""
    given = principals or acl_principals.Principals()
    group = clients.group()
    scene = observe_cluster(edges_of(clients, group), group, clients.named_topics, connectors)
    known = any(acl_principals.identity(each.config) for each in scene.sources)
    return CheckRun(scene, goal, given if principals or acls or known else None, release)


def edges_of(clients: Clients, group: ConnectGroup) -> Edges:
    """Return the clients for preflight."""
    driver = clients.driver()

    def configured(worker: str, name: str) -> str | None:
        with suppress(ConnectctlError):
            found = driver.configured(worker, name)
            return found.value if found else None
        return None

    return Edges(
        clients.kafka,
        clients.connect_to(group),
        lambda: clients.transactions,
        lambda: clients.brokers,
        lambda: clients.acls,
        clients.other_acls,
        clients.other_kafka,
        str(clients.settings.get("bootstrap_servers")),
        configured,
        clients.settings.named_servers,
        lambda view: _roll(clients, view),
    )


def _roll(clients: Clients, view: ClusterView) -> RollState:
    """Return how far a rolling change of the workers is; a journal that does not exist is not
    created.
    """
    directory = paths.journal_directory()
    journal = Journal(directory) if (directory / "journal.db").exists() else None
    calls = clients.connect_to(view.group)
    reader = ClusterReader(
        clients.kafka, calls, view.group.id, clients.transactions, clients.driver()
    )
    return roll_state(reader, journal, view.group, view.workers)
