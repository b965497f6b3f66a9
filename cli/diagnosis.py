"""The truth about a connector's fencing for ``connectors show``, and ``connectors cure`` of that and of lost tasks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from connectctl.cli import apply
from connectctl.cli.sources import directory_of
from connectctl.ops.errors import BadInput, ConnectctlError

if TYPE_CHECKING:
    from connectctl.cli.connectors import Cluster
    from connectctl.cli.context import Session
    from connectctl.cli.render import Output
    from connectctl.ops.edges.contract import KafkaReads
    from connectctl.ops.model.configtopic import ConfiguredConnector
    from connectctl.ops.model.connector import Connector
    from connectctl.ops.model.finding import Finding
    from connectctl.ops.model.taskcommits import Order


def truth(session: Session, cluster: Cluster, connector: Connector, found: ConfiguredConnector | None) -> list[Finding]:
    """What the coordinators say about failed tasks and about a round of fencing; nothing for a healthy connector."""
    from connectctl.ops.diagnosis import fencing
    from connectctl.ops.model.visibility import gap_findings

    if cluster.kafka is None or cluster.group is None or not fencing.needed(connector, found):
        return []
    try:
        seen = directory_of(session)
        case = fencing.Case(
            group=cluster.group.id,
            connector=connector,
            configured=found,
            written=_written(session, cluster.kafka),
            directory=seen.seen,
            workers=len(cluster.group.members),
        )
        return [*gap_findings(seen.gaps), *fencing.findings(session.transactions, case, time.time())]
    except ConnectctlError as e:
        return [fencing.not_known(connector.name, e)]


def _written(session: Session, kafka: KafkaReads) -> dict[str, float]:
    from connectctl.ops.diagnosis.fencing import times
    from connectctl.ops.discovery import look_for_topics

    choices = look_for_topics(kafka, kafka.group(session.group_id), session.named_topics, ("config", "status"))
    images = kafka.image([choice.topic for choice in choices.values() if choice.topic], patience=1.0)
    found: dict[str, float] = {}
    for image in images.values():
        found |= times(image.latest)
    return found


def cure(session: Session, cluster: Cluster, name: str, dry_run: bool, yes: bool, output: Output) -> None:
    """Plan and perform the cure of a connector."""
    from connectctl.cli import render
    from connectctl.ops import connectors
    from connectctl.ops.diagnosis.cure import LATER, CureHands, SetOverrides, check_policy, plan_cure
    from connectctl.ops.model.fencinground import ids_to_fence

    kafka, group = cluster.kafka, cluster.group
    if kafka is None or group is None:
        raise BadInput(
            "The cure needs the config topic, to see whether fencing is pending", next_step="Give --bootstrap-servers."
        )
    (judged,) = connectors.pick(connectors.judged(connectors.from_workers(cluster.calls), group), [name])
    if republished(session, cluster, kafka, judged.connector, dry_run, yes, output):
        return
    if judged.connector.type == "sink":
        raise BadInput(f"{name} is a sink connector, whose tasks are never fenced")

    def pending(connector: str) -> bool:
        topic = _config_topic(session, kafka)
        found = connectors.configured(kafka, topic, connector)
        # Where nothing is to be fenced the leader only writes its record, which is done when the tasks start.
        return found is not None and bool(
            ids_to_fence(found.task_count_record, found.task_count, found.fencing_pending)
        )

    configured = connectors.configured(kafka, _config_topic(session, kafka), name)
    plan = plan_cure(kafka.cluster_id(), judged.connector, configured, pending=pending(name))
    if any(isinstance(step, SetOverrides) for step in plan.steps):
        check_policy(cluster.calls, name, judged.connector.config)
        render.note(f"warning: {LATER}.", style="yellow")
    hands = CureHands(cluster.calls, session.timeout, pending=pending)
    apply.apply(session, plan, hands, dry_run=dry_run, yes=yes, output=output)


def republished(
    session: Session,
    cluster: Cluster,
    kafka: KafkaReads,
    connector: Connector,
    dry_run: bool,
    yes: bool,
    output: Output,
) -> bool:
    """Plan and perform the cure of a connector whose tasks compaction takes away; False where it is not so."""
    from connectctl.ops.connectors import facts_reader
    from connectctl.ops.diagnosis.republish import RepublishHands, orders, plan_republish

    topic = _config_topic(session, kafka)
    facts = facts_reader(kafka, kafka.group(session.group_id), session.named_topics)

    def order(name: str) -> Order | None:
        return next((each for each in orders(kafka, topic) if each.name == name), None)

    found = order(connector.name)
    if found is None:
        return False
    plan = plan_republish(kafka.cluster_id(), facts().of(connector) if facts else connector, found)
    hands = RepublishHands(cluster.calls, session.timeout, facts=facts, order=order)
    apply.apply(session, plan, hands, dry_run=dry_run, yes=yes, output=output)
    return True


def _config_topic(session: Session, kafka: KafkaReads) -> str:
    from connectctl.ops.discovery import find_internal_topics

    named = session.named_topics
    topic = (
        named.get("config")
        or find_internal_topics(kafka, kafka.group(session.group_id), named, needed=("config",)).config
    )
    assert topic is not None
    return topic
