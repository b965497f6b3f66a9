"""Diagnosis of a connector's fencing for ``connectors show``; ``connectors cure`` for fencing and for lost tasks."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.cli.transaction_sources import directory_of
from connectctl.ops.clients.protocols import KafkaReads
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.task_config_commits import TaskConfigOrder
from connectctl.ops.connect.zombie_fencing import ids_to_fence
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.visibility import gap_findings
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics, look_for_topics
from connectctl.ops.operations.connectors import fencing_diagnosis, observe
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.cure import LATER, CureContext, SetOverrides, check_policy, plan_cure
from connectctl.ops.operations.connectors.fencing_diagnosis import times
from connectctl.ops.operations.connectors.observe import facts_reader
from connectctl.ops.operations.connectors.republish import AwaitPublished, orders, plan_republish


def truth(
    session: Session, cluster: ConnectorAccess, connector: Connector, found: ConfiguredConnector | None
) -> list[Finding]:
    """Return the coordinators' findings on failed tasks and rounds of fencing; none for a healthy connector."""
    if cluster.kafka is None or cluster.group is None or not fencing_diagnosis.needed(connector, found):
        return []
    try:
        seen = directory_of(session)
        case = fencing_diagnosis.Case(
            group=cluster.group.id,
            connector=connector,
            configured=found,
            written=_written(session, cluster.kafka),
            directory=seen.seen,
            workers=len(cluster.group.members),
        )
        return [*gap_findings(seen.gaps), *fencing_diagnosis.findings(session.transactions, case, time.time())]
    except ConnectctlError as e:
        return [fencing_diagnosis.not_known(connector.name, e)]


def _written(session: Session, kafka: KafkaReads) -> dict[str, float]:
    choices = look_for_topics(kafka, kafka.group(session.group_id), session.named_topics, ("config", "status"))
    images = kafka.image([choice.topic for choice in choices.values() if choice.topic], patience=1.0)
    found: dict[str, float] = {}
    for image in images.values():
        found |= times(image.latest)
    return found


def planned(session: Session, cluster: ConnectorAccess, name: str) -> Plan:
    """Return the plan that cures a connector; warns of later requirements."""
    kafka, group = _sources(cluster)
    cluster = replace(cluster, facts=facts_reader(kafka, group, session.named_topics))
    health = observe.the_one(cluster.connectors(), name)
    refuse_doubtful([health.connector])
    name = health.name
    plan = republishing(session, kafka, health.connector) or _cure(session, kafka, health.connector)
    if any(isinstance(step, SetOverrides) for step in plan.steps):
        check_policy(cluster.calls, name, health.connector.config)
        terminal.note(f"warning: {LATER}.", style="yellow")
    return plan


def _sources(cluster: ConnectorAccess) -> tuple[KafkaReads, ConnectGroup]:
    if cluster.kafka is None or cluster.group is None:
        raise BadInput(
            "connectors cure requires the config topic, to check whether fencing is pending",
            next_step="Give --bootstrap-servers.",
        )
    return cluster.kafka, cluster.group


def _cure(session: Session, kafka: KafkaReads, connector: Connector) -> Plan:
    if connector.type == "sink":
        raise BadInput(f"{connector.name} is a sink connector, whose tasks are never fenced")
    configured = observe.configured(kafka, _config_topic(session, kafka), connector.name)
    pending = _pending(session, kafka, connector.name)
    return plan_cure(kafka.cluster_id(), connector, configured, pending=pending, group_id=session.group_id)


def _pending(session: Session, kafka: KafkaReads, name: str) -> bool:
    """Whether a round of fencing is due. If no id is to be fenced, the leader only writes its record."""
    found = observe.configured(kafka, _config_topic(session, kafka), name)
    return found is not None and bool(ids_to_fence(found.task_count_record, found.task_count, found.fencing_pending))


def republishing(session: Session, kafka: KafkaReads, connector: Connector) -> Plan | None:
    """Return the plan for a connector whose task configs compaction removes; None if it does not."""
    found = _order(session, kafka, connector.name)
    if found is None:
        return None
    facts = facts_reader(kafka, kafka.group(session.group_id), session.named_topics)
    seen = facts().of(connector) if facts else connector
    return plan_republish(kafka.cluster_id(), seen, found, group_id=session.group_id)


def _order(session: Session, kafka: KafkaReads, name: str) -> TaskConfigOrder | None:
    return next((each for each in orders(kafka, _config_topic(session, kafka)) if each.name == name), None)


def context_of(session: Session, cluster: ConnectorAccess, plan: Plan) -> StepContext:
    """Return the context of a cure's steps."""
    kafka, group = _sources(cluster)
    publishes = any(isinstance(step, AwaitPublished) for step in plan.steps)
    facts = facts_reader(kafka, group, session.named_topics) if publishes else None
    pending, order = partial(_pending, session, kafka), partial(_order, session, kafka)
    return CureContext(cluster.calls, session.timeout, facts=facts, pending=pending, order=order)


def _config_topic(session: Session, kafka: KafkaReads) -> str:
    named = session.named_topics
    topic = (
        named.get("config")
        or find_internal_topics(kafka, kafka.group(session.group_id), named, needed=("config",)).config
    )
    assert topic is not None
    return topic
