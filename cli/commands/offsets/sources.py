"""Where the source offsets of the session's cluster are read from."""

from __future__ import annotations

from functools import partial

from connectctl.cli.options import OPEN_TRANSACTIONS_PATIENCE
from connectctl.cli.session import Session
from connectctl.cli.transaction_sources import coordinators_of
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.offsets_findings import of_empty_group
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.finding import Finding
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.cluster.observe import first_to_answer
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.snapshot import WorkerFacts

PATIENCE = OPEN_TRANSACTIONS_PATIENCE
"""Seconds to wait for open transactions before a change is refused."""


def sources_of(session: Session, patience: float) -> tuple[Sources, ConnectGroup, tuple[Finding, ...]]:
    """Return the sources of this cluster's offsets, its group, and the findings of their discovery."""
    kafka = session.kafka
    group = session.group()
    topics = find_internal_topics(kafka, group, session.named_topics, needed=("config", "offsets"))
    assert topics.offsets is not None
    sources = Sources(
        kafka=kafka,
        bootstrap=str(session.settings.get("bootstrap_servers")),
        config_topic=topics.config,
        offsets_topic=topics.offsets,
        other_kafka=session.other_kafka,
        workers=partial(_workers, session, group),
        patience=patience,
        unproven=topics.unproven,
        coordinators=partial(coordinators_of, session),
    )
    return sources, group, (*topics.findings, *(() if group.members else (of_empty_group(group.id),)))


def _workers(session: Session, group: ConnectGroup) -> WorkerFacts:
    """Return the facts that a worker reports; none if no worker responds, which is not an error here."""
    if not group.members:
        return WorkerFacts()
    worker = first_to_answer(session.connect_to(group), group)
    if worker is None:
        return WorkerFacts()
    proven = {Support.ENABLED: True, Support.NOT_ENABLED: False, Support.NOT_SUPPORTED: False}
    return WorkerFacts(worker.version, proven.get(worker.support))
