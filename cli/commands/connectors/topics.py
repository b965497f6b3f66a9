"""What ``connectctl connectors topics`` shows and forgets: the topics that its tasks have used (KIP-558)."""

from __future__ import annotations

from connectctl.cli.commands.connectors.cluster import cluster_of, observed, perform
from connectctl.cli.options import ApplyOptions
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.operations.connectors import tracked_topics


def show(session: Session, connector: str, output: Output) -> None:
    """Print the active topics of ``connector``. Raises ``BadInput`` for one that is not there."""
    found = tracked_topics.read(cluster_of(session).calls, connector)
    data = {"connector": connector, "topics": [{"name": topic} for topic in found]}
    empty = f"{connector} has used no topic since it was created, or since its active topics were reset."
    terminal.emit(
        "ConnectorTopics", data, output, lambda wide: terminal.table(["TOPIC"], [[t] for t in found], empty=empty)
    )


def reset(session: Session, connector: str, options: ApplyOptions) -> None:
    """Forget the active topics of ``connector``, after a question."""
    cluster = observed(session)
    found = tracked_topics.read(cluster.calls, connector)
    plan = tracked_topics.plan_reset(cluster.cluster_id(), connector, found, cluster.group_id)
    perform(session, cluster, plan, options)
