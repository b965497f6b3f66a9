"""BROKER001 to BROKER019: the requirements of exactly-once for the observed brokers, and which of
them accept no connection. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from connectctl.ops.checks.brokers.observe import (
    CLEANUP,
    EXPIRATION,
    LEAST,
    LOG_MIN_ISR,
    LOG_REPLICAS,
    MAX_TIMEOUT,
    MOST,
    TIMEOUT,
    VERIFICATION,
    BrokerFacts,
    ClientTimeout,
    concerned,
)
from connectctl.ops.connect.goal import Goal, downgrade_severity, enabling
from connectctl.ops.connect.release import release_of
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.kafka import replication
from connectctl.ops.kafka.brokers import (
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    TRANSACTION_VERSION,
    bounds_min_in_sync,
)
from connectctl.ops.kafka.replication import numbers
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transaction_log import TOPIC as TRANSACTION_STATE

_END_OFFSETS = 2
"""The version of ListOffsets with isolation levels (KIP-98)."""
_EPOCH_PER_TRANSACTION = 2
_WORKERS_USE_IT_SINCE = (4, 0, 0)
_FENCING_TIMEOUT_MS = 90_000
_FENCES_WITH_IT_SINCE = (3, 7, 1)
_CLEANUP_MS = 10_000
"""The default since KIP-447; before it was a minute."""
_DAY_MS = 24 * 60 * 60 * 1000


def with_transactions(facts: BrokerFacts, goal: Goal) -> bool:
    """Return whether the goal or the cluster has transactions."""
    return concerned(facts.enabled, goal)


@rule("BROKER001", Severity.ERROR, when=with_transactions)
def too_old(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER001 for each broker without transactions, or without end offsets by isolation
    level.
    """
    for broker, version in sorted(facts.versions.items()):
        if (
            INIT_PRODUCER_ID not in version.apis
            or version.apis.get(LIST_OFFSETS, -1) < _END_OFFSETS
        ):
            message = (
                f"Its API versions are those of Kafka {_text(version.release)}, which has "
                "no transactions."
            )
            yield Case(f"broker {broker}", message, "Upgrade the brokers to 2.1 at least.")


@rule("BROKER002", Severity.WARNING, when=with_transactions)
def mixed(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER002 once if the brokers run different releases."""
    by_release: dict[tuple[int, ...], list[int]] = {}
    for broker, version in sorted(facts.versions.items()):
        by_release.setdefault(version.release, []).append(broker)
    if len(by_release) > 1:
        text = "; ".join(
            f"{_text(release)} on {_brokers(ids)}" for release, ids in sorted(by_release.items())
        )
        yield Case(
            "brokers",
            f"Their API versions are those of different releases: {text}.",
            "Finish the upgrade.",
        )


@rule("BROKER003", Severity.WARNING, when=with_transactions)
def unverified(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER003 once for brokers that are too old, and once for those with verification
    turned off.
    """
    old = [broker for broker, version in facts.versions.items() if not version.verifies]
    off = [
        broker
        for broker, values in facts.settings.items()
        if values.get(VERIFICATION) == "false" and broker not in old
    ]
    if old:
        message = f"{_brokers(old)}: older than 3.6, which is the first release that verifies."
        yield Case(
            "brokers", message, "Upgrade the brokers; until then: connectctl transactions hanging"
        )
    if off:
        hint = (
            f"Set {VERIFICATION}=true on the brokers; until then: connectctl transactions hanging"
        )
        yield Case("brokers", f"{_brokers(off)}: {VERIFICATION} is false.", hint)


@rule("BROKER004", Severity.WARNING, when=with_transactions)
def old_protocol(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER004: a warning if one command cures it, information if brokers or workers are too
    old for it.
    """
    if not facts.versions:
        return
    level = min(
        version.finalized.get(TRANSACTION_VERSION, 0) for version in facts.versions.values()
    )
    if level >= _EPOCH_PER_TRANSACTION:
        return
    old = [
        broker
        for broker, version in facts.versions.items()
        if version.supported.get(TRANSACTION_VERSION, 0) < _EPOCH_PER_TRANSACTION
    ]
    message = f"{TRANSACTION_VERSION} is {level}."
    if old:
        message += f" {_brokers(old)}: older than 4.0, which knows 2."
        yield Case("brokers", message, "Upgrade the brokers.", severity=Severity.INFO)
        return
    releases = [release for text in facts.workers if (release := release_of(text))]
    workers_too_old = bool(releases) and max(releases) < _WORKERS_USE_IT_SINCE
    if workers_too_old:
        message += " The workers are older than 4.0, and would not use it."
    hint = (
        "kafka-features.sh --bootstrap-server … upgrade --feature "
        f"{TRANSACTION_VERSION}={_EPOCH_PER_TRANSACTION}"
    )
    yield Case("brokers", message, hint, severity=Severity.INFO if workers_too_old else None)


@rule("BROKER005", Severity.ERROR, when=with_transactions)
def cannot_be_created(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER005 if the topic is known not to exist and cannot be created."""
    if facts.transaction_state is not None or facts.log_hidden or not facts.brokers:
        return
    replicas, min_in_sync = facts.numbers(LOG_REPLICAS), facts.numbers(LOG_MIN_ISR)
    if replicas and max(replicas.values()) > facts.brokers:
        brokers = "is 1 broker" if facts.brokers == 1 else f"are {facts.brokers} brokers"
        message = f"{LOG_REPLICAS} is {max(replicas.values())}, and there {brokers}."
        hint = (
            f"Set {LOG_REPLICAS} to {min(3, facts.brokers)} on the brokers, and {LOG_MIN_ISR} "
            "below it or to 1."
        )
        yield Case(TRANSACTION_STATE, message, hint)
        return
    unsatisfiable = [
        broker for broker, count in min_in_sync.items() if count > replicas.get(broker, count)
    ]
    if unsatisfiable and not bounds_min_in_sync(facts.versions.values()):
        message = (
            f"{LOG_MIN_ISR} is {min_in_sync[unsatisfiable[0]]}, and {LOG_REPLICAS} is "
            f"{replicas[unsatisfiable[0]]}."
        )
        hint = f"Set {LOG_MIN_ISR} on the brokers to no more than {LOG_REPLICAS}."
        yield Case(TRANSACTION_STATE, message, hint)


@rule("BROKER006", Severity.ERROR, when=with_transactions, each="logs")
def no_leader(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER006 if partitions of the topic have no leader."""
    leaderless = replication.leaderless(log)
    message = f"No broker leads {numbers(leaderless)}."
    return (
        Case(log.name, message, "Start the brokers that host its replicas.") if leaderless else None
    )


@rule("BROKER007", Severity.ERROR, when=with_transactions, each="logs")
def too_few_in_sync(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER007 if partitions have fewer in-sync replicas than min.insync.replicas."""
    few = replication.too_few_in_sync(log, bounded=bounds_min_in_sync(facts.versions.values()))
    minimum = replication.min_in_sync(log)
    message = f"On {numbers(few)} fewer replicas are in sync than min.insync.replicas ({minimum})."
    return Case(log.name, message, replication.cure_of_too_few(log)) if few else None


@rule("BROKER008", Severity.WARNING, when=with_transactions, each="logs")
def out_of_sync(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER008 if replicas are not in sync."""
    partitions = replication.partitions_out_of_sync(
        log, bounded=bounds_min_in_sync(facts.versions.values())
    )
    brokers = replication.brokers_out_of_sync(log)
    message = f"Replicas of {numbers(partitions)} on {brokers} are not in sync."
    return Case(log.name, message, f"Check {brokers}.") if partitions else None


@rule("BROKER009", Severity.WARNING, when=with_transactions, each="logs")
def one_copy(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER009 if the topic has one replica on several brokers."""
    if facts.brokers <= 1 or replication.fewest_replicas(log) != 1:
        return None
    message = f"It has one replica on {facts.brokers} brokers."
    return Case(log.name, message, "Set 3 replicas: kafka-reassign-partitions.sh")


@rule("BROKER010", Severity.WARNING, when=with_transactions, each="logs")
def acknowledged_alone(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER010 if the leader alone may acknowledge a write."""
    if not replication.keeps_no_second_copy(log):
        return None
    message = f"min.insync.replicas is 1 with {replication.fewest_replicas(log)} replicas."
    return Case(log.name, message, replication.alter(log.name, f"{replication.MIN_IN_SYNC}=2"))


@rule("BROKER011", Severity.WARNING, when=with_transactions, each="logs")
def unclean(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER011 if a replica that is out of sync may become the leader."""
    if not replication.elects_uncleanly(log):
        return None
    step = replication.alter(log.name, f"{replication.UNCLEAN}=false")
    return Case(log.name, f"{replication.UNCLEAN} is true.", step)


@rule("BROKER012", Severity.WARNING, when=with_transactions, each="logs")
def stops_with_one(facts: BrokerFacts, log: TopicFacts, goal: Goal) -> Case | None:
    """Return BROKER012 if the loss of one broker stops all writes."""
    if not replication.stops_with_one_broker(log):
        return None
    count = replication.fewest_replicas(log)
    message = f"It has {count} replicas, and min.insync.replicas is {replication.min_in_sync(log)}."
    return Case(
        log.name, message, replication.alter(log.name, f"{replication.MIN_IN_SYNC}={count - 1}")
    )


@rule("BROKER013", Severity.ERROR, when=enabling)
def timeouts_refused(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER013 for each source connector whose transaction time-out the brokers refuse."""
    for source in facts.sources:
        if refusing := _refusing(facts, source.milliseconds):
            limit = min(refusing.values())
            hint = (
                f"Set producer.override.{TIMEOUT} to {limit} or less, or raise {MAX_TIMEOUT} "
                "on the brokers."
            )
            severity = downgrade_severity(Severity.ERROR, goal)
            message = f"{_timeout_text(source)}, and {_allowed(refusing)}."
            yield Case(source.name, message, hint, severity=severity)


@rule("BROKER014", Severity.ERROR, when=with_transactions)
def leader_refused(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER014 once if the brokers refuse the leader's time-out; it has transactions from
    preparing on.
    """
    refusing = _refusing(facts, facts.leader.milliseconds)
    if refusing and (goal is not Goal.NOW or facts.enabled):
        hint = (
            f"Raise {MAX_TIMEOUT} on the brokers, or set {TIMEOUT}={min(refusing.values())} on "
            "the workers."
        )
        yield Case("leader", f"{_timeout_text(facts.leader)}, and {_allowed(refusing)}.", hint)


@rule("BROKER015", Severity.ERROR, when=enabling)
def fencing_refused(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER015 once if the brokers refuse the time-out of fencing; older workers fence with
    one of 1 ms.
    """
    releases = [release_of(version) for version in facts.workers]
    affected = not releases or any(
        release is None or release >= _FENCES_WITH_IT_SINCE for release in releases
    )
    refusing = _refusing(facts, _FENCING_TIMEOUT_MS)
    if refusing and affected:
        hint = f"Set {MAX_TIMEOUT} on the brokers to {_FENCING_TIMEOUT_MS} at least."
        severity = downgrade_severity(Severity.ERROR, goal)
        yield Case("brokers", f"{_allowed(refusing)}.", hint, severity=severity)


@rule("BROKER016", Severity.WARNING, when=enabling)
def ids_expire(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER016 once if transactional ids expire within a day."""
    short = {
        broker: value for broker, value in facts.numbers(EXPIRATION).items() if value < _DAY_MS
    }
    if short:
        message = f"{EXPIRATION} of {_brokers(list(short))} is {min(short.values()):,} ms."
        yield Case(
            "brokers", message, f"Set {EXPIRATION} on the brokers to 604800000, the default."
        )


@rule("BROKER017", Severity.WARNING, when=enabling)
def slow_to_abort(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER017 once if brokers abort timed-out transactions late."""
    slow = {
        broker: value for broker, value in facts.numbers(CLEANUP).items() if value > _CLEANUP_MS
    }
    if slow:
        message = f"{CLEANUP} of {_brokers(list(slow))} is {max(slow.values()):,} ms."
        hint = f"Set {CLEANUP} on the brokers to {_CLEANUP_MS}, the default."
        yield Case("brokers", message, hint)


@rule("BROKER018", Severity.ERROR)
def session_refused(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER018 for each sink whose session time-out is outside of the brokers' bounds."""
    least, most = facts.numbers(LEAST), facts.numbers(MOST)
    for sink in facts.sessions:
        too_short = {broker: bound for broker, bound in least.items() if sink.milliseconds < bound}
        too_long = {broker: bound for broker, bound in most.items() if sink.milliseconds > bound}
        for name, refusing in ((LEAST, too_short), (MOST, too_long)):
            if refusing:
                bound = max(refusing.values()) if name is LEAST else min(refusing.values())
                brokers = _brokers(list(refusing))
                message = (
                    f"{sink.property} is {sink.milliseconds:,} ms, and {name} of {brokers} "
                    f"is {bound:,} ms."
                )
                hint = f"Set {sink.property} to {bound} or {'more' if name is LEAST else 'less'}."
                yield Case(sink.name, message, hint)


@rule("BROKER019", Severity.WARNING)
def unreachable(facts: BrokerFacts, goal: Goal) -> Iterator[Case]:
    """Yield BROKER019 for each broker in the metadata that accepts no connection."""
    for broker, address in sorted(facts.unreachable.items()):
        yield Case(
            f"broker {broker}",
            f"The metadata of the cluster has it at {address}, which accepts no connection.",
            "Start it. If it runs, check its advertised.listeners, and what blocks the connection.",
        )


def _refusing(facts: BrokerFacts, milliseconds: int) -> dict[int, int]:
    """Return the brokers with a lower limit than ``milliseconds``, with their limits."""
    return {
        broker: limit
        for broker, limit in facts.numbers(MAX_TIMEOUT).items()
        if limit < milliseconds
    }


def _timeout_text(timeout: ClientTimeout) -> str:
    return f"{timeout.property or TIMEOUT} is {timeout.milliseconds:,} ms" + (
        "" if timeout.property else " by default"
    )


def _allowed(refusing: Mapping[int, int]) -> str:
    return f"{MAX_TIMEOUT} of {_brokers(list(refusing))} allows {min(refusing.values()):,} ms"


def _brokers(ids: list[int]) -> str:
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, sorted(ids)))


def _text(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
