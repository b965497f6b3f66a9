"""FENCE001, FENCE008 and FENCE010 to FENCE012: rules over ``fencing.observe``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.fencing.observe import FencedSource, FencingFacts
from connectctl.ops.connect.goal import Goal, downgrade_severity, enabling
from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.connect.transactional_ids import TaskRef, leader_id, task_id
from connectctl.ops.connect.zombie_fencing import FORWARD_LIMIT, LEADER_LIMIT, diagnose
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule

JITTER = 0.2
"""The share by which a back-off may exceed its configured value (``ExponentialBackoff``)."""
_FENCING_FIXED_IN = (3, 7, 1)


@Several
def due(facts: FencingFacts, goal: Goal) -> Iterator[Finding]:
    """Yield FENCE008 for each round that is due, if rounds are due under the goal."""
    if goal is Goal.NOW and enabling(facts, goal):
        yield from filter(None, map(diagnose, facts.rounds))


@rule("FENCE010", Severity.ERROR, when=enabling)
def slow_rounds(facts: FencingFacts, goal: Goal) -> Iterator[Case]:
    """Yield FENCE010 for connectors without a due round whose next round is slow."""
    reported = {finding.subject for finding in due.findings(facts, goal)}
    for source in facts.connectors:
        if source.name not in reported and (case := _slow_round(facts, source, goal)):
            yield case


def _slow_round(facts: FencingFacts, source: FencedSource, goal: Goal) -> Case | None:
    """Return the next round of a connector if it is slow, by the coordinator with the most ids."""
    loads = source.by_broker.items() if source.by_broker else ()
    broker, most = max(loads, key=lambda item: item[1], default=(None, 0))
    if source.by_broker is None:
        most = source.ids
    time = source.backoff.seconds(most)
    limit = FORWARD_LIMIT if facts.workers > 1 else LEADER_LIMIT
    if time * (1 + JITTER) <= limit and time <= FORWARD_LIMIT:
        return None
    severity = Severity.ERROR if time > limit and source.by_broker is not None else Severity.WARNING
    share = _share(facts, source, broker, most)
    message = f"Its next round of fencing takes about {time:.0f} s: {share}. {_limits(time, facts)}"
    hint = f"connectctl connectors cure {source.name}"
    return Case(source.name, message, hint, severity=downgrade_severity(severity, goal))


def _share(facts: FencingFacts, source: FencedSource, broker: int | None, most: int) -> str:
    if source.by_broker is None:
        return (
            f"it has {source.ids} ids, on another Kafka cluster, at worst with one coordinator "
            "for all"
        )
    if facts.topic_seen and broker is None:
        return (
            f"{most} of its {source.ids} ids have no coordinator now, and they are fenced one "
            "by one"
        )
    owner = f"broker {broker}" if facts.topic_seen else "one broker"
    return f"{owner} coordinates {most} of its {source.ids} ids, and they are fenced one by one"


def _limits(time: float, facts: FencingFacts) -> str:
    if time > LEADER_LIMIT:
        return f"The leader times out after {LEADER_LIMIT:.0f} s, and all its tasks fail."
    if time > FORWARD_LIMIT and facts.workers > 1:
        return f"Tasks that ask through a follower fail after {FORWARD_LIMIT:.0f} s."
    limit = FORWARD_LIMIT if facts.workers > 1 else LEADER_LIMIT
    return (
        f"That is close to the limit of {limit:.0f} s after which tasks fail; no task "
        "processes records meanwhile."
    )


@rule("FENCE001", Severity.WARNING, when=enabling, each="connectors")
def ambiguous(facts: FencingFacts, source: FencedSource, goal: Goal) -> Iterator[Case]:
    """Yield FENCE001 once for a connector whose ids are another's as well, and for an id that is
    also a leader's.
    """
    hint = "Rename one of the connectors, or give one cluster another group.id."
    id = task_id(facts.group, source.name, 0)
    others = [owner for owner in facts.directory.owners(id) if _is_other(facts, source, owner)]
    if others:
        holders = " and ".join(f"{owner.connector} in {owner.group}" for owner in others)
        yield Case(
            source.name,
            f"Its transactional ids are also those of {holders} (for example {id}).",
            hint,
        )
    for group in sorted(facts.directory.connectors):
        owners = (
            owner
            for owner in facts.directory.owners(leader_id(group))
            if not _is_other(facts, source, owner)
        )
        own_tasks = [owner for owner in owners if owner.task < source.ids]
        if own_tasks:
            holders = f"the leader of {group}: {leader_id(group)}"
            message = f"Its task {own_tasks[0].task} has the same transactional id as {holders}."
            yield Case(source.name, message, hint)


def _is_other(facts: FencingFacts, source: FencedSource, owner: TaskRef) -> bool:
    return (owner.group, owner.connector) != (facts.group, source.name)


@rule("FENCE012", Severity.WARNING, when=enabling, each="connectors")
def foreign(facts: FencingFacts, source: FencedSource, goal: Goal) -> Iterator[Case]:
    """Yield FENCE012 for every id that another producer uses.

    It is certain only if no worker can have begun the transaction.
    """
    for id, transaction in sorted(source.foreign.items()):
        why, severity = "where no task of this connector writes", Severity.WARNING
        if facts.enabled is False:
            why, severity = (
                "though no worker has exactly-once enabled",
                downgrade_severity(Severity.ERROR, goal),
            )
        where = ", ".join(sorted({partition.topic for partition in transaction.partitions}))
        message = f"{id} has a transaction open on {where}, {why}."
        hint, since = f"connectctl transactions show {id}", transaction.open_since
        yield Case(source.name, message, hint, severity, since=since)


@rule("FENCE011", Severity.WARNING, when=enabling)
def old_fencing(facts: FencingFacts, goal: Goal) -> Case | None:
    """Return FENCE011 for workers from 3.3, the first release that fences, to before 3.7.1."""
    affected = [
        version
        for version in facts.versions
        if older(version, _FENCING_FIXED_IN) and not older(version, EXACTLY_ONCE)
    ]
    if not affected or not facts.connectors:
        return None
    message = (
        f"They run {' and '.join(affected)}, whose admin client fails to fence ids with an "
        "open transaction."
    )
    return Case("workers", message, "Upgrade the workers to 3.7.1 or newer.")
