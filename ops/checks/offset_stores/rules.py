"""What can go wrong with where source connectors keep their offsets: rules over ``offset_stores.observe``, pure.

They include the OFFSETS findings of the connectors, without those of which a rule here says more.
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.connector_config import target_rules
from connectctl.ops.checks.offset_stores.observe import ConnectorStore, StoreFacts, names, target_mode
from connectctl.ops.checks.types import Goal, downgrade_severity
from connectctl.ops.connect.last_commit import Commits, Side, age_difference, is_copied, last_commit
from connectctl.ops.connect.offset_store import Kind, StoreMode
from connectctl.ops.connect.release import release_of
from connectctl.ops.connect.source_offsets import SourceOffset
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule

_INSTEAD = {
    "OFFSETS001": ("STORE001",),
    "OFFSETS010": ("STORE004", "STORE003", "STORE001"),
    "OFFSETS013": ("STORE002",),
}
"""The rules here that say more than one about offsets."""
_FIRST_BROKEN_RESET, _LAST_KNOWN = (3, 8), (4, 3)


@Several
def of_offsets(facts: StoreFacts, goal: Goal) -> Iterator[Finding]:
    """OFFSETS001–018, where no rule here says more."""
    better = (loses_its_place, stale, cannot_be_created, will_be_created)
    reported = {(found.id, found.subject) for each in better for found in each.findings(facts, goal)}
    known = {each.name for each in facts.connectors if each.offsets is not None}
    for finding in facts.offsets_findings:
        if any((id_, finding.subject) in reported for id_ in _INSTEAD.get(finding.id, ())):
            continue
        # Of a separate topic that was requested it reports no fault; of the others STORE005 reports more.
        if finding.id == "OFFSETS015" and finding.subject in known:
            continue
        # The order of members concerns what REST returns; what the connector's own tasks look up is unknown.
        if finding.id != "OFFSETS019":
            yield finding


def _softly(rule_is: Severity, each: ConnectorStore, goal: Goal) -> Severity:
    """Return the severity of what only the step after ``preparing`` brings about."""
    return downgrade_severity(rule_is, goal) if each.now != each.then else rule_is


def _same_topic(facts: StoreFacts, each: ConnectorStore) -> bool:
    """Return whether the separate store is the workers' own topic, reached by another spelling."""
    store = each.then
    return store.kind is Kind.SEPARATE and store.topic == facts.offsets_topic and facts.is_workers(store.bootstrap)


def _lost(each: ConnectorStore) -> list[SourceOffset]:
    return [entry for entry in each.offsets.offsets if entry.origin == "global" and entry.lost] if each.offsets else []


def _seeded(each: ConnectorStore) -> bool:
    """Return whether the separate topic has any offset of the connector."""
    sides = [entry.dedicated for entry in each.offsets.offsets] if each.offsets else []
    return any(side is not None and not side.tombstone for side in sides)


def _where(each: ConnectorStore) -> str:
    store = each.then
    return f"{store.topic} on {store.bootstrap}" if store.bootstrap else store.topic


def _seed(each: ConnectorStore) -> str:
    merge = f"connectctl offsets merge {each.name} --into dedicated --stop"
    if not each.then.implicit or each.now == each.then:
        return merge
    return (
        f"Before exactly-once is enabled: connectctl connectors stop {each.name} --wait, set "
        f"offsets.storage.topic={each.name}-offsets on it, then {merge}"
    )


@rule("STORE001", Severity.ERROR, each="connectors")
def loses_its_place(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE001, for a separate topic without what the global one has of the connector."""
    lost = _lost(each)
    if each.then.kind is not Kind.SEPARATE or not lost or (_seeded(each) and each.now == each.then):
        return None
    count = "1 source partition" if len(lost) == 1 else f"{len(lost):,} source partitions"
    how = ", which it gets implicitly because it writes to other bootstrap servers" if each.then.implicit else ""
    message = (
        f"Its offsets are in {facts.offsets_topic} and not in its dedicated topic {_where(each)}{how}: its tasks restart "
        f"{count} from the beginning, for example {lost[0].key.text}."
    )
    severity = _softly(Severity.ERROR, each, goal)
    return Case(each.name, message, _seed(each), severity=severity)


@rule("STORE002", Severity.ERROR, each="connectors")
def stale(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE002, for a separate topic of earlier times that is about to be used again."""
    if each.then.kind is not Kind.SEPARATE or each.now == each.then or _same_topic(facts, each):
        return None
    for entry in each.offsets.offsets if each.offsets else ():
        last = last_commit(entry.global_, entry.dedicated, Commits(Side.GLOBAL))
        if last.stale:
            message = (
                f"Its dedicated topic {_where(each)} is {age_difference(last)} older than {facts.offsets_topic} for "
                f"{entry.key.text}, and takes precedence as soon as exactly-once is enabled: its tasks go back to the "
                "older offset."
            )
            return Case(each.name, message, _seed(each), severity=_softly(Severity.ERROR, each, goal))
    return None


def _missing(facts: StoreFacts, each: ConnectorStore) -> bool:
    cluster = facts.cluster(each.then.bootstrap)
    return each.then.kind is Kind.SEPARATE and cluster is not None and each.then.topic not in cluster.topics


def _replicas(facts: StoreFacts) -> int:
    """What the global topic shows of the workers' ``offset.storage.replication.factor``."""
    here = facts.cluster(None)
    known = here.topics.get(facts.offsets_topic) if here else None
    return max(known.replicas.values(), default=0) if known else 0


@rule("STORE003", Severity.ERROR, each="connectors")
def cannot_be_created(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE003, for a topic that needs more brokers than there are."""
    there = facts.cluster(each.then.bootstrap)
    if there is None or not _missing(facts, each) or _replicas(facts) <= there.brokers:
        return None
    message = (
        f"Its dedicated topic {_where(each)} does not exist, and cannot be created there: the workers require "
        f"{_replicas(facts)} replicas, as {facts.offsets_topic} has, of {there.brokers} brokers."
    )
    hint = f"Create {each.then.topic} there with cleanup.policy=compact and fewer replicas."
    return Case(each.name, message, hint, severity=_softly(Severity.ERROR, each, goal))


@rule("STORE004", Severity.INFO, each="connectors")
def will_be_created(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE004, for a topic that the workers will make, and nothing to lose."""
    there = facts.cluster(each.then.bootstrap)
    if there is None or not _missing(facts, each) or _replicas(facts) > there.brokers or _lost(each):
        return None
    message = (
        f"Its dedicated topic {_where(each)} does not exist yet; the connector's admin client creates it at the next "
        "start, like the workers' own, and needs the right to Create it."
    )
    hint = f"Let its admin principal Create {each.then.topic}, or create it with cleanup.policy=compact."
    return Case(each.name, message, hint)


@rule("STORE005", Severity.WARNING, each="connectors")
def two_spellings(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE005, for the workers' own topic that Connect takes for another one."""
    if not _same_topic(facts, each):
        return None
    sure = "" if facts.bootstrap_configured else " (unless the workers use the same spelling)"
    message = (
        f"Its producer's bootstrap servers {each.then.bootstrap} are those of the workers' own Kafka cluster in another "
        f"spelling than {facts.bootstrap}{sure}: Connect treats {each.then.topic} as two stores, and writes every offset "
        "twice."
    )
    hint = (
        f"Remove producer.override.bootstrap.servers from {each.name}, or spell it as the workers' bootstrap.servers."
    )
    return Case(each.name, message, hint)


@rule("STORE006", Severity.ERROR, each="connectors")
def internal_topic(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE006, for a dedicated topic that is the workers' config or status topic."""
    roles = {facts.internal.get(role): role for role in ("config", "status")}
    role = roles.get(each.then.topic)
    if role is None or each.then.kind is not Kind.SEPARATE or not facts.is_workers(each.then.bootstrap):
        return None
    message = f"Its dedicated topic {each.then.topic} is the workers' {role} topic."
    return Case(each.name, message, f"Set offsets.storage.topic={each.name}-offsets on it.")


@rule("STORE007", Severity.ERROR, each="connectors")
def split_clients(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE007, for offsets that are written on one Kafka cluster and read on another."""
    if each.then.kind is Kind.WORKERS:
        return None
    seen = {client: facts.cluster(bootstrap) for client, bootstrap in each.clients.items()}
    writes = seen.get("producer")
    apart = [c for c in ("consumer", "admin") if writes and (there := seen.get(c)) and there.id != writes.id]
    if not apart:
        return None
    message = (
        f"Its producer writes to {each.clients['producer']}, and its {' and '.join(apart)} "
        f"{'connect' if len(apart) > 1 else 'connects'} to {each.clients[apart[0]]}, another Kafka cluster: its offsets "
        "are written where they are not read."
    )
    hint = "; ".join(f"{client}.override.bootstrap.servers={each.clients['producer']}" for client in apart)
    return Case(each.name, message, f"Set {hint}", severity=_softly(Severity.ERROR, each, goal))


@Several
def own_target(facts: StoreFacts, goal: Goal) -> Iterator[Finding]:
    """STORE008, for connectors that write their records to an offsets topic of their own; files may have it as well."""
    for each in facts.connectors:
        writes_to = each.clients.get("producer")
        own = {each.then.topic} if each.then.kind is not Kind.WORKERS else set()
        own |= {facts.offsets_topic} if facts.is_workers(writes_to) else set()
        if hit := sorted(own & each.targets):
            refused = target_mode(facts.mode, goal) is StoreMode.ENABLED and each.then.topic in hit
            message = f"It writes its records to {hit[0]}, where its source offsets are."
            message += " With exactly-once enabled its tasks fail at the first record." if refused else ""
            severity = _softly(Severity.ERROR, each, goal) if refused else Severity.WARNING
            yield target_rules.own_target.found(each.name, message, "Give it another target topic.", severity=severity)


@rule("STORE009", Severity.INFO, each="connectors")
def implicit(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE009, for a dedicated topic that comes with exactly-once, without anything to lose."""
    if each.now == each.then or not each.then.implicit or _lost(each) or facts.is_workers(each.then.bootstrap):
        return None
    message = (
        f"It writes to {each.then.bootstrap}. With exactly-once enabled its offsets move there, to a topic that is named "
        f"{each.then.topic} like the workers' own."
    )
    return Case(each.name, message, f"Set offsets.storage.topic={each.name}-offsets on it, for a name of its own.")


@rule("STORE010", Severity.WARNING, each="connectors")
def orphaned_topic(facts: StoreFacts, each: ConnectorStore, goal: Goal) -> Case | None:
    """STORE010, for offsets that only the dedicated topic has when workers stop reading it."""
    back = goal is Goal.DOWNGRADE or (goal is Goal.PREPARING and facts.mode is StoreMode.ENABLED)
    if not back or each.now.kind is not Kind.SEPARATE or each.offsets is None:
        return None
    now_ms, running = facts.taken_at * 1000, not each.at_rest
    ahead = [e for e in each.offsets.offsets if not is_copied(e.global_, e.dedicated, now_ms, running=running)]
    if not ahead:
        return None
    when = "Workers before 3.3" if each.then.kind is Kind.SEPARATE else "After the downgrade workers"
    message = (
        f"{when} read only {facts.offsets_topic}, which is behind {each.now.topic} for {len(ahead):,} source partitions, "
        f"for example {ahead[0].key.text}: its tasks write the records since then again."
    )
    severity = Severity.INFO if each.then.kind is Kind.SEPARATE else Severity.WARNING
    hint = f"connectctl offsets merge {each.name} --into global --stop"
    return Case(each.name, message, hint, severity=severity)


@rule("STORE011", Severity.INFO)
def shared(facts: StoreFacts, goal: Goal) -> Iterator[Case]:
    """STORE011, for a dedicated topic that several connectors name."""
    by_place: dict[tuple[str, str], list[ConnectorStore]] = {}
    for each in facts.connectors:
        if each.then.kind is Kind.SEPARATE and not each.then.implicit:
            there = facts.cluster(each.then.bootstrap)
            at = there.id if there else str(each.then.bootstrap)
            by_place.setdefault((at, each.then.topic), []).append(each)
    for (_, topic), connectors in sorted(by_place.items()):
        if len(connectors) > 1:
            message = f"It is the dedicated offsets topic of {len(connectors)} connectors: {names(connectors)}."
            yield Case(topic, message, "Set another offsets.storage.topic on all but one of them.")


@rule("STORE012", Severity.INFO)
def reset_fails(facts: StoreFacts, goal: Goal) -> Case | None:
    """STORE012, for connectors whose offsets the workers' own REST API cannot reset."""
    release = release_of(facts.version)
    hit = [each for each in facts.connectors if each.then.kind is Kind.SEPARATE]
    broken = release is not None and _FIRST_BROKEN_RESET <= release[:2] <= _LAST_KNOWN
    if not hit or not broken or target_mode(facts.mode, goal) is not StoreMode.ENABLED:
        return None
    message = (
        f"DELETE /connectors/…/offsets fails for them on {facts.version} with exactly-once enabled, and leaves their "
        "global offsets deleted and the dedicated ones in place."
    )
    return Case(names(hit), message, f"connectctl offsets reset {hit[0].name} --stop")
