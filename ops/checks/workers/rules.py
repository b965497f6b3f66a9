"""Whether the workers are one group that can have exactly-once (KIP-618): WORKER001 to WORKER014.

What ``cluster show`` finds already is not repeated: versions that differ (CLUSTER005), support on some workers only
(CLUSTER006), a worker on another Kafka cluster (CLUSTER007).
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.types import Goal
from connectctl.ops.checks.workers.observe import Proof, WorkersSeen, addresses
from connectctl.ops.connect.connect_protocol import ConnectGroup
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
"""The first release whose workers surely write with plain producers, which have no producer id."""
LONG = 60.0
"""Seconds after which a leader's open transaction is worth a warning: Connect's own time-out."""
_NAMED = 3
"""The number of names that a message lists before it only counts."""


def towards(seen: WorkersSeen, goal: Goal) -> bool:
    """Whether the goal is on the way to exactly-once."""
    return goal in (Goal.PREPARING, Goal.ENABLED)


@rule("WORKER001", Severity.ERROR, when=towards)
def too_old(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER001: on the way to exactly-once, a worker before 3.3."""
    for worker in seen.workers:
        if worker.support is Support.NOT_SUPPORTED or older(worker.version, EXACTLY_ONCE):
            running = worker.version or "of an unknown version"
            message = f"It runs Kafka Connect {running}; exactly-once source support requires 3.3."
            yield Case(worker.address, message, "Upgrade this worker to 3.3 or newer.")


@rule("WORKER002", Severity.WARNING)
def compatible(seen: WorkersSeen, goal: Goal) -> Case | None:
    """WORKER002: the group's protocol is compatible."""
    return _protocol(seen, "compatible") if seen.group.protocol == "compatible" else None


@rule("WORKER003", Severity.WARNING)
def eager(seen: WorkersSeen, goal: Goal) -> Case | None:
    """WORKER003: the group's protocol is eager, which members call default."""
    return _protocol(seen, "eager") if seen.group.protocol in ("default", "eager") else None


def _protocol(seen: WorkersSeen, name: str) -> Case:
    hint = "Remove connect.protocol from the properties of every worker, and restart them one by one."
    return Case(seen.group.id, f"The protocol of the group is {name}, and not sessioned.", hint)


@rule("WORKER004", Severity.ERROR)
def leader_behind(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER004: an enabled worker under a leader that is disabled."""
    leading = seen.leading
    enabled = [worker.address for worker in seen.workers if worker.support is Support.ENABLED]
    if leading is None or leading.support is not Support.NOT_ENABLED or not enabled:
        return
    if seen.proof in (Proof.ABSENT, Proof.LEFT):
        message = f"The leader is disabled, and {', '.join(enabled)} enabled. {_evidence(seen)}"
        hint = "Set exactly.once.source.support to preparing on it and on all that are not enabled, and restart them."
        yield Case(leading.address, message, hint)


@rule("WORKER005", Severity.INFO)
def unprepared(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER005: on the way to enabled, a leader that shows nothing of preparing."""
    leading = seen.leading
    if goal is not Goal.ENABLED or leading is None or leading.support is not Support.NOT_ENABLED:
        return
    if seen.proof in (Proof.ABSENT, Proof.LEFT):
        hint = "Make every worker preparing before the first is enabled: connectctl upgrade plan"
        yield Case(leading.address, f"It is the leader. {_evidence(seen)}", hint)


@rule("WORKER006", Severity.INFO)
def unproven(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER006: on the way to enabled, followers whose value could not be determined."""
    leading = seen.leading
    proven = seen.proof in (Proof.PREPARING, Proof.CLAIMED)
    if goal is not Goal.ENABLED or leading is None or not (proven or leading.support is Support.ENABLED):
        return
    others = [w.address for w in seen.workers if not w.leader and w.support is Support.NOT_ENABLED]
    if others:
        message = f"The leader is preparing or enabled; whether {some_of(others, _NAMED)} also are, is unknown."
        hint = "See exactly.once.source.support in their properties, or: connectctl upgrade plan"
        yield Case("workers", message, hint)


@rule("WORKER007", Severity.ERROR)
def without_id(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER007: the leader is enabled, and Kafka has no state of its transactional id."""
    leading = seen.leading
    if leading is not None and leading.support is Support.ENABLED and seen.proof is Proof.ABSENT:
        id = leader_id(seen.group.id)
        hint = f"Give the workers' principal Write and Describe on the transactional id {id}."
        yield Case(leading.address, f"No coordinator knows the transactional id {id}.", hint)


@rule("WORKER008", Severity.WARNING)
def leader_open(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER008: a transaction of the leader that does not end."""
    seconds = seen.leader.seconds_open(seen.now) if seen.leader else None
    if seen.leader and seconds is not None and seconds >= LONG:
        message = f"Its transaction is open for {seconds:.0f} s ({seen.leader.state})."
        yield Case(seen.leader.id, message, f"connectctl transactions show {seen.leader.id}")


@rule("WORKER009", Severity.ERROR)
def id_elsewhere(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER009: the leader's id has a transaction on other topics."""
    if seen.leader is None or seen.config is None:
        return
    others = sorted({str(place) for place in seen.leader.partitions if place.topic != seen.config.name})
    if others:
        message = f"Its transaction writes to {some_of(others, _NAMED)}, and not to {seen.config.name} alone."
        hint = f"Give the other application an id of its own; connectctl transactions show {seen.leader.id}"
        yield Case(seen.leader.id, message, hint)


@rule("WORKER010", Severity.WARNING)
def other_writers(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER010: producers on the config topic that are not the leader's."""
    if seen.config is None or isinstance(seen.leader_id, Gap):
        return
    releases = [release_of(worker.version) for worker in seen.workers]
    plain = all(release is not None and release >= PLAIN for release in releases)
    for producer in seen.config.foreign:
        id = seen.config.owners.get(producer.producer_id)
        if id is None and not plain:
            continue
        group = id.removeprefix(LEADER_PREFIX) if id and id.startswith(LEADER_PREFIX) else None
        message = f"{_who(producer, id)} wrote to it {_ago(seen, producer)}."
        if group is not None:
            message += f" That is the leader of the group {group}."
        hint = f"connectctl transactions show {id}" if id else "Let only the workers' principal write to it."
        severity = Severity.ERROR if group is not None else None
        yield Case(seen.config.name, message, hint, severity=severity)


@rule("WORKER011", Severity.WARNING)
def outside_transactions(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER011: a leader's record without a transaction, under a leader that is enabled."""
    leading, config = seen.leading, seen.config
    if leading is None or leading.support is not Support.ENABLED or seen.proof is not Proof.LEFT:
        return
    if config is not None and config.newest is not None:
        message = f"The record {config.newest.key} at offset {config.newest.offset} is in no transaction."
        yield Case(config.name, message, "Let only the workers' principal write to it.")


@rule("WORKER012", Severity.ERROR)
def lists_differ(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER012: workers that list different connectors."""
    if len(set(seen.lists.values())) < 2:
        return
    every = frozenset[str]().union(*seen.lists.values())
    lacking = {name: sorted(every - listed) for name, listed in sorted(seen.lists.items()) if every - listed}
    text = "; ".join(f"{name} does not list {some_of(missing, _NAMED)}" for name, missing in lacking.items())
    hint = "Compare config.storage.topic in the workers' properties, and restart those that are wrong."
    yield Case("workers", f"They list different connectors: {text}.", hint)


@rule("WORKER013", Severity.ERROR)
def shared_config(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER013: another group that runs our connectors and has no other config topic; more evidence makes it certain."""
    for neighbour in seen.other_groups:
        if seen.config is None or neighbour.id not in seen.groups_sharing_topics:
            continue
        theirs = sorted({connector for connector, _ in neighbour.owners})
        certain = leader_id(neighbour.id) in seen.config.owners.values() or bool(_reported_by(seen, neighbour))
        message = f"{neighbour.id} runs {some_of(theirs, _NAMED)} of this topic, too"
        message += "." if certain else ", and no other topic that is visible is its config topic."
        hint = (
            f"Give {some_of(sorted(addresses(neighbour)), _NAMED)} this group.id, or a config.storage.topic of its own."
        )
        severity = None if certain else Severity.WARNING
        yield Case(seen.config.name, message, hint, severity=severity)


@rule("WORKER014", Severity.WARNING)
def shared_status(seen: WorkersSeen, goal: Goal) -> Iterator[Case]:
    """WORKER014: states in our status topic that another group's worker wrote about what it runs."""
    for neighbour in seen.other_groups:
        if names := _reported_by(seen, neighbour):
            message = f"{neighbour.id} writes the states of {some_of(names, _NAMED)} to the status topic of this group."
            hint = f"Give {some_of(sorted(addresses(neighbour)), _NAMED)} a status.storage.topic of its own."
            yield Case(seen.group.id, message, hint)


def _reported_by(seen: WorkersSeen, neighbour: ConnectGroup) -> list[str]:
    """The connectors whose state in our status topic is of a worker of ``neighbour`` that runs them there now."""
    ours = addresses(seen.group)
    running = {part: address(member.url) for part, member in neighbour.owners.items()}
    known = seen.statuses.items()
    return sorted({part[0] for part, worker in known if worker not in ours and worker == running.get(part)})


def _evidence(seen: WorkersSeen) -> str:
    id = leader_id(seen.group.id)
    if seen.proof is Proof.ABSENT:
        return f"The transactional id {id}, which a preparing leader would have, does not exist."
    newest = seen.config.newest.key if seen.config and seen.config.newest else "a record"
    return f"It wrote {newest} to the config topic without its transactional id {id}, after it was last used."


def _who(producer: PartitionProducer, id: str | None) -> str:
    return f"A producer with the transactional id {id}" if id else f"A producer (id {producer.producer_id})"


def _ago(seen: WorkersSeen, producer: PartitionProducer) -> str:
    if producer.start_offset is not None:
        return "and has a transaction open"
    minutes = max(0, int(seen.now - producer.last_timestamp / 1000) // 60)
    return f"{minutes} min ago" if minutes else "just now"
