"""The sources of a cluster's offsets, and the clients of their changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from connectctl.ops.clients.protocols import Clients
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.offsets_findings import of_empty_group
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.wait import OPEN_TRANSACTIONS_PATIENCE
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.cluster.worker_answers import first_answering
from connectctl.ops.operations.offsets.changes import CopyOffsets
from connectctl.ops.operations.offsets.context import OffsetContext
from connectctl.ops.operations.offsets.incomplete import check_complete
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.planning import ConnectorState
from connectctl.ops.operations.offsets.prepare import OffsetAccess, observe_targets
from connectctl.ops.operations.offsets.record_changes import effective_entries
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.transactions.sources import coordinators_of

PATIENCE = OPEN_TRANSACTIONS_PATIENCE
"""Seconds to wait for open transactions before a change is refused."""


def sources_of(
    clients: Clients, patience: float
) -> tuple[Sources, ConnectGroup, tuple[Finding, ...]]:
    """Return the sources of this cluster's offsets, its group, and the findings of their
    discovery.
    """
    kafka = clients.kafka
    group = clients.group()
    topics = find_internal_topics(kafka, group, clients.named_topics, needed=("config", "offsets"))
    assert topics.offsets is not None
    sources = Sources(
        kafka=kafka,
        bootstrap=str(clients.settings.get("bootstrap_servers")),
        config_topic=topics.config,
        offsets_topic=topics.offsets,
        other_kafka=clients.other_kafka,
        workers=partial(_workers, clients, group),
        patience=patience,
        unproven=topics.unproven,
        coordinators=partial(coordinators_of, clients),
    )
    return (
        sources,
        group,
        (*topics.findings, *(() if group.members else (of_empty_group(group.id),))),
    )


def _workers(clients: Clients, group: ConnectGroup) -> WorkerFacts:
    """Return the facts that a worker reports; none if no worker responds, which is not an error
    here.
    """
    if not group.members:
        return WorkerFacts()
    worker = first_answering(clients.connect_to(group), group)
    if worker is None:
        return WorkerFacts()
    proven = {Support.ENABLED: True, Support.NOT_ENABLED: False, Support.NOT_SUPPORTED: False}
    return WorkerFacts(worker.version, proven.get(worker.support))


def observe_connectors(
    clients: Clients, targets: Sequence[OffsetTarget]
) -> tuple[OffsetAccess, list[ConnectorState]]:
    """Return the clients, and the current state of the connectors. Raises ``BadInput`` for unknown
    ones.
    """
    sources, group, _ = sources_of(clients, PATIENCE)
    engine = clients.offsets_engine(sources.kafka, sources.offsets_topic)
    access = OffsetAccess(sources, clients.connect_to(group), group, clients.named_topics, engine)
    return observe_targets(access, targets) if targets else (access, [])


def context_of(clients: Clients, access: OffsetAccess, journal: Journal) -> OffsetContext:
    """Return the context of steps that change offsets."""
    return OffsetContext(
        access.calls,
        clients.timeout,
        sources=access.sources,
        group_id=access.group_id,
        journal=journal,
        engine=access.engine,
        facts=lambda: access.sources.facts(access.group_id),
        origin=partial(entries_now, clients),
        groups=lambda: clients.group_offsets,
        lock=clients.cluster_lock,
        own_rights=lambda: clients.own_rights,
    )


def entries_now(clients: Clients, request: CopyOffsets) -> tuple[tuple[str, str], ...]:
    """Return the current effective offsets of the source connector of a copy."""
    source_clients = clients if request.context is None else clients.in_context(request.context)
    _, (origin,) = observe_connectors(
        source_clients, [OffsetTarget(request.source, None, new=True)]
    )
    check_complete(origin.topic_states)
    return effective_entries(origin.topic_states, running=origin.running)
