"""Observes the offset store of each source connector, now and under the goal, and its contents;
evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.connect.connector import Connector, at_rest
from connectctl.ops.connect.connector_class import configured_topics
from connectctl.ops.connect.goal import Goal, leads_to_enabled
from connectctl.ops.connect.offset_store import (
    CLIENTS,
    Kind,
    Store,
    StoreMode,
    client_bootstrap,
    client_overrides,
    separate_store,
    store_of,
)
from connectctl.ops.connect.source_offsets import ConnectorOffsets
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.unseen import Unseen, reason
from connectctl.ops.kafka.bootstrap import NAME_IT, same_to_connect
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.connectors.tracked_topics import active_topics
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.observe import observe as read_offsets
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, WorkerFacts

MOST = 500_000
"""The most records of an offsets topic that a check reads."""
PATIENCE = 5.0
"""Seconds to wait for open transactions on the offsets topics."""
_SHOW = "connectctl offsets show"


def target_mode(mode: StoreMode | None, goal: Goal) -> StoreMode | None:
    """Return the workers' mode under the goal, None if it is the present one and unknown."""
    if mode is None and goal is Goal.NOW:
        return None
    return (
        StoreMode.ENABLED
        if leads_to_enabled(mode is StoreMode.ENABLED, goal)
        else StoreMode.NOT_ENABLED
    )


@dataclass(frozen=True)
class ConnectorStore:
    """A source connector's stores ``now`` and under the goal (``target``), and the contents of its
    offsets topics.

    ``offsets`` is None if they were not read. ``targets`` are the topics that it writes to,
    ``clients`` the bootstrap servers of its producer, consumer and admin client. ``at_rest``: it is
    stopped, and no task of it runs.
    """

    name: str
    config: Mapping[str, str]
    now: Store
    target: Store
    offsets: ConnectorOffsets | None = None
    targets: frozenset[str] = frozenset()
    clients: Mapping[str, str] = field(default_factory=dict)
    at_rest: bool = False

    @property
    def separate(self) -> Store | None:
        """Return the separate store that it will have, else the one that it has now and will
        leave.
        """
        return next(
            (store for store in (self.target, self.now) if store.kind is Kind.SEPARATE), None
        )


@dataclass(frozen=True)
class StoreCluster:
    """A Kafka cluster at some bootstrap servers; ``topics`` are the requested topics that exist."""

    id: str
    brokers: int
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class StoreFacts:
    """The observations. ``clusters`` are those that were reached, by bootstrap servers, including
    the workers' own.

    ``bootstrap`` is the workers' ``bootstrap.servers`` if ``bootstrap_configured``; else it is
    ours, and the workers' spelling may differ. ``internal`` are their topics by role,
    ``offsets_findings`` OFFSETS001–019 of the connectors; ``taken_at`` is in seconds since the
    epoch.
    """

    connectors: tuple[ConnectorStore, ...]
    mode: StoreMode | None
    version: str | None
    offsets_topic: str
    bootstrap: str
    bootstrap_configured: bool = False
    internal: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, StoreCluster] = field(default_factory=dict)
    offsets_findings: tuple[Finding, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    taken_at: float = 0.0

    def cluster(self, bootstrap: str | None) -> StoreCluster | None:
        """Return the Kafka cluster at ``bootstrap``; None if it could not be reached.

        Without ``bootstrap`` it is the workers' own.
        """
        return self.clusters.get(self.bootstrap if bootstrap is None else bootstrap)

    def is_workers(self, bootstrap: str | None) -> bool:
        """Return whether ``bootstrap`` is known to be the workers' Kafka cluster, in any
        spelling.
        """
        found, own = self.cluster(bootstrap), self.cluster(None)
        if bootstrap in (None, self.bootstrap):
            return True
        return found is not None and own is not None and found.id == own.id


@dataclass(frozen=True)
class _Workers:
    """The workers' offset store settings, with the ``bootstrap.servers`` of the workers and of
    their producers.

    If no driver reports those, ours replace them.
    """

    offsets: Sources
    mode: StoreMode | None
    version: str | None
    bootstrap: str
    producer_bootstrap: str | None

    def clients(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return each client's bootstrap servers, in the workers' spelling if Connect treats them
        as equal.
        """
        defaults = dict.fromkeys(CLIENTS, self.bootstrap) | {
            "producer": self.producer_bootstrap or self.bootstrap
        }
        found = {client: client_bootstrap(config, client, defaults[client]) for client in CLIENTS}
        return {
            c: self.bootstrap if same_to_connect(b, self.bootstrap) else b for c, b in found.items()
        }


def observe(context: CheckContext, goal: Goal, now: float) -> StoreFacts:
    """Observe the stores of all source connectors; ``now`` in seconds since the epoch.

    The workers' offsets topic must be known.
    """
    workers = _workers(context)
    stores = [_store_of(source, workers, goal) for source in context.sources]
    unseen: tuple[Unseen, ...] = ()
    if workers.mode is None and goal is not Goal.ENABLED and _depends_on_mode(context, workers):
        why = (
            "no worker reports whether exactly-once is enabled, on which implicit dedicated "
            "topics depend"
        )
        unseen = (Unseen("offset stores", why, "connectctl cluster show"),)
    with ThreadPoolExecutor(3) as pool:
        reading = pool.submit(_offsets, workers, stores)
        tracking = pool.submit(
            active_topics, context.edges.calls, [store.name for store in stores], context.recorded
        )
        clusters, unreached = _clusters(workers, stores)
        offsets, offsets_findings, unread = reading.result()
        active, failures = tracking.result()
    targets = {
        store.name: configured_topics(store.config) | active.get(store.name, frozenset())
        for store in stores
    }
    return StoreFacts(
        connectors=tuple(
            replace(store, offsets=offsets.get(store.name), targets=targets[store.name])
            for store in stores
        ),
        mode=workers.mode,
        version=workers.version,
        offsets_topic=workers.offsets.offsets_topic,
        bootstrap=workers.bootstrap,
        bootstrap_configured=context.worker_property("bootstrap.servers") is not None,
        internal=context.internal,
        clusters=clusters,
        offsets_findings=offsets_findings,
        unseen=(*unseen, *unreached, *unread, *failures),
        taken_at=now,
    )


def _depends_on_mode(context: CheckContext, workers: _Workers) -> bool:
    """Return whether a store may depend on the workers' mode, which workers without REST never
    report.
    """
    if not context.group.without_rest:
        return bool(context.sources)
    topic = workers.offsets.offsets_topic
    stores = (separate_store(source.config, topic, workers.bootstrap) for source in context.sources)
    return any(store is not None and store.implicit for store in stores)


def _workers(context: CheckContext) -> _Workers:
    edges, version = context.edges, context.versions[0] if context.versions else None
    return _Workers(
        Sources(
            edges.kafka,
            edges.bootstrap,
            context.internal.get("config"),
            context.internal["offsets"],
            edges.other_kafka,
            lambda: WorkerFacts(version),
            PATIENCE,
        ),
        {True: StoreMode.ENABLED, False: StoreMode.NOT_ENABLED, None: None}[context.enabled],
        version,
        context.worker_property("bootstrap.servers") or edges.bootstrap,
        context.worker_property("producer.bootstrap.servers"),
    )


def _store_of(source: Connector, workers: _Workers, goal: Goal) -> ConnectorStore:
    def store(mode: StoreMode | None) -> Store:
        topic = workers.offsets.offsets_topic
        return store_of(
            mode or StoreMode.NOT_ENABLED,
            source.config,
            topic,
            workers.bootstrap,
            workers.producer_bootstrap,
        )

    now, target = store(workers.mode), store(target_mode(workers.mode, goal))
    return ConnectorStore(
        source.name,
        source.config,
        now,
        target,
        clients=workers.clients(source.config),
        at_rest=at_rest(source),
    )


def _offsets(
    workers: _Workers, stores: Sequence[ConnectorStore]
) -> tuple[dict[str, ConnectorOffsets], tuple[Finding, ...], tuple[Unseen, ...]]:
    """Return the offsets, findings and gaps of the connectors' offsets topics, including implicit
    ones.
    """
    if not stores:
        return {}, (), ()
    implicit = any(
        connector.separate is not None and connector.separate.implicit for connector in stores
    )
    support = WorkerFacts(workers.version, implicit or workers.mode is StoreMode.ENABLED)
    sources = replace(workers.offsets, bootstrap=workers.bootstrap, workers=lambda: support)
    names = tuple(connector.name for connector in stores)
    try:
        size = _size(workers.offsets)
        if size > MOST:
            return (
                {},
                (),
                (Unseen("source offsets", f"{size:,} records are more than a check reads", _SHOW),),
            )
        snapshot = read_offsets(sources, OffsetsQuery(names))
        known = snapshot.configs.connectors if snapshot.configs else {}
        source_names = tuple(
            name for name in names if name in known and known[name].looks_like != "sink"
        )
        if not source_names:
            return {}, snapshot.findings, ()
        answer = assemble(snapshot, OffsetsQuery(source_names))
    except ConnectctlError as e:
        return {}, (), (Unseen("source offsets", reason(e), e.next_step or _SHOW),)
    return {connector.name: connector for connector in answer.connectors}, answer.findings, ()


def _size(offsets: Sources) -> int:
    extents = offsets.kafka.extents([offsets.offsets_topic])
    return sum(
        extent.end - extent.first
        for partitions in extents.values()
        for extent in partitions.values()
    )


@dataclass
class _ClusterQuery:
    """A Kafka cluster to observe: the connector that uses it, its overrides, and the topics to
    describe.
    """

    connector: str
    overrides: Mapping[str, str]
    topics: set[str] = field(default_factory=set)


def _clusters(
    workers: _Workers, stores: Sequence[ConnectorStore]
) -> tuple[dict[str, StoreCluster], tuple[Unseen, ...]]:
    """Return every Kafka cluster that a connector's client uses, observed concurrently."""
    queries = {workers.bootstrap: _ClusterQuery("", {}, {workers.offsets.offsets_topic})}
    for store in stores:
        for client, bootstrap in (
            workers.clients(store.config).items() if _uses_own_clients(store) else ()
        ):
            query = queries.setdefault(
                bootstrap, _ClusterQuery(store.name, client_overrides(store.config, client))
            )
            if client == "producer" and store.separate is not None:
                query.topics.add(store.separate.topic)
    with ThreadPoolExecutor(8) as pool:
        answers = dict(
            zip(
                queries,
                pool.map(lambda entry: _observe_cluster(workers, *entry), queries.items()),
                strict=True,
            )
        )
    clusters = {
        bootstrap: answer
        for bootstrap, answer in answers.items()
        if isinstance(answer, StoreCluster)
    }
    return clusters, tuple(answer for answer in answers.values() if isinstance(answer, Unseen))


def _uses_own_clients(store: ConnectorStore) -> bool:
    """Return whether the connector's own clients access its offsets."""
    return {store.now.kind, store.target.kind} != {Kind.WORKERS}


def _observe_cluster(
    workers: _Workers, bootstrap: str, query: _ClusterQuery
) -> StoreCluster | Unseen:
    try:
        is_workers = bootstrap == workers.bootstrap
        kafka = (
            workers.offsets.kafka
            if is_workers
            else workers.offsets.other_kafka(bootstrap, query.overrides)
        )
        return StoreCluster(kafka.cluster_id(), kafka.brokers(), kafka.topics(sorted(query.topics)))
    except ConnectctlError as e:
        suffix = f", to which {query.connector} connects" if query.connector else ""
        return Unseen(f"the Kafka cluster at {bootstrap}{suffix}", reason(e), NAME_IT)


def names(connectors: Iterable[ConnectorStore]) -> str:
    """Return the names of connectors for a sentence."""
    return ", ".join(sorted(store.name for store in connectors))
