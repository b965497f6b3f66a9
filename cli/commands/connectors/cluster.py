"""The clients of ``connectctl connectors``, and the execution of its plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.ops.core.errors import ConnectctlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.connectors.access import ConnectorAccess
    from connectctl.ops.operations.connectors.context import StepContext
    from connectctl.ops.operations.connectors.observe import ConnectorListing


def cluster_of(session: Session) -> ConnectorAccess:
    """Return the clients for the settings."""
    from connectctl.ops.operations.connectors.access import ConnectorAccess

    settings = session.settings
    if settings.get("rest") and not settings.get("bootstrap_servers"):
        return ConnectorAccess(session.connect_to(None), None, None)
    group = session.group()
    return ConnectorAccess(session.connect_to(group), session.kafka, group)


def observed(session: Session) -> ConnectorAccess:
    """Return the cluster with the data for its connectors' states. Raises ``BadInput`` for a group that does not exist."""
    from connectctl.ops.operations.cluster.connect_groups import is_unknown, unknown_group
    from connectctl.ops.operations.connectors import observe

    cluster = cluster_of(session)
    if cluster.group is not None and is_unknown(cluster.group):
        raise unknown_group(cluster.group, session.transactions.connect_groups)
    if cluster.kafka is not None and cluster.group is not None:
        return replace(cluster, facts=observe.facts_reader(cluster.kafka, cluster.group, session.named_topics))
    return cluster


def listing_of(session: Session, cluster: ConnectorAccess) -> ConnectorListing:
    """Return the connectors with how they were seen. Raises ``BadInput`` for a group that does not exist."""
    from connectctl.ops.operations.cluster.connect_groups import is_unknown, unknown_group
    from connectctl.ops.operations.connectors.observe import see

    unknown = cluster.group if cluster.group is not None and is_unknown(cluster.group) else None
    try:
        seen = see(cluster.calls, cluster.kafka, cluster.group, session.named_topics)
    except ConnectctlError as e:
        if unknown is None:
            raise
        raise unknown_group(unknown, session.transactions.connect_groups) from e
    if unknown is not None and not seen.connectors:
        raise unknown_group(unknown, session.transactions.connect_groups)
    return seen


def context_of(session: Session, cluster: ConnectorAccess) -> StepContext:
    from connectctl.ops.operations.connectors.context import StepContext

    return StepContext(cluster.calls, session.timeout, facts=cluster.facts, journal=apply.open_journal())


def perform(
    session: Session,
    cluster: ConnectorAccess,
    plan: Plan,
    options: ApplyOptions,
    begin: Callable[[Journal], None] | None = None,
    verified: tuple[str, ...] = (),
) -> None:
    """Print the plan, or confirm and execute it; warns if the cluster is not locked. ``begin``: see ``apply.apply``;
    ``verified``: see ``StepContext``.
    """
    if plan.steps and not plan.group_id and not options.dry_run:
        terminal.note(
            "warning: the cluster is not locked (its brokers are not given); make sure that nobody else changes it",
            style="yellow",
        )
    context = replace(context_of(session, cluster), verified=verified)
    apply.apply(session, plan, context, options, begin=begin)
