"""STORE001 to STORE012: rules over ``offset_stores.observe``. Pure.

The OFFSETS findings of the connectors are included, except those for which a rule here has more
details.
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.offset_stores.observe import (
    ConnectorStore,
    StoreFacts,
    names,
    target_mode,
)
from connectctl.ops.connect.goal import Goal, downgrade_severity
from connectctl.ops.connect.last_commit import Commits, Side, age_difference, is_copied, last_commit
from connectctl.ops.connect.offset_store import Kind, StoreMode
from connectctl.ops.connect.release import release_of
from connectctl.ops.connect.source_offsets import SourceOffset
from connectctl.ops.connector_config import silent_rules
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule

_INSTEAD = {
    "OFFSETS001": ("STORE001",),
    "OFFSETS010": ("STORE004", "STORE003", "STORE001"),
    "OFFSETS013": ("STORE002",),
}
"""The rules here that have more details than a finding about offsets."""
_FIRST_BROKEN_RESET, _LAST_KNOWN = (3, 8), (4, 3)


@Several
def of_offsets(facts: StoreFacts, goal: Goal) -> Iterator[Finding]:
    """Yield OFFSETS001–018, except those for which a rule here has more details."""
    more_detailed = (loses_offsets, stale, cannot_be_created, will_be_created)
    reported = {
        (found.id, found.subject)
        for rule_ in more_detailed
        for found in rule_.findings(facts, goal)
    }
    known = {store.name for store in facts.connectors if store.offsets is not None}
    for finding in facts.offsets_findings:
        if any((id_, finding.subject) in reported for id_ in _INSTEAD.get(finding.id, ())):
            continue
        # OFFSETS015 about a requested separate topic is no fault; about the others STORE005 has
        # more details.
        if finding.id == "OFFSETS015" and finding.subject in known:
            continue
        # OFFSETS019 is about REST; the order of members in the keys that the connector's own tasks
        # look up is unknown.
        if finding.id != "OFFSETS019":
            yield finding


def _severity(severity: Severity, store: ConnectorStore, goal: Goal) -> Severity:
    """Return the severity of a fault that only the step after ``preparing`` causes."""
    return downgrade_severity(severity, goal) if store.now != store.target else severity


def _same_topic(facts: StoreFacts, connector: ConnectorStore) -> bool:
    """Return whether the separate store is the workers' own topic in another spelling of the
    servers.
    """
    store = connector.target
    return (
        store.kind is Kind.SEPARATE
        and store.topic == facts.offsets_topic
        and facts.is_workers(store.bootstrap)
    )


def _lost(store: ConnectorStore) -> list[SourceOffset]:
    return (
        [entry for entry in store.offsets.offsets if entry.origin == "global" and entry.lost]
        if store.offsets
        else []
    )


def _seeded(store: ConnectorStore) -> bool:
    """Return whether the separate topic has any offset of the connector."""
    sides = [entry.dedicated for entry in store.offsets.offsets] if store.offsets else []
    return any(side is not None and not side.tombstone for side in sides)


def _topic_text(connector: ConnectorStore) -> str:
    store = connector.target
    return f"{store.topic} on {store.bootstrap}" if store.bootstrap else store.topic


def _seed_hint(store: ConnectorStore) -> str:
    merge = f"connectctl offsets merge {store.name} --into dedicated --stop"
    if not store.target.implicit or store.now == store.target:
        return merge
    return (
        f"Before exactly-once is enabled: connectctl connectors stop {store.name} --wait, set "
        f"offsets.storage.topic={store.name}-offsets on it, then {merge}"
    )


@rule("STORE001", Severity.ERROR, each="connectors")
def loses_offsets(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE001 for a separate topic that lacks offsets which the global topic has."""
    lost = _lost(store)
    if (
        store.target.kind is not Kind.SEPARATE
        or not lost
        or (_seeded(store) and store.now == store.target)
    ):
        return None
    count = "1 source partition" if len(lost) == 1 else f"{len(lost):,} source partitions"
    how = (
        ", which it gets implicitly because it writes to other bootstrap servers"
        if store.target.implicit
        else ""
    )
    message = (
        f"Its offsets are in {facts.offsets_topic} and not in its dedicated topic "
        f"{_topic_text(store)}{how}: its tasks restart {count} from the beginning, for example "
        f"{lost[0].key.text}."
    )
    severity = _severity(Severity.ERROR, store, goal)
    return Case(store.name, message, _seed_hint(store), severity=severity)


@rule("STORE002", Severity.ERROR, each="connectors")
def stale(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE002 for an outdated separate topic that is about to be used again."""
    if (
        store.target.kind is not Kind.SEPARATE
        or store.now == store.target
        or _same_topic(facts, store)
    ):
        return None
    for entry in store.offsets.offsets if store.offsets else ():
        last = last_commit(entry.global_, entry.dedicated, Commits(Side.GLOBAL))
        if last.stale:
            message = (
                f"Its dedicated topic {_topic_text(store)} is {age_difference(last)} older than "
                f"{facts.offsets_topic} for {entry.key.text}, and takes precedence as soon as "
                "exactly-once is enabled: its tasks go back to the older offset."
            )
            return Case(
                store.name,
                message,
                _seed_hint(store),
                severity=_severity(Severity.ERROR, store, goal),
            )
    return None


def _missing(facts: StoreFacts, store: ConnectorStore) -> bool:
    cluster = facts.cluster(store.target.bootstrap)
    return (
        store.target.kind is Kind.SEPARATE
        and cluster is not None
        and store.target.topic not in cluster.topics
    )


def _replicas(facts: StoreFacts) -> int:
    """Return the workers' ``offset.storage.replication.factor`` by the replicas of the global
    topic.
    """
    workers = facts.cluster(None)
    known = workers.topics.get(facts.offsets_topic) if workers else None
    return max(known.replicas.values(), default=0) if known else 0


@rule("STORE003", Severity.ERROR, each="connectors")
def cannot_be_created(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE003 for a topic that needs more brokers than exist."""
    cluster = facts.cluster(store.target.bootstrap)
    if cluster is None or not _missing(facts, store) or _replicas(facts) <= cluster.brokers:
        return None
    message = (
        f"Its dedicated topic {_topic_text(store)} does not exist, and cannot be created there: "
        f"the workers require {_replicas(facts)} replicas, as {facts.offsets_topic} has, of "
        f"{cluster.brokers} brokers."
    )
    hint = f"Create {store.target.topic} there with cleanup.policy=compact and fewer replicas."
    return Case(store.name, message, hint, severity=_severity(Severity.ERROR, store, goal))


@rule("STORE004", Severity.INFO, each="connectors")
def will_be_created(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE004 for a topic that the workers will create, if no offset gets lost."""
    cluster = facts.cluster(store.target.bootstrap)
    if (
        cluster is None
        or not _missing(facts, store)
        or _replicas(facts) > cluster.brokers
        or _lost(store)
    ):
        return None
    message = (
        f"Its dedicated topic {_topic_text(store)} does not exist yet; the connector's admin "
        "client creates it at the next start, like the workers' own, and needs the right to "
        "Create it."
    )
    hint = (
        f"Let its admin principal Create {store.target.topic}, or create it with "
        "cleanup.policy=compact."
    )
    return Case(store.name, message, hint)


@rule("STORE005", Severity.WARNING, each="connectors")
def two_spellings(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE005 for the workers' own topic that Connect treats as a second store."""
    if not _same_topic(facts, store):
        return None
    sure = "" if facts.bootstrap_configured else " (unless the workers use the same spelling)"
    message = (
        f"Its producer's bootstrap servers {store.target.bootstrap} are those of the workers' own "
        f"Kafka cluster in another spelling than {facts.bootstrap}{sure}: Connect treats "
        f"{store.target.topic} as two stores, and writes every offset twice."
    )
    hint = (
        f"Remove producer.override.bootstrap.servers from {store.name}, or spell it as the "
        "workers' bootstrap.servers."
    )
    return Case(store.name, message, hint)


@rule("STORE006", Severity.ERROR, each="connectors")
def internal_topic(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE006 for a dedicated topic that is the workers' config or status topic."""
    roles = {facts.internal.get(role): role for role in ("config", "status")}
    role = roles.get(store.target.topic)
    if (
        role is None
        or store.target.kind is not Kind.SEPARATE
        or not facts.is_workers(store.target.bootstrap)
    ):
        return None
    message = f"Its dedicated topic {store.target.topic} is the workers' {role} topic."
    return Case(store.name, message, f"Set offsets.storage.topic={store.name}-offsets on it.")


@rule("STORE007", Severity.ERROR, each="connectors")
def split_clients(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE007 for offsets that are written to one Kafka cluster and read from another."""
    if store.target.kind is Kind.WORKERS:
        return None
    clusters = {client: facts.cluster(bootstrap) for client, bootstrap in store.clients.items()}
    writes = clusters.get("producer")
    elsewhere = [
        client
        for client in ("consumer", "admin")
        if writes and (cluster := clusters.get(client)) and cluster.id != writes.id
    ]
    if not elsewhere:
        return None
    message = (
        f"Its producer writes to {store.clients['producer']}, and its {' and '.join(elsewhere)} "
        f"{'connect' if len(elsewhere) > 1 else 'connects'} to {store.clients[elsewhere[0]]}, "
        "another Kafka cluster: its offsets are written where they are not read."
    )
    hint = "; ".join(
        f"{client}.override.bootstrap.servers={store.clients['producer']}" for client in elsewhere
    )
    return Case(store.name, message, f"Set {hint}", severity=_severity(Severity.ERROR, store, goal))


@Several
def own_target(facts: StoreFacts, goal: Goal) -> Iterator[Finding]:
    """Yield STORE008 for connectors that write their records to an offsets topic of their own.

    ``target_rules`` has this rule for files.
    """
    for store in facts.connectors:
        writes_to = store.clients.get("producer")
        offsets_topics = {store.target.topic} if store.target.kind is not Kind.WORKERS else set()
        offsets_topics |= {facts.offsets_topic} if facts.is_workers(writes_to) else set()
        if hit := sorted(offsets_topics & store.targets):
            refused = (
                target_mode(facts.mode, goal) is StoreMode.ENABLED and store.target.topic in hit
            )
            message = f"It writes its records to {hit[0]}, where its source offsets are."
            message += (
                " With exactly-once enabled its tasks fail at the first record." if refused else ""
            )
            severity = _severity(Severity.ERROR, store, goal) if refused else Severity.WARNING
            yield silent_rules.own_target.found(
                store.name, message, "Give it another target topic.", severity=severity
            )


@rule("STORE009", Severity.INFO, each="connectors")
def implicit(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE009 for a dedicated topic that exactly-once brings about, if no offset gets
    lost.
    """
    if (
        store.now == store.target
        or not store.target.implicit
        or _lost(store)
        or facts.is_workers(store.target.bootstrap)
    ):
        return None
    message = (
        f"It writes to {store.target.bootstrap}. With exactly-once enabled its offsets move "
        f"there, to a topic that is named {store.target.topic} like the workers' own."
    )
    return Case(
        store.name,
        message,
        f"Set offsets.storage.topic={store.name}-offsets on it, for a name of its own.",
    )


@rule("STORE010", Severity.WARNING, each="connectors")
def orphaned_topic(facts: StoreFacts, store: ConnectorStore, goal: Goal) -> Case | None:
    """Return STORE010 for offsets that only the dedicated topic has when workers stop reading
    it.
    """
    is_left = goal is Goal.DOWNGRADE or (goal is Goal.PREPARING and facts.mode is StoreMode.ENABLED)
    if not is_left or store.now.kind is not Kind.SEPARATE or store.offsets is None:
        return None
    now_ms, running = facts.taken_at * 1000, not store.at_rest
    ahead = [
        entry
        for entry in store.offsets.offsets
        if not is_copied(entry.global_, entry.dedicated, now_ms, running=running)
    ]
    if not ahead:
        return None
    when = (
        "Workers before 3.3"
        if store.target.kind is Kind.SEPARATE
        else "After the downgrade workers"
    )
    message = (
        f"{when} read only {facts.offsets_topic}, which is behind {store.now.topic} for "
        f"{len(ahead):,} source partitions, for example {ahead[0].key.text}: its tasks write the "
        "records since then again."
    )
    severity = Severity.INFO if store.target.kind is Kind.SEPARATE else Severity.WARNING
    hint = f"connectctl offsets merge {store.name} --into global --stop"
    return Case(store.name, message, hint, severity=severity)


@rule("STORE011", Severity.INFO)
def shared(facts: StoreFacts, goal: Goal) -> Iterator[Case]:
    """Yield STORE011 for a dedicated topic that several connectors name."""
    by_topic: dict[tuple[str, str], list[ConnectorStore]] = {}
    for store in facts.connectors:
        if store.target.kind is Kind.SEPARATE and not store.target.implicit:
            cluster = facts.cluster(store.target.bootstrap)
            cluster_id = cluster.id if cluster else str(store.target.bootstrap)
            by_topic.setdefault((cluster_id, store.target.topic), []).append(store)
    for (_, topic), connectors in sorted(by_topic.items()):
        if len(connectors) > 1:
            message = (
                f"It is the dedicated offsets topic of {len(connectors)} connectors: "
                f"{names(connectors)}."
            )
            yield Case(topic, message, "Set another offsets.storage.topic on all but one of them.")


@rule("STORE012", Severity.INFO)
def reset_fails(facts: StoreFacts, goal: Goal) -> Case | None:
    """Return STORE012 for connectors whose offsets the workers' own REST API cannot reset."""
    release = release_of(facts.version)
    affected = [store for store in facts.connectors if store.target.kind is Kind.SEPARATE]
    broken = release is not None and _FIRST_BROKEN_RESET <= release[:2] <= _LAST_KNOWN
    if not affected or not broken or target_mode(facts.mode, goal) is not StoreMode.ENABLED:
        return None
    message = (
        f"DELETE /connectors/…/offsets fails for them on {facts.version} with exactly-once "
        "enabled, and leaves their global offsets deleted and the dedicated ones in place."
    )
    return Case(names(affected), message, f"connectctl offsets reset {affected[0].name} --stop")
