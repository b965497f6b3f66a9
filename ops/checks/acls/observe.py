"""Collects the input of the ACL checks: the clusters' bindings, the connectors' clients, and their
principals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from connectctl.ops.checks.acls.clusters import (
    MOST_AT_ONCE,
    CanonicalServers,
    ClusterAcls,
    observe_cluster,
    observe_clusters,
)
from connectctl.ops.checks.acls.principals import (
    CLIENTS,
    IN_WORKERS_PROPERTIES,
    Client,
    Principals,
    principal_of,
)
from connectctl.ops.checks.context import CheckContext, Edges
from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import MOST_TASKS, ConfigState
from connectctl.ops.connect.connector import Connector, path_of
from connectctl.ops.connect.connector_class import has_reference
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.sink_group import dead_letters, sink_group, topics_of_sink
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.unseen import Unseen, answer_of, unseen_by
from connectctl.ops.kafka.acls import ANY
from connectctl.ops.kafka.visibility import Complete
from connectctl.ops.operations.connectors.tracked_topics import FEW, Recorded, active_topics

_CREATION, _REGEX = "topic.creation.", "topics.regex"
_SPECIAL = frozenset(".^$*+?{}[]()|\\")
_REPEATS = frozenset("*?{")


@dataclass(frozen=True)
class SourceAccess:
    """A source connector: its clients' principals and the cluster that each uses, as bootstrap
    servers.

    ``ids`` is the number of transactional ids that it needs. ``offsets_topic`` is the one that it
    uses with exactly-once support; ``dedicated``: it is not the workers' topic, and is also used
    without that support.
    """

    name: str
    ids: int
    principals: Mapping[Client, str]
    clusters: Mapping[Client, str]
    offsets_topic: str | None = None
    dedicated: bool = False
    targets: tuple[str, ...] = ()
    creates_topics: bool = False

    @property
    def roles(self) -> tuple[Client, ...]:
        """Return its clients: a source connector has all three."""
        return CLIENTS


@dataclass(frozen=True)
class SinkAccess:
    """A sink connector: its clients' principals and the cluster that each uses, as bootstrap
    servers.

    ``group`` is None if only its workers can resolve it. ``topics`` are those that it names;
    ``regex`` is the pattern that it has instead, empty without one.
    """

    name: str
    principals: Mapping[Client, str]
    clusters: Mapping[Client, str]
    group: str | None
    topics: tuple[str, ...] = ()
    regex: str = ""
    dead_letters: str | None = None

    @property
    def roles(self) -> tuple[Client, ...]:
        """Return its clients: without a dead letter queue, a consumer only."""
        return CLIENTS if self.dead_letters else (Client.CONSUMER,)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """Return ``regex`` as a pattern; None without one, or if Python cannot compile it."""
        try:
            return re.compile(self.regex) if self.regex else None
        except re.error:
            return None

    @property
    def prefix(self) -> str:
        """Return the known common prefix of the topics that ``regex`` matches."""
        return literal_prefix(self.regex)


@dataclass(frozen=True)
class AclFacts:
    """The input of the ACL checks. ``hosts`` are the workers' addresses as the brokers see them,
    ``*`` if unknown.

    ``clusters`` are by bootstrap servers; those that could not be observed are missing. ``groups``
    are the other Connect clusters on the workers' Kafka cluster. ``options`` are the principals
    that the user gave.
    """

    group_id: str
    bootstrap: str
    clusters: Mapping[str, ClusterAcls]
    worker: str | None = None
    internal: tuple[str, ...] = ()
    sources: tuple[SourceAccess, ...] = ()
    sinks: tuple[SinkAccess, ...] = ()
    hosts: tuple[str, ...] = (ANY,)
    groups: frozenset[str] = frozenset()
    enabled_now: bool = False
    options: Principals = field(default_factory=Principals)

    def with_authorizer(self, cluster: str) -> ClusterAcls | None:
        """Return the Kafka cluster at these bootstrap servers, if it was observed and has an
        authorizer.
        """
        found = self.clusters.get(cluster)
        return found if found is not None and found.acls is not None else None


def observe(
    context: CheckContext, options: Principals
) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
    """Return the facts and the failed observations.

    The facts are None if the ACLs of the workers' own Kafka cluster cannot be read. Without an
    authorizer on the brokers nothing more is requested, because everything is allowed.
    """
    edges = context.edges
    home = observe_cluster("the ACLs of the workers' Kafka cluster", edges.acls, options)
    if isinstance(home, Unseen):
        return None, (home,)
    sources = [connector for connector in context.checked if connector.type == "source"]
    sinks = [connector for connector in context.checked if connector.type == "sink"]
    clusters, canonical, unseen = observe_clusters(
        edges.other_acls, [*sources, *sinks], home, options
    )
    clusters_with_authorizer = [
        cluster for cluster in clusters.values() if cluster.acls is not None
    ]
    targets = (
        _targets(edges.calls, sources, context.recorded, unseen) if clusters_with_authorizer else {}
    )
    facts = AclFacts(
        group_id=context.group.id,
        bootstrap=home.bootstrap,
        clusters=clusters,
        worker=options.worker,
        internal=tuple(context.internal.values()),
        sources=tuple(
            _source(c, context, canonical, options, targets.get(c.name, ())) for c in sources
        ),
        sinks=tuple(_sink(c, canonical, options) for c in sinks),
        hosts=tuple(sorted({m.host.rpartition("/")[2] for m in context.group.members if m.host}))
        or (ANY,),
        groups=_groups(edges, unseen) - {context.group.id}
        if home.acls is not None
        else frozenset(),
        enabled_now=bool(context.enabled),
        options=options,
    )
    unknown = (*_unknown(facts, [*sources, *sinks], options), *_unseen_of_sinks(facts))
    return facts, (*unseen, *unknown, *_other_authorizers(clusters_with_authorizer))


def _groups(edges: Edges, unseen: list[Unseen]) -> frozenset[str]:
    what = "the other Connect clusters, whose transactional ids a pattern may cover"
    groups = answer_of(lambda: edges.transactions().connect_groups(), unseen, what) or Complete(
        frozenset()
    )
    unseen += [Unseen(what, gap.why, gap.next_step) for gap in groups.gaps]
    return groups.seen


def _targets(
    calls: ConnectCalls,
    sources: Sequence[Connector],
    recorded: Recorded | None,
    unseen: list[Unseen],
) -> dict[str, tuple[str, ...]]:
    """Return the topics that each connector is known to have written to (KIP-558)."""
    if recorded is not None and len(sources) > FEW:
        active, failures = active_topics(calls, [connector.name for connector in sources], recorded)
        unseen += failures
        return {name: tuple(sorted(topics)) for name, topics in active.items()}
    failed: dict[str, ConnectctlError] = {}

    def ask(connector: Connector) -> tuple[str, ...]:
        try:
            answer = calls.get(path_of("connectors", connector.name, "topics"))
            return tuple(sorted(answer.get(connector.name, {}).get("topics", ())))
        except ConnectctlError as e:
            failed[connector.name] = e
            return ()

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        found = dict(zip([c.name for c in sources], pool.map(ask, sources), strict=True))
    if failed:
        unseen.append(
            unseen_by(f"the topics that {some_of(sorted(failed), 3)} write to", failed[min(failed)])
        )
    return found


def _clients(
    connector: Connector, canonical: CanonicalServers, options: Principals
) -> tuple[dict[Client, str], dict[Client, str]]:
    """Return the known principals of its clients, and the clusters that they use."""
    config = connector.config
    identities = {
        role: principal_of(connector.name, role, config, options).principal for role in CLIENTS
    }
    clusters = {
        role: canonical[config.get(f"{role.prefix}bootstrap.servers") or None] for role in CLIENTS
    }
    return {role: principal for role, principal in identities.items() if principal}, clusters


def _source(
    connector: Connector,
    context: CheckContext,
    canonical: CanonicalServers,
    options: Principals,
    targets: tuple[str, ...],
) -> SourceAccess:
    config = connector.config
    principals, clusters = _clients(connector, canonical, options)
    workers_topic = context.internal.get("offsets")
    dedicated = config.get(TOPIC)
    return SourceAccess(
        name=connector.name,
        ids=_ids(connector, context.state),
        principals=principals,
        clusters=clusters,
        offsets_topic=dedicated or workers_topic,
        dedicated=dedicated is not None
        and (dedicated != workers_topic or clusters[Client.PRODUCER] != canonical[None]),
        targets=targets,
        creates_topics=any(name.startswith(_CREATION) for name in config),
    )


def _sink(connector: Connector, canonical: CanonicalServers, options: Principals) -> SinkAccess:
    config = connector.config
    principals, clusters = _clients(connector, canonical, options)
    group = sink_group(connector.name, config)
    regex = config.get(_REGEX, "").strip()
    return SinkAccess(
        name=connector.name,
        principals=principals,
        clusters=clusters,
        group=None if has_reference(group) else group,
        topics=() if regex else tuple(sorted(topics_of_sink(config))),
        regex=regex,
        dead_letters=dead_letters(config),
    )


def _ids(connector: Connector, state: ConfigState | None) -> int:
    """Return the highest number of transactional ids: by tasks.max, now, or in the last round of
    fencing.
    """
    requested = whole_number(connector.config.get("tasks.max"), MOST_TASKS) or 1
    known = state.connectors.get(connector.name) if state else None
    counts = [known.task_count, known.task_count_record or 0] if known else []
    return max(requested, len(connector.tasks), *counts)


def _unknown(
    facts: AclFacts, connectors: Sequence[Connector], options: Principals
) -> Iterator[Unseen]:
    """Yield the unknown principals: one line for those in the workers' properties, one for each
    other reason.
    """
    reasons: dict[str, dict[str, list[str]]] = {}
    known: tuple[SourceAccess | SinkAccess, ...] = (*facts.sources, *facts.sinks)
    for access, connector in zip(known, connectors, strict=True):
        for role in access.roles:
            who = principal_of(access.name, role, connector.config, options)
            if who.principal is None and facts.with_authorizer(access.clusters[role]):
                reasons.setdefault(who.why, {}).setdefault(access.name, []).append(role)
    names_of_clients = reasons.pop(IN_WORKERS_PROPERTIES, {})
    if names_of_clients or (facts.worker is None and facts.with_authorizer(facts.bootstrap)):
        clients_text = (
            f" and of the clients of {some_of([*names_of_clients], 3)}" if names_of_clients else ""
        )
        what = f"the permissions of the workers{clients_text}"
        yield Unseen(
            what,
            f"their principals are not given: {IN_WORKERS_PROPERTIES}",
            "Give --principal User:NAME.",
        )
    for why, names in reasons.items():
        for name, roles in names.items():
            step = f"Give --principal {name}:{roles[0]}=User:NAME."
            yield Unseen(
                f"the permissions of the {' and '.join(roles)} of {name}",
                f"its principal is unknown: {why}",
                step,
            )


def _unseen_of_sinks(facts: AclFacts) -> Iterator[Unseen]:
    """Yield the permissions that the configuration of a sink does not determine."""
    for sink in facts.sinks:
        if facts.with_authorizer(sink.clusters[Client.CONSUMER]) is None:
            continue
        if sink.group is None:
            why = "only its workers can resolve consumer.override.group.id"
            yield Unseen(
                f"the permissions of {sink.name} on its group",
                why,
                "Check Read on that group by hand.",
            )
        if sink.regex and sink.pattern is None:
            why = f"{_REGEX} {sink.regex} is not a pattern that Python reads as Java does"
            yield Unseen(
                f"the permissions of {sink.name} on its topics",
                why,
                "Check Read on those topics by hand.",
            )


def _other_authorizers(clusters: Iterable[ClusterAcls]) -> Iterator[Unseen]:
    for cluster in clusters:
        if cluster.acls is not None and cluster.acls.authorizer.decides_by_more:
            name = cluster.acls.authorizer.class_name
            why = (
                f"the brokers at {cluster.bootstrap} use {name}, which may decide by more than ACLs"
            )
            yield Unseen(
                "permissions that are not ACLs", why, "Ask the administrator of that authorizer."
            )


def literal_prefix(regex: str) -> str:
    r"""Return the literal text at the beginning of a Java pattern: ``orders.`` of ``orders\\..*``; empty without one."""
    if "|" in regex:
        return ""
    found, rest = "", regex.removeprefix("^")
    while rest:
        size = 2 if rest[0] == "\\" and rest[1:2] in _SPECIAL else 1
        if (size == 1 and rest[0] in _SPECIAL) or rest[size : size + 1] in _REPEATS:
            break
        found, rest = found + rest[size - 1], rest[size:]
    return found
