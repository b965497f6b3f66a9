"""The clients of ``connectctl connectors``, and how its plans are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.cli import apply
from connectctl.cli.output import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from connectctl.cli.output.terminal import Output
    from connectctl.cli.session import Session
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.connectors.context import StepContext
    from connectctl.ops.operations.connectors.observe import ConnectorHealth, Facts


@dataclass
class Cluster:
    """The edges of a command. Without ``--bootstrap-servers`` but with ``--rest`` only the workers are asked."""

    calls: ConnectCalls
    kafka: KafkaReads | None
    group: ConnectGroup | None
    facts: Callable[[], Facts] | None = None


def cluster_of(session: Session) -> Cluster:
    """The clients that the settings ask for."""
    settings = session.settings
    if settings.get("rest") and not settings.get("bootstrap_servers"):
        return Cluster(session.connect_to(None), None, None)
    kafka = session.kafka
    group = session.group()
    return Cluster(session.connect_to(group), kafka, group)


def chosen(cluster: Cluster, names: Sequence[str] | None) -> tuple[ConnectorHealth, ...]:
    """The connectors that are named, or every one, looked at now. Raises ``BadInput`` for those that are not there."""
    from connectctl.ops.operations.connectors import observe

    facts = cluster.facts() if cluster.facts else observe.Facts()
    found = observe.with_health(map(facts.of, observe.from_workers(cluster.calls)), cluster.group)
    return found if names is None else observe.select(found, observe.matching(found, names))


def observed(session: Session) -> Cluster:
    """The cluster with what decides on the state of its connectors. Raises ``BadInput`` for a group that does not exist."""
    from connectctl.ops.operations.cluster.connect_groups import is_unknown, unknown_group
    from connectctl.ops.operations.connectors import observe

    cluster = cluster_of(session)
    if cluster.group is not None and is_unknown(cluster.group):
        raise unknown_group(cluster.group, session.transactions.connect_groups)
    if cluster.kafka is not None and cluster.group is not None:
        cluster.facts = observe.facts_reader(cluster.kafka, cluster.group, session.named_topics)
    return cluster


def cluster_id_of(cluster: Cluster) -> str:
    """The Kafka cluster that the workers use."""
    if cluster.kafka is not None:
        return cluster.kafka.cluster_id()
    return str(cluster.calls.get("/").get("kafka_cluster_id"))


def group_id_of(cluster: Cluster) -> str:
    """The workers' group, empty where only workers are asked, who do not tell it."""
    return cluster.group.id if cluster.group is not None else ""


def context_of(session: Session, cluster: Cluster) -> StepContext:
    """What the steps work with."""
    from connectctl.ops.operations.connectors.context import StepContext

    return StepContext(cluster.calls, session.timeout, facts=cluster.facts, journal=apply.open_journal())


def perform(
    session: Session,
    cluster: Cluster,
    plan: Plan,
    dry_run: bool,
    yes: bool,
    output: Output,
    begin: Callable[[Journal], None] | None = None,
) -> None:
    """Print the plan, or ask and carry it out; says so where the cluster is not locked. ``begin``: see ``apply.apply``."""
    if plan.steps and not plan.group_id and not dry_run:
        terminal.note(
            "warning: the cluster is not locked (its brokers are not given); make sure that nobody else changes it",
            style="yellow",
        )
    context = context_of(session, cluster)
    apply.apply(session, plan, context, dry_run=dry_run, yes=yes, output=output, begin=begin)
