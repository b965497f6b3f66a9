"""Collects the input of the ACL checks: the clusters' bindings, the connectors' clients, and their principals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from connectctl.ops.checks.acls.clusters import MOST_AT_ONCE, ClusterAcls, Spelled, look, look_elsewhere
from connectctl.ops.checks.acls.principals import CLIENTS, IN_WORKERS_PROPERTIES, Client, Principals, principal_of
from connectctl.ops.checks.connector_config.active_topics import FEW, Recorded, active_topics
from connectctl.ops.checks.context import CheckContext, Edges
from connectctl.ops.checks.types import Unseen, answer_of, unseen_by
from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import MOST_TASKS, ConfigState
from connectctl.ops.connect.connector import Connector, path_of
from connectctl.ops.connect.connector_class import has_reference
from connectctl.ops.connect.sink_group import sink_group, topics_of_sink
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.acls import ANY
from connectctl.ops.kafka.visibility import Complete

_DEDICATED, _CREATION = "offsets.storage.topic", "topic.creation."
_DEAD_LETTERS, _REGEX = "errors.deadletterqueue.topic.name", "topics.regex"
_SPECIAL = frozenset(".^$*+?{}[]()|\\")
_REPEATS = frozenset("*?{")


@dataclass(frozen=True)
class SourceAccess:
    """A source connector: its clients' principals and the cluster that each uses, as bootstrap servers.

    ``ids`` is how many transactional ids it needs. ``offsets_topic`` is the one that it uses with exactly-once support;
    ``dedicated`` says that it is not the workers' one, and is used without that support, too.
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
        """Its clients: it has all three."""
        return CLIENTS


@dataclass(frozen=True)
class SinkAccess:
    """A sink connector: its clients' principals and the cluster that each uses, as bootstrap servers.

    ``group`` is None where only its workers can resolve it. ``topics`` are those that it names; ``regex`` is the pattern
    that it has in their place, empty where it has none.
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
        """Its clients: without a topic for dead letters, a consumer only."""
        return CLIENTS if self.dead_letters else (Client.CONSUMER,)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """``regex``; None if it has none, or one that Python cannot compile."""
        try:
            return re.compile(self.regex) if self.regex else None
        except re.error:
            return None

    @property
    def prefix(self) -> str:
        """What the name of every topic that ``regex`` matches begins with, as far as that can be said."""
        return literal_prefix(self.regex)


@dataclass(frozen=True)
class AclFacts:
    """All that the checks look at. ``hosts`` are the workers' addresses as the brokers see them, ``*`` if none is known.

    ``clusters`` are by bootstrap servers; one that could not be looked at is not there. ``groups`` are the other Connect
    clusters on the workers' Kafka cluster. ``said`` is what the person said of principals.
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
    said: Principals = field(default_factory=Principals)

    def guarded(self, cluster: str) -> ClusterAcls | None:
        """The Kafka cluster at these bootstrap servers, if it could be observed and has an authorizer."""
        there = self.clusters.get(cluster)
        return there if there is not None and there.acls is not None else None


def observe(context: CheckContext, said: Principals) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
    """The facts, and what could not be seen; no facts where not even the workers' own Kafka cluster tells its ACLs.

    Without an authorizer on the brokers nothing is asked further, because everything is allowed.
    """
    edges = context.edges
    home = look("the ACLs of the workers' Kafka cluster", edges.acls, said)
    if isinstance(home, Unseen):
        return None, (home,)
    sources = [each for each in context.checked if each.type == "source"]
    sinks = [each for each in context.checked if each.type == "sink"]
    clusters, spelled, lost = look_elsewhere(edges.other_acls, [*sources, *sinks], home, said)
    guarded = [cluster for cluster in clusters.values() if cluster.acls is not None]
    targets = _targets(edges.calls, sources, context.recorded, lost) if guarded else {}
    facts = AclFacts(
        group_id=context.group.id,
        bootstrap=home.bootstrap,
        clusters=clusters,
        worker=said.worker,
        internal=tuple(context.internal.values()),
        sources=tuple(_source(c, context, spelled, said, targets.get(c.name, ())) for c in sources),
        sinks=tuple(_sink(c, spelled, said) for c in sinks),
        hosts=tuple(sorted({m.host.rpartition("/")[2] for m in context.group.members if m.host})) or (ANY,),
        groups=_groups(edges, lost) - {context.group.id} if home.acls is not None else frozenset(),
        enabled_now=bool(context.enabled),
        said=said,
    )
    unknown = (*_unknown(facts, [*sources, *sinks], said), *_unseen_of_sinks(facts))
    return facts, (*lost, *unknown, *_other_authorizers(guarded))


def _groups(edges: Edges, lost: list[Unseen]) -> frozenset[str]:
    what = "the other Connect clusters, whose transactional ids a pattern may cover"
    groups = answer_of(lambda: edges.transactions().connect_groups(), lost, what) or Complete(frozenset())
    lost += [Unseen(what, gap.why, gap.next_step) for gap in groups.gaps]
    return groups.seen


def _targets(
    calls: ConnectCalls, sources: Sequence[Connector], recorded: Recorded | None, lost: list[Unseen]
) -> dict[str, tuple[str, ...]]:
    """The topics that each connector is known to have written to (KIP-558)."""
    if recorded is not None and len(sources) > FEW:
        active, silent = active_topics(calls, [connector.name for connector in sources], recorded)
        lost += silent
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
        lost.append(unseen_by(f"the topics that {some_of(sorted(failed), 3)} write to", failed[min(failed)]))
    return found


def _clients(connector: Connector, spelled: Spelled, said: Principals) -> tuple[dict[Client, str], dict[Client, str]]:
    """The principals of its clients, as far as they are known, and the clusters that they use."""
    config = connector.config
    identities = {role: principal_of(connector.name, role, config, said).principal for role in CLIENTS}
    clusters = {role: spelled[config.get(f"{role.prefix}bootstrap.servers") or None] for role in CLIENTS}
    return {role: principal for role, principal in identities.items() if principal}, clusters


def _source(
    connector: Connector, context: CheckContext, spelled: Spelled, said: Principals, targets: tuple[str, ...]
) -> SourceAccess:
    config = connector.config
    principals, clusters = _clients(connector, spelled, said)
    worker = context.internal.get("offsets")
    own = config.get(_DEDICATED)
    return SourceAccess(
        name=connector.name,
        ids=_ids(connector, context.state),
        principals=principals,
        clusters=clusters,
        offsets_topic=own or worker,
        dedicated=own is not None and (own != worker or clusters[Client.PRODUCER] != spelled[None]),
        targets=targets,
        creates_topics=any(name.startswith(_CREATION) for name in config),
    )


def _sink(connector: Connector, spelled: Spelled, said: Principals) -> SinkAccess:
    config = connector.config
    principals, clusters = _clients(connector, spelled, said)
    group = sink_group(connector.name, config)
    regex = config.get(_REGEX, "").strip()
    return SinkAccess(
        name=connector.name,
        principals=principals,
        clusters=clusters,
        group=None if has_reference(group) else group,
        topics=() if regex else tuple(sorted(topics_of_sink(config))),
        regex=regex,
        dead_letters=config.get(_DEAD_LETTERS, "").strip() or None,
    )


def _ids(connector: Connector, state: ConfigState | None) -> int:
    """How many transactional ids tasks use or used: asked for, there now, and of the last round of fencing."""
    asked = whole_number(connector.config.get("tasks.max"), MOST_TASKS) or 1
    known = state.connectors.get(connector.name) if state else None
    counts = [known.task_count, known.task_count_record or 0] if known else []
    return max(asked, len(connector.tasks), *counts)


def _unknown(facts: AclFacts, connectors: Sequence[Connector], said: Principals) -> Iterator[Unseen]:
    """Unknown principals: one line for all that only the workers' properties say, one for each other reason."""
    reasons: dict[str, dict[str, list[str]]] = {}
    known: tuple[SourceAccess | SinkAccess, ...] = (*facts.sources, *facts.sinks)
    for access, connector in zip(known, connectors, strict=True):
        for role in access.roles:
            who = principal_of(access.name, role, connector.config, said)
            if who.principal is None and facts.guarded(access.clusters[role]):
                reasons.setdefault(who.why, {}).setdefault(access.name, []).append(role)
    clients = reasons.pop(IN_WORKERS_PROPERTIES, {})
    if clients or (facts.worker is None and facts.guarded(facts.bootstrap)):
        beside = f" and of the clients of {some_of([*clients], 3)}" if clients else ""
        what = f"the permissions of the workers{beside}"
        yield Unseen(what, f"their principals are not given: {IN_WORKERS_PROPERTIES}", "Give --principal User:NAME.")
    for why, names in reasons.items():
        for name, roles in names.items():
            say = f"Give --principal {name}:{roles[0]}=User:NAME."
            yield Unseen(
                f"the permissions of the {' and '.join(roles)} of {name}", f"its principal is unknown: {why}", say
            )


def _unseen_of_sinks(facts: AclFacts) -> Iterator[Unseen]:
    """What cannot be known from the configuration of a sink."""
    for sink in facts.sinks:
        if facts.guarded(sink.clusters[Client.CONSUMER]) is None:
            continue
        if sink.group is None:
            why = "only its workers can resolve consumer.override.group.id"
            yield Unseen(f"the permissions of {sink.name} on its group", why, "Check Read on that group by hand.")
        if sink.regex and sink.pattern is None:
            why = f"{_REGEX} {sink.regex} is not a pattern that Python reads as Java does"
            yield Unseen(f"the permissions of {sink.name} on its topics", why, "Check Read on those topics by hand.")


def _other_authorizers(clusters: Iterable[ClusterAcls]) -> Iterator[Unseen]:
    for cluster in clusters:
        if cluster.acls is not None and cluster.acls.authorizer.decides_by_more:
            name = cluster.acls.authorizer.class_name
            why = f"the brokers at {cluster.bootstrap} use {name}, which may decide by more than ACLs"
            yield Unseen("permissions that are not ACLs", why, "Ask the administrator of that authorizer.")


def literal_prefix(regex: str) -> str:
    """The literal text at the beginning of a Java pattern: ``orders.`` of ``orders\\..*``; empty where it has none."""
    if "|" in regex:
        return ""
    found, rest = "", regex.removeprefix("^")
    while rest:
        size = 2 if rest[0] == "\\" and rest[1:2] in _SPECIAL else 1
        if (size == 1 and rest[0] in _SPECIAL) or rest[size : size + 1] in _REPEATS:
            break
        found, rest = found + rest[size - 1], rest[size:]
    return found
