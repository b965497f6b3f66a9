"""WORKER001 to WORKER014: the workers as one group that can have exactly-once (KIP-618).

The findings of ``cluster show`` are not repeated: different versions (CLUSTER005), support on some
workers only (CLUSTER006), a worker on another Kafka cluster (CLUSTER007).
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.workers.observe import Proof, WorkersSeen, addresses
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.connect.release import EXACTLY_ONCE, older, release_of
from connectctl.ops.connect.transactional_ids import LEADER as LEADER_PREFIX
from connectctl.ops.connect.transactional_ids import leader_id
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.finding import Severity, some_of
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.kafka.transactions import PartitionProducer
from connectctl.ops.kafka.visibility import Gap

PLAIN = (3, 2, 0)
"""The first release whose workers certainly write with plain producers, which have no producer
id.
"""
LONG = 60.0
"""Seconds after which a leader's open transaction is reported: Connect's own time-out."""
_NAMED = 3
"""The number of names that a message lists before it counts the rest."""


def towards(facts: WorkersSeen, goal: Goal) -> bool:
    """Return whether the goal leads to exactly-once."""
    return goal in (Goal.PREPARING, Goal.ENABLED)


@rule("WORKER001", Severity.ERROR, when=towards)
def too_old(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER001 for each worker before 3.3, under a goal that leads to exactly-once."""
    for worker in facts.workers:
        if worker.support is Support.NOT_SUPPORTED or older(worker.version, EXACTLY_ONCE):
            running = worker.version or "of an unknown version"
            message = f"It runs Kafka Connect {running}; exactly-once source support requires 3.3."
            yield Case(worker.address, message, "Upgrade this worker to 3.3 or newer.")


@rule("WORKER002", Severity.WARNING)
def compatible(facts: WorkersSeen, goal: Goal) -> Case | None:
    """Return WORKER002 if the group's protocol is compatible."""
    return _protocol(facts, "compatible") if facts.group.protocol == "compatible" else None


@rule("WORKER003", Severity.WARNING)
def eager(facts: WorkersSeen, goal: Goal) -> Case | None:
    """Return WORKER003 if the group's protocol is eager, which members call default."""
    return _protocol(facts, "eager") if facts.group.protocol in ("default", "eager") else None


def _protocol(facts: WorkersSeen, name: str) -> Case:
    hint = (
        "Remove connect.protocol from the properties of every worker, and restart them one by one."
    )
    return Case(facts.group.id, f"The protocol of the group is {name}, and not sessioned.", hint)


@rule("WORKER004", Severity.ERROR)
def leader_disabled(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER004 for an enabled worker with a disabled leader."""
    leading_worker = facts.leading_worker
    enabled = [worker.address for worker in facts.workers if worker.support is Support.ENABLED]
    if leading_worker is None or leading_worker.support is not Support.NOT_ENABLED or not enabled:
        return
    if facts.proof in (Proof.ABSENT, Proof.LEFT):
        message = f"The leader is disabled, and {', '.join(enabled)} enabled. {_evidence(facts)}"
        hint = (
            "Set exactly.once.source.support to preparing on it and on all that are not "
            "enabled, and restart them."
        )
        yield Case(leading_worker.address, message, hint)


@rule("WORKER005", Severity.INFO)
def unprepared(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER005 under the goal enabled for a leader that is not known to be preparing."""
    leading_worker = facts.leading_worker
    if (
        goal is not Goal.ENABLED
        or leading_worker is None
        or leading_worker.support is not Support.NOT_ENABLED
    ):
        return
    if facts.proof in (Proof.ABSENT, Proof.LEFT):
        hint = "Make every worker preparing before the first is enabled: connectctl upgrade plan"
        yield Case(leading_worker.address, f"It is the leader. {_evidence(facts)}", hint)


@rule("WORKER006", Severity.INFO)
def unproven(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER006 under the goal enabled for followers whose mode could not be determined."""
    leading_worker = facts.leading_worker
    proven = facts.proof in (Proof.PREPARING, Proof.CLAIMED)
    if (
        goal is not Goal.ENABLED
        or leading_worker is None
        or not (proven or leading_worker.support is Support.ENABLED)
    ):
        return
    others = [
        worker.address
        for worker in facts.workers
        if not worker.leader and worker.support is Support.NOT_ENABLED
    ]
    if others:
        message = (
            "The leader is preparing or enabled; it is unknown whether "
            f"{some_of(others, _NAMED)} also are."
        )
        hint = "See exactly.once.source.support in their properties, or: connectctl upgrade plan"
        yield Case("workers", message, hint)


@rule("WORKER007", Severity.ERROR)
def without_id(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER007 if the leader is enabled and no coordinator has its transactional id."""
    leading_worker = facts.leading_worker
    if (
        leading_worker is not None
        and leading_worker.support is Support.ENABLED
        and facts.proof is Proof.ABSENT
    ):
        id = leader_id(facts.group.id)
        hint = f"Give the workers' principal Write and Describe on the transactional id {id}."
        yield Case(leading_worker.address, f"No coordinator knows the transactional id {id}.", hint)


@rule("WORKER008", Severity.WARNING)
def leader_open(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER008 for a transaction of the leader that does not end."""
    seconds = facts.leader.seconds_open(facts.now) if facts.leader else None
    if facts.leader and seconds is not None and seconds >= LONG:
        message = f"Its transaction is open for {seconds:.0f} s ({facts.leader.state})."
        hint = f"connectctl transactions show {facts.leader.id}"
        yield Case(facts.leader.id, message, hint, since=facts.leader.open_since)


@rule("WORKER009", Severity.ERROR)
def id_elsewhere(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER009 if the leader's id has a transaction on other topics."""
    if facts.leader is None or facts.config is None:
        return
    others = sorted(
        {
            str(partition)
            for partition in facts.leader.partitions
            if partition.topic != facts.config.name
        }
    )
    if others:
        message = (
            f"Its transaction writes to {some_of(others, _NAMED)}, and not to "
            f"{facts.config.name} alone."
        )
        hint = (
            "Give the other application an id of its own; connectctl transactions show "
            f"{facts.leader.id}"
        )
        yield Case(facts.leader.id, message, hint, since=facts.leader.open_since)


@rule("WORKER010", Severity.WARNING)
def other_writers(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER010 for producers on the config topic that are not the leader's."""
    if facts.config is None or isinstance(facts.leader_id, Gap):
        return
    # ``doctor`` asks one worker for its version, and the others for their lists alone.
    asked = [worker for worker in facts.workers if worker.version or worker.listed is None]
    releases = [release_of(worker.version) for worker in asked]
    plain = all(release is not None and release >= PLAIN for release in releases)
    for producer in facts.config.foreign:
        id = facts.config.owners.get(producer.producer_id)
        if id is None and not plain:
            continue
        group = id.removeprefix(LEADER_PREFIX) if id and id.startswith(LEADER_PREFIX) else None
        message = f"{_who(producer, id)} wrote to it {_ago(facts, producer)}."
        if group is not None:
            message += f" That is the leader of the group {group}."
        hint = (
            f"connectctl transactions show {id}"
            if id
            else "Let only the workers' principal write to it."
        )
        severity = Severity.ERROR if group is not None else None
        yield Case(facts.config.name, message, hint, severity=severity)


@rule("WORKER011", Severity.WARNING)
def outside_transactions(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER011 for a leader's record without a transaction while the leader is enabled."""
    leading_worker, config = facts.leading_worker, facts.config
    if (
        leading_worker is None
        or leading_worker.support is not Support.ENABLED
        or facts.proof is not Proof.LEFT
    ):
        return
    if config is not None and config.newest is not None:
        message = (
            f"The record {config.newest.key} at offset {config.newest.offset} is in no transaction."
        )
        hint = "Let only the workers' principal write to it."
        yield Case(config.name, message, hint, since=config.newest.at)


@rule("WORKER012", Severity.ERROR)
def lists_differ(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER012 if workers list different connectors."""
    if len(set(facts.lists.values())) < 2:
        return
    every = frozenset[str]().union(*facts.lists.values())
    lacking = {
        name: sorted(every - listed)
        for name, listed in sorted(facts.lists.items())
        if every - listed
    }
    text = "; ".join(
        f"{name} does not list {some_of(missing, _NAMED)}" for name, missing in lacking.items()
    )
    hint = (
        "Compare config.storage.topic in the workers' properties, and restart those that are wrong."
    )
    yield Case("workers", f"They list different connectors: {text}.", hint)


@rule("WORKER013", Severity.ERROR)
def shared_config(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER013 for another group that runs our connectors and has no other config topic.

    Its transactional id or its statuses in our topics make this certain.
    """
    for group in facts.other_groups:
        if facts.config is None or group.id not in facts.groups_sharing_topics:
            continue
        connectors = sorted({connector for connector, _ in group.owners})
        certain = leader_id(group.id) in facts.config.owners.values() or bool(
            _reported_by(facts, group)
        )
        message = f"{group.id} runs {some_of(connectors, _NAMED)} of this topic, too"
        message += "." if certain else ", and no other topic that is visible is its config topic."
        hint = (
            f"Give {some_of(sorted(addresses(group)), _NAMED)} this group.id, or a "
            "config.storage.topic of its own."
        )
        severity = None if certain else Severity.WARNING
        yield Case(facts.config.name, message, hint, severity=severity)


@rule("WORKER014", Severity.WARNING)
def shared_status(facts: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """Yield WORKER014 for states in our status topic that another group's worker wrote about its
    connectors.
    """
    for group in facts.other_groups:
        if names := _reported_by(facts, group):
            message = (
                f"{group.id} writes the states of {some_of(names, _NAMED)} to the status "
                "topic of this group."
            )
            hint = (
                f"Give {some_of(sorted(addresses(group)), _NAMED)} a status.storage.topic of "
                "its own."
            )
            yield Case(facts.group.id, message, hint)


def _reported_by(facts: WorkersSeen, group: ConnectGroup) -> list[str]:
    """Return the connectors whose state in our status topic is from the worker of ``group`` that
    runs them now.
    """
    own_workers = addresses(facts.group)
    running = {part: address(member.url) for part, member in group.owners.items()}
    known = facts.statuses.items()
    return sorted(
        {
            part[0]
            for part, worker in known
            if worker not in own_workers and worker == running.get(part)
        }
    )


def _evidence(facts: WorkersSeen) -> str:
    id = leader_id(facts.group.id)
    if facts.proof is Proof.ABSENT:
        return f"The transactional id {id}, which a preparing leader would have, does not exist."
    newest = facts.config.newest.key if facts.config and facts.config.newest else "a record"
    return (
        f"It wrote {newest} to the config topic without its transactional id {id}, after it "
        "was last used."
    )


def _who(producer: PartitionProducer, id: str | None) -> str:
    return (
        f"A producer with the transactional id {id}"
        if id
        else f"A producer (id {producer.producer_id})"
    )


def _ago(facts: WorkersSeen, producer: PartitionProducer) -> str:
    if producer.start_offset is not None:
        return "and has a transaction open"
    minutes = max(0, int(facts.now - producer.last_timestamp / 1000) // 60)
    return f"{minutes} min ago" if minutes else "just now"
