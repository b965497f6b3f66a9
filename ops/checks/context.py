"""The common observations of all areas of preflight and doctor: the cluster, its topics and its connectors.

A failed observation is noted, and the others are made nevertheless.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from connectctl.ops.checks.acls.clusters import Open
from connectctl.ops.checks.history.records import History
from connectctl.ops.clients.protocols import (
    AclReads,
    BrokerReads,
    ConnectCalls,
    KafkaReads,
    TransactionCalls,
)
from connectctl.ops.connect import status_topic
from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import BadInput, ConnectctlError, did_you_mean
from connectctl.ops.core.unseen import Unseen, answer_of, unseen_by
from connectctl.ops.operations.cluster import observe
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.cluster.read_once import read_once
from connectctl.ops.operations.connectors.fencing_diagnosis import write_times
from connectctl.ops.operations.fencing.observe import FencingSources as FenceSources
from connectctl.ops.operations.fencing.observe import visible_connectors
from connectctl.ops.operations.upgrade.run_state import RollState

PATIENCE = 5.0
"""Seconds to wait for open transactions on the internal topics."""


@dataclass(frozen=True)
class Edges:
    """The clients that the checks read with; a client that is a function is opened when it is
    needed.

    ``configured`` returns the value of a worker's property, by its address, as its driver reports
    it; None if unknown. ``roll`` returns the progress of a rolling change of the workers.
    """

    kafka: KafkaReads
    calls: ConnectCalls
    transactions: Callable[[], TransactionCalls]
    brokers: Callable[[], BrokerReads]
    acls: Callable[[], AclReads]
    other_acls: Open
    other_kafka: Callable[[str, Mapping[str, str]], KafkaReads]
    bootstrap: str
    configured: Callable[[str, str], str | None] = lambda worker, name: None
    named_servers: tuple[str, ...] = ()
    """The bootstrap servers of the clusters in the context."""
    roll: Callable[[ClusterView], RollState] = lambda view: RollState()
    pause: Callable[[float], None] = time.sleep
    """Waits for seconds before something is read again; a bundle has nothing to wait for."""


@dataclass
class CheckContext:
    """The observations of the cluster for all areas.

    ``checked`` are the connectors that the user named, or all of them. ``written`` is when the
    newest record of each key of the config and status topics was written, in seconds since the
    epoch.
    """

    edges: Edges
    view: ClusterView
    checked: tuple[Connector, ...] = ()
    state: ConfigState | None = None
    written: Mapping[str, float] = field(default_factory=dict)
    recorded: Mapping[str, frozenset[str]] | None = None
    """The topics of connectors by the status topic, None if it was not read."""
    history: History = field(default_factory=History)
    """What the workers' topics retain of the past, for ``doctor``."""
    unseen: list[Unseen] = field(default_factory=list)
    connections: Callable[[], Mapping[int, str]] | None = None
    """Returns the brokers that accept no connection, asked for before the topics were."""
    _properties: dict[str, str | None] = field(default_factory=dict)

    @property
    def group(self) -> ConnectGroup:
        return self.view.group

    @property
    def internal(self) -> dict[str, str]:
        """Return the workers' topics that were found, by role."""
        return {topic.role: topic.name for topic in self.view.topics if topic.name}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the connectors to check."""
        return tuple(connector.name for connector in self.checked)

    @property
    def all_connectors(self) -> tuple[Connector, ...]:
        """Return all connectors, named by the user or not: any sink may read what one of them
        writes.
        """
        return tuple(health.connector for health in self.view.connectors)

    @property
    def sources(self) -> list[Connector]:
        """Return the source connectors among those to check."""
        return [connector for connector in self.checked if connector.type != "sink"]

    @property
    def enabled(self) -> bool | None:
        """Return whether exactly-once is enabled on a worker, None if no worker reports it."""
        supports = {worker.support for worker in self.view.workers} - {Support.UNKNOWN}
        return Support.ENABLED in supports if supports else None

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(sorted({worker.version for worker in self.view.workers if worker.version}))

    @cached_property
    def directory(self) -> TransactionalIdIndex:
        """Return the visible connectors of all groups."""
        try:
            sources = FenceSources(
                self.edges.transactions(),
                self.group.id,
                self.edges.kafka.group,
                lambda g: frozenset(),
            )
            visible = visible_connectors(sources)
        except ConnectctlError as e:
            self.unseen.append(unseen_by("connectors of other groups", e))
            return TransactionalIdIndex({self.group.id: frozenset()})
        self.unseen += [
            Unseen("connectors of other groups", gap.why, gap.next_step) for gap in visible.gaps
        ]
        return visible.seen

    def worker_property(self, name: str) -> str | None:
        """Return a property of the workers, if all drivers that report it report the same value."""
        if name not in self._properties:
            values = {
                self.edges.configured(worker.address, name) for worker in self.view.workers
            } - {None}
            self._properties[name] = values.pop() if len(values) == 1 else None
        return self._properties[name]


def observe_cluster(
    edges: Edges,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    wanted: Sequence[str],
    *,
    past: bool = False,
) -> CheckContext:
    """Observe the cluster. Raises ``BadInput`` for a connector in ``wanted`` that does not exist.

    ``past``: for ``doctor``, topics are read with superseded records, and each worker gets one
    request.
    """
    connections = _connections_of(edges)
    edges = replace(edges, kafka=read_once(edges.kafka, superseded=past))
    view = observe.observe_cluster(
        edges.kafka, edges.calls, group, named, lists_only=past, pause=edges.pause
    )
    known = {health.name: health.connector for health in view.connectors}
    _check_names(wanted, list(known))
    context = CheckContext(edges, view, connections=connections)
    picked = frozenset(wanted) or known.keys()
    context.checked = tuple(
        connector for name, connector in sorted(known.items()) if name in picked
    )
    _read_config_topic(context)
    return context


def _connections_of(edges: Edges) -> Callable[[], Mapping[int, str]]:
    """Ask for the brokers that accept no connection, and return what waits for the answer.

    A broker that died is in the metadata, and its replicas in sync, until the controller fences it.
    Asked for after the topics were read, both would be missed if that happens in between.
    """
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(edges.brokers().unreachable).result
    finally:
        pool.shutdown(wait=False)


def _check_names(wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known, "connectctl connectors list")
            raise BadInput(f"Connector not found: {name}", next_step=hint)


def _read_config_topic(context: CheckContext) -> None:
    topics = [context.internal[role] for role in ("config", "status") if role in context.internal]
    read = partial(context.edges.kafka.image, topics, patience=PATIENCE)
    images = answer_of(read, context.unseen, "the config and status topics") or {}
    config = context.internal.get("config")
    if config in images:
        context.state = state_in(context.edges.kafka, images[config], patience=PATIENCE)
    status = context.internal.get("status")
    if status in images:
        context.recorded = status_topic.topics(images[status].latest)
    context.written = {
        key: at for image in images.values() for key, at in write_times(image.latest).items()
    }
