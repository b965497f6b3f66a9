"""Observes the offset store of each source connector, now and under the goal, and its contents; evaluates nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from connectctl.ops.checks.connector_config.active_topics import active_topics, configured_topics
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.types import Goal, Unseen, leads_to_enabled, reason
from connectctl.ops.connect.connector import Connector, at_rest
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
from connectctl.ops.kafka.bootstrap import NAME_IT, same_to_connect
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.observe import observe as read_offsets
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, WorkerFacts

MOST = 500_000
"""Records in an offsets topic beyond which a check is not the time to read them all."""
PATIENCE = 5.0
"""Seconds that an open transaction may hold up a reading of the offsets topics."""
_SHOW = "connectctl offsets show"


def target_mode(mode: StoreMode | None, goal: Goal) -> StoreMode | None:
    """The workers' mode that the goal leads to, None where it is today's and not known."""
    if mode is None and goal is Goal.NOW:
        return None
    return StoreMode.ENABLED if leads_to_enabled(mode is StoreMode.ENABLED, goal) else StoreMode.NOT_ENABLED


@dataclass(frozen=True)
class ConnectorStore:
    """A source connector's store ``now`` and ``then``, when the goal is reached, with what its offsets topics hold.

    ``offsets`` is None where they were not read. ``targets`` are the topics that it writes to, ``clients`` the bootstrap
    servers of its producer, consumer and admin. ``at_rest``: it is stopped, and no task of it runs.
    """

    name: str
    config: Mapping[str, str]
    now: Store
    then: Store
    offsets: ConnectorOffsets | None = None
    targets: frozenset[str] = frozenset()
    clients: Mapping[str, str] = field(default_factory=dict)
    at_rest: bool = False

    @property
    def separate(self) -> Store | None:
        """The separate store that it will have, or else the one that it has now and will leave."""
        return next((store for store in (self.then, self.now) if store.kind is Kind.SEPARATE), None)


@dataclass(frozen=True)
class SeenCluster:
    """A Kafka cluster at some bootstrap servers; ``topics`` are those of the topics asked for that exist."""

    id: str
    brokers: int
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class StoreFacts:
    """All that was seen. ``clusters`` are those that could be reached, by bootstrap servers, the workers' own among them.

    ``bootstrap`` is the workers' ``bootstrap.servers``; unless ``bootstrap_configured`` it is how we reach them, and
    theirs may be spelled otherwise. ``internal`` are their topics by role, ``offsets_findings`` OFFSETS001–019 of the
    connectors; ``taken_at`` is in seconds since the epoch.
    """

    connectors: tuple[ConnectorStore, ...]
    mode: StoreMode | None
    version: str | None
    offsets_topic: str
    bootstrap: str
    bootstrap_configured: bool = False
    internal: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, SeenCluster] = field(default_factory=dict)
    offsets_findings: tuple[Finding, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    taken_at: float = 0.0

    def cluster(self, bootstrap: str | None) -> SeenCluster | None:
        """The Kafka cluster at ``bootstrap``, the workers' own for None; None where it could not be reached."""
        return self.clusters.get(self.bootstrap if bootstrap is None else bootstrap)

    def is_workers(self, bootstrap: str | None) -> bool:
        """Whether ``bootstrap`` is known to lead to the workers' Kafka cluster, however it is spelled."""
        there, here = self.cluster(bootstrap), self.cluster(None)
        if bootstrap in (None, self.bootstrap):
            return True
        return there is not None and here is not None and there.id == here.id


@dataclass(frozen=True)
class _Workers:
    """How the workers keep offsets, and the ``bootstrap.servers`` of theirs and of their producers.

    Where no driver tells those, ours stand in.
    """

    offsets: Sources
    mode: StoreMode | None
    version: str | None
    bootstrap: str
    producer_bootstrap: str | None

    def clients(self, config: Mapping[str, str]) -> dict[str, str]:
        """Where each client of a connector connects, in the workers' spelling where that is the same to Connect."""
        defaults = dict.fromkeys(CLIENTS, self.bootstrap) | {"producer": self.producer_bootstrap or self.bootstrap}
        found = {client: client_bootstrap(config, client, defaults[client]) for client in CLIENTS}
        return {c: self.bootstrap if same_to_connect(b, self.bootstrap) else b for c, b in found.items()}


def observe(context: CheckContext, goal: Goal, now: float) -> StoreFacts:
    """See the stores of all source connectors; ``now`` in seconds since the epoch. The workers' offsets topic is known."""
    workers = _workers(context)
    found = [_stores(each, workers, goal) for each in context.sources]
    unseen: tuple[Unseen, ...] = ()
    if workers.mode is None and goal is not Goal.ENABLED and _depends_on_mode(context, workers):
        why = "no worker reports whether exactly-once is enabled, on which implicit dedicated topics depend"
        unseen = (Unseen("offset stores", why, "connectctl cluster show"),)
    with ThreadPoolExecutor(3) as pool:
        reading = pool.submit(_offsets, workers, found)
        asking = pool.submit(active_topics, context.edges.calls, [each.name for each in found], context.recorded)
        clusters, unreached = _clusters(workers, found)
        offsets, offsets_findings, unread = reading.result()
        active, silent = asking.result()
    targets = {each.name: configured_topics(each.config) | active.get(each.name, frozenset()) for each in found}
    return StoreFacts(
        connectors=tuple(replace(e, offsets=offsets.get(e.name), targets=targets[e.name]) for e in found),
        mode=workers.mode,
        version=workers.version,
        offsets_topic=workers.offsets.offsets_topic,
        bootstrap=workers.bootstrap,
        bootstrap_configured=context.worker_property("bootstrap.servers") is not None,
        internal=context.internal,
        clusters=clusters,
        offsets_findings=offsets_findings,
        unseen=(*unseen, *unreached, *unread, *silent),
        taken_at=now,
    )


def _depends_on_mode(context: CheckContext, workers: _Workers) -> bool:
    """Whether the mode of the workers may decide on a store: of those without REST, nothing else will ever tell it."""
    if not context.group.without_rest:
        return bool(context.sources)
    topic = workers.offsets.offsets_topic
    stores = (separate_store(each.config, topic, workers.bootstrap) for each in context.sources)
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


def _stores(each: Connector, workers: _Workers, goal: Goal) -> ConnectorStore:
    def store(mode: StoreMode | None) -> Store:
        topic = workers.offsets.offsets_topic
        return store_of(
            mode or StoreMode.NOT_ENABLED, each.config, topic, workers.bootstrap, workers.producer_bootstrap
        )

    now, then = store(workers.mode), store(target_mode(workers.mode, goal))
    return ConnectorStore(
        each.name, each.config, now, then, clients=workers.clients(each.config), at_rest=at_rest(each)
    )


def _offsets(
    workers: _Workers, found: Sequence[ConnectorStore]
) -> tuple[dict[str, ConnectorOffsets], tuple[Finding, ...], tuple[Unseen, ...]]:
    """What the topics hold, the implicit ones among them that somebody has or will have."""
    if not found:
        return {}, (), ()
    implicit = any(each.separate is not None and each.separate.implicit for each in found)
    support = WorkerFacts(workers.version, implicit or workers.mode is StoreMode.ENABLED)
    where = replace(workers.offsets, bootstrap=workers.bootstrap, workers=lambda: support)
    names = tuple(each.name for each in found)
    try:
        size = _size(workers.offsets)
        if size > MOST:
            return {}, (), (Unseen("source offsets", f"{size:,} records are more than a check reads", _SHOW),)
        snapshot = read_offsets(where, OffsetsQuery(names))
        known = snapshot.configs.connectors if snapshot.configs else {}
        wanted = tuple(name for name in names if name in known and known[name].looks_like != "sink")
        if not wanted:
            return {}, snapshot.findings, ()
        answer = assemble(snapshot, OffsetsQuery(wanted))
    except ConnectctlError as e:
        return {}, (), (Unseen("source offsets", reason(e), e.next_step or _SHOW),)
    return {each.name: each for each in answer.connectors}, answer.findings, ()


def _size(offsets: Sources) -> int:
    extents = offsets.kafka.extents([offsets.offsets_topic])
    return sum(each.end - each.first for by in extents.values() for each in by.values())


@dataclass
class _Visit:
    """A Kafka cluster to look at: for whose sake, with which of its overrides, and which topics."""

    connector: str
    overrides: Mapping[str, str]
    topics: set[str] = field(default_factory=set)


def _clusters(workers: _Workers, found: Sequence[ConnectorStore]) -> tuple[dict[str, SeenCluster], tuple[Unseen, ...]]:
    """Every Kafka cluster that a connector's client uses, observed concurrently."""
    visits = {workers.bootstrap: _Visit("", {}, {workers.offsets.offsets_topic})}
    for each in found:
        for client, there in workers.clients(each.config).items() if _matters(each) else ():
            visit = visits.setdefault(there, _Visit(each.name, client_overrides(each.config, client)))
            if client == "producer" and each.separate is not None:
                visit.topics.add(each.separate.topic)
    with ThreadPoolExecutor(8) as pool:
        seen = dict(zip(visits, pool.map(lambda at: _visit(workers, *at), visits.items()), strict=True))
    clusters = {bootstrap: what for bootstrap, what in seen.items() if isinstance(what, SeenCluster)}
    return clusters, tuple(what for what in seen.values() if isinstance(what, Unseen))


def _matters(each: ConnectorStore) -> bool:
    """Whether the connector's own clients have anything to do with its offsets."""
    return {each.now.kind, each.then.kind} != {Kind.WORKERS}


def _visit(workers: _Workers, bootstrap: str, visit: _Visit) -> SeenCluster | Unseen:
    try:
        here = bootstrap == workers.bootstrap
        kafka = workers.offsets.kafka if here else workers.offsets.other_kafka(bootstrap, visit.overrides)
        return SeenCluster(kafka.cluster_id(), kafka.brokers(), kafka.topics(sorted(visit.topics)))
    except ConnectctlError as e:
        suffix = f", to which {visit.connector} connects" if visit.connector else ""
        return Unseen(f"the Kafka cluster at {bootstrap}{suffix}", reason(e), NAME_IT)


def names(connectors: Iterable[ConnectorStore]) -> str:
    """Connectors by name, for a sentence."""
    return ", ".join(sorted(each.name for each in connectors))
