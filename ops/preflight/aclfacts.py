"""Looks at all that the checks of ACLs need: bindings and topics of every Kafka cluster concerned, and who is who."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model.acls import ANY, Acls, Authorizer
from connectctl.ops.model.connector import path_of
from connectctl.ops.preflight.facts import Unseen
from connectctl.ops.preflight.principals import CLIENTS, IN_WORKERS_PROPERTIES, Principals, Role, principal_of

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import AclReads, ConnectCalls
    from connectctl.ops.model.configtopic import ConfigState
    from connectctl.ops.model.connector import Connector
    from connectctl.ops.model.membership import ConnectGroup

MOST_AT_ONCE = 16
_DEDICATED, _CREATION = "offsets.storage.topic", "topic.creation."


@dataclass(frozen=True)
class ClusterAcls:
    """A Kafka cluster: its ACLs, None where it has no authorizer, and the topics that exist."""

    bootstrap: str
    cluster_id: str
    acls: Acls | None
    topics: frozenset[str] = frozenset()
    wants_idempotent_write: bool = False


@dataclass(frozen=True)
class SourceAccess:
    """A source connector: who its clients are and to which cluster each speaks, as bootstrap servers.

    ``ids`` is how many transactional ids it needs. ``offsets_topic`` is the one that it uses with exactly-once support;
    ``dedicated`` says that it is not the workers' one, and is used without that support, too.
    """

    name: str
    ids: int
    principals: Mapping[Role, str]
    clusters: Mapping[Role, str]
    offsets_topic: str | None = None
    dedicated: bool = False
    targets: tuple[str, ...] = ()
    creates_topics: bool = False


@dataclass(frozen=True)
class AclFacts:
    """All that the checks look at. ``hosts`` are the workers' addresses as the brokers see them, ``*`` if none is known.

    ``clusters`` are by the bootstrap servers by which they were asked for; one that could not be looked at is not there.
    ``groups`` are the other Connect clusters on the workers' Kafka cluster.
    """

    group_id: str
    bootstrap: str
    clusters: Mapping[str, ClusterAcls]
    worker: str | None = None
    internal: tuple[str, ...] = ()
    sources: tuple[SourceAccess, ...] = ()
    hosts: tuple[str, ...] = (ANY,)
    groups: frozenset[str] = frozenset()
    enabled_now: bool = False


@dataclass(frozen=True)
class Sight:
    """What was seen of the Connect cluster before. ``internal`` are its topics by role: config, offsets, status.

    ``enabled`` says that a worker was proven to have exactly-once support enabled; ``groups`` are all groups of Connect
    workers that can be seen.
    """

    group: ConnectGroup
    connectors: Sequence[Connector]
    internal: Mapping[str, str | None]
    state: ConfigState | None = None
    enabled: bool = False
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asking:
    """Whom to ask: the workers' Kafka cluster, another one (by a connector's overrides), and the workers, if any answers."""

    acls: Callable[[], AclReads]
    other: Callable[[str, Mapping[str, str]], AclReads]
    calls: ConnectCalls | None = None


@dataclass
class _Notes:
    """What could not be looked at, while looking."""

    unseen: list[Unseen] = field(default_factory=list)

    def add(self, what: str, error: ConnectctlError) -> None:
        why = f"{error.what}: {error.why}" if error.why else error.what
        self.unseen.append(Unseen(what, why.rstrip("."), error.next_step))


def observe(asking: Asking, sight: Sight, said: Principals) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
    """The facts, and what could not be seen; no facts where not even the workers' own Kafka cluster tells its ACLs.

    Without an authorizer on the brokers nothing is asked further, because everything is allowed.
    """
    notes = _Notes()
    home = _cluster("the ACLs of the workers' Kafka cluster", asking.acls, said, notes)
    if home is None:
        return None, tuple(notes.unseen)
    sources = [c for c in sight.connectors if c.type == "source"]
    clusters, spelled = _others(asking, sources, home, said, notes)
    guarded = any(cluster.acls is not None for cluster in clusters.values())
    targets = _targets(asking.calls, sources, notes) if guarded else {}
    facts = AclFacts(
        group_id=sight.group.id,
        bootstrap=home.bootstrap,
        clusters=clusters,
        worker=said.worker,
        internal=tuple(name for name in sight.internal.values() if name),
        sources=tuple(_source(c, sight, (home.bootstrap, spelled), said, targets.get(c.name, ())) for c in sources),
        hosts=tuple(sorted({m.host.rpartition("/")[2] for m in sight.group.members if m.host})) or (ANY,),
        groups=sight.groups - {sight.group.id},
        enabled_now=sight.enabled,
    )
    return facts, (*notes.unseen, *_unknown(facts, sources, said), *_other_authorizers(clusters.values()))


def _cluster(
    what: str, opened: Callable[[], AclReads], said: Principals, notes: _Notes, known: Sequence[ClusterAcls] = ()
) -> ClusterAcls | None:
    try:
        edge = opened()
        if same := [cluster for cluster in known if cluster.cluster_id == edge.cluster_id()]:
            return same[0]
        bindings = edge.bindings()
        if bindings is None:
            return ClusterAcls(edge.bootstrap, edge.cluster_id(), None)
        topics, old = edge.topic_names(), edge.wants_idempotent_write()
    except ConnectctlError as e:
        notes.add(what, e)
        return None
    try:
        authorizer = edge.authorizer()
    except ConnectctlError:
        # Without it the ACLs are judged as if nothing but them decided; the findings say what to do about super users.
        authorizer = Authorizer()
    users = (authorizer.super_users or frozenset()) | said.super_users
    complete = Authorizer(authorizer.class_name, users or authorizer.super_users, authorizer.open_by_default)
    return ClusterAcls(edge.bootstrap, edge.cluster_id(), Acls(bindings, complete), topics, old)


def _others(
    asking: Asking, sources: Iterable[Connector], home: ClusterAcls, said: Principals, notes: _Notes
) -> tuple[dict[str, ClusterAcls], dict[str, str]]:
    """The other clusters that connectors speak to, and for every spelling of bootstrap servers the one that is used here.

    Each is asked with the overrides of the first connector that names it. Another listener of a cluster that is known
    already is that cluster, whose ACLs whoever has asked before may list.
    """
    wanted: dict[str, Mapping[str, str]] = {}
    for connector in sources:
        for role in CLIENTS:
            if bootstrap := connector.config.get(f"{role.prefix}bootstrap.servers"):
                wanted.setdefault(bootstrap, _overrides(connector, role))
    found, spelled = {home.bootstrap: home}, {}
    for bootstrap, overrides in wanted.items():
        known = next((b for b in found if _servers(b) == _servers(bootstrap)), None)
        if known is None:
            what = f"the ACLs of the Kafka cluster at {bootstrap}"
            other = _cluster(what, partial(asking.other, bootstrap, overrides), said, notes, tuple(found.values()))
            if other is not None:
                known = other.bootstrap
                found.setdefault(known, other)
        spelled[bootstrap] = known or bootstrap
    return found, spelled


def _servers(bootstrap: str) -> frozenset[str]:
    return frozenset(filter(None, (server.strip() for server in bootstrap.split(","))))


def _overrides(connector: Connector, role: Role) -> dict[str, str]:
    return {n.removeprefix(role.prefix): v for n, v in connector.config.items() if n.startswith(role.prefix)}


def _targets(calls: ConnectCalls | None, sources: Sequence[Connector], notes: _Notes) -> dict[str, tuple[str, ...]]:
    """The topics that each connector is known to have written to (KIP-558)."""
    failed: dict[str, ConnectctlError] = {}

    def ask(connector: Connector) -> tuple[str, ...]:
        try:
            if calls is None:
                raise ConnectctlError("no worker answers")
            answer = calls.get(path_of("connectors", connector.name, "topics"))
            return tuple(sorted(answer.get(connector.name, {}).get("topics", ())))
        except ConnectctlError as e:
            failed[connector.name] = e
            return ()

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        found = dict(zip([c.name for c in sources], pool.map(ask, sources), strict=True))
    if failed:
        notes.add(f"the topics that {_named(sorted(failed))} write to", failed[min(failed)])
    return found


def _source(
    connector: Connector,
    sight: Sight,
    where: tuple[str, Mapping[str, str]],
    said: Principals,
    targets: tuple[str, ...],
) -> SourceAccess:
    config, (home, spelled) = connector.config, where
    identities = {role: principal_of(connector.name, role, config, said).principal for role in CLIENTS}
    given = {role: config.get(f"{role.prefix}bootstrap.servers") for role in CLIENTS}
    clusters = {role: spelled[bootstrap] if bootstrap else home for role, bootstrap in given.items()}
    worker = sight.internal.get("offsets")
    own = config.get(_DEDICATED)
    return SourceAccess(
        name=connector.name,
        ids=_ids(connector, sight.state),
        principals={role: principal for role, principal in identities.items() if principal},
        clusters=clusters,
        offsets_topic=own or worker,
        dedicated=own is not None and (own != worker or clusters[Role.PRODUCER] != home),
        targets=targets,
        creates_topics=any(name.startswith(_CREATION) for name in config),
    )


def _ids(connector: Connector, state: ConfigState | None) -> int:
    """How many transactional ids tasks use or used: asked for, there now, and of the last round of fencing."""
    asked = connector.config.get("tasks.max", "1").strip()
    known = state.connectors.get(connector.name) if state else None
    counts = [known.task_count, known.task_count_record or 0] if known else []
    return max(int(asked) if asked.isascii() and asked.isdigit() else 1, 1, len(connector.tasks), *counts)


def _unknown(facts: AclFacts, sources: Sequence[Connector], said: Principals) -> Iterator[Unseen]:
    """Principals that nobody told: one line for all that only the workers' properties say, one for each other reason."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for source, connector in zip(facts.sources, sources, strict=True):
        for role in CLIENTS:
            there = facts.clusters.get(source.clusters[role])
            who = principal_of(source.name, role, connector.config, said)
            if who.principal is None and there is not None and there.acls is not None:
                reasons.setdefault(who.why, {}).setdefault(source.name, []).append(role)
    clients = reasons.pop(IN_WORKERS_PROPERTIES, {})
    home = facts.clusters[facts.bootstrap]
    if clients or (facts.worker is None and home.acls is not None):
        beside = f" and of the clients of {_named(list(clients))}" if clients else ""
        what = f"the permissions of the workers{beside}"
        yield Unseen(what, f"who they are is not given: {IN_WORKERS_PROPERTIES}", "Give --principal User:NAME.")
    for why, names in reasons.items():
        for name, roles in names.items():
            say = f"Give --principal {name}:{roles[0]}=User:NAME."
            yield Unseen(
                f"the permissions of the {' and '.join(roles)} of {name}", f"who it is cannot be seen: {why}", say
            )


def _other_authorizers(clusters: Iterable[ClusterAcls]) -> Iterator[Unseen]:
    for cluster in clusters:
        if cluster.acls is not None and cluster.acls.authorizer.decides_by_more:
            name = cluster.acls.authorizer.class_name
            why = f"the brokers at {cluster.bootstrap} use {name}, which may decide by more than ACLs"
            yield Unseen("permissions that are no ACLs", why, "Ask whoever administers that authorizer.")


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
