"""What can go wrong with fencing: rules over ``fencing.observe``, pure. A round that is due gives FENCE008."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from connectctl.ops.checks.fencing.observe import FencedSource, FencingFacts
from connectctl.ops.checks.types import Goal, downgrade_severity, leads_to_enabled
from connectctl.ops.connect.release import EXACTLY_ONCE, older, release_of
from connectctl.ops.connect.transactional_ids import TaskRef, leader_id, task_id
from connectctl.ops.connect.zombie_fencing import FORWARD_LIMIT, LEADER_LIMIT, Backoff, diagnose
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

JITTER = 0.2
"""The share by which a back-off may be longer than it says (``ExponentialBackoff``)."""
_EXPONENTIAL_SINCE = (3, 7, 0)
_FENCING_FIXED_IN = (3, 7, 1)

AMBIGUOUS = Rule("FENCE001", Severity.WARNING)
SLOW_ROUND = Rule("FENCE010", Severity.ERROR)
OLD_FENCING = Rule("FENCE011", Severity.WARNING)
FOREIGN = Rule("FENCE012", Severity.WARNING)


def check(facts: FencingFacts, goal: Goal) -> Iterator[Finding]:
    """Everything about fencing; nothing where the goal leads to no transactions, because then nothing is fenced."""
    if not leads_to_enabled(facts.enabled, goal):
        return
    due = [finding for finding in map(diagnose, facts.rounds if goal is Goal.NOW else ()) if finding]
    yield from due
    reported = {finding.subject for finding in due}
    for each in facts.connectors:
        yield from ambiguous(facts, each)
        if each.name not in reported:
            yield from filter(None, [slow_round(facts, each, goal)])
        yield from foreign(facts, each, goal)
    yield from filter(None, [old_fencing(facts)])


def seconds(ids: int, backoff: Backoff, versions: Sequence[str]) -> float:
    """How long a worker takes for ``ids`` of one coordinator: with equal pauses before 3.7, with growing ones since.

    Of several versions the slower counts; any of the workers may be the leader.
    """
    releases = [release for version in versions if (release := release_of(version))]
    if releases and max(releases) < _EXPONENTIAL_SINCE:
        return max(0, ids - 1) * backoff.first
    return backoff.seconds(ids)


def slow_round(facts: FencingFacts, each: FencedSource, goal: Goal) -> Finding | None:
    """FENCE010, from the ids of the coordinator that has most of them."""
    loads = each.by_broker.items() if each.by_broker else ()
    broker, most = max(loads, key=lambda item: item[1], default=(None, 0))
    if each.by_broker is None:
        most = each.ids
    time = seconds(most, each.backoff, facts.versions)
    limit = FORWARD_LIMIT if facts.workers > 1 else LEADER_LIMIT
    if time * (1 + JITTER) <= limit and time <= FORWARD_LIMIT:
        return None
    severity = Severity.ERROR if time > limit and each.by_broker is not None else Severity.WARNING
    share = _share(facts, each, broker, most)
    message = f"Its next round of fencing takes about {time:.0f} s: {share}. {_limits(time, facts)}"
    hint = f"connectctl connectors cure {each.name}"
    return SLOW_ROUND.found(each.name, message, hint, severity=downgrade_severity(severity, goal))


def _share(facts: FencingFacts, each: FencedSource, broker: int | None, most: int) -> str:
    if each.by_broker is None:
        return f"it has {each.ids} ids, on another Kafka cluster, at worst with one coordinator for all"
    if facts.topic_seen and broker is None:
        return f"{most} of its {each.ids} ids have no coordinator now, and they are fenced one by one"
    owner = f"broker {broker}" if facts.topic_seen else "one broker"
    return f"{owner} coordinates {most} of its {each.ids} ids, and they are fenced one by one"


def _limits(time: float, facts: FencingFacts) -> str:
    if time > LEADER_LIMIT:
        return f"The leader times out after {LEADER_LIMIT:.0f} s, and all its tasks fail."
    if time > FORWARD_LIMIT and facts.workers > 1:
        return f"Tasks that ask through a follower fail after {FORWARD_LIMIT:.0f} s."
    limit = FORWARD_LIMIT if facts.workers > 1 else LEADER_LIMIT
    return f"That is close to the limit of {limit:.0f} s after which tasks fail; no task processes records meanwhile."


def ambiguous(facts: FencingFacts, each: FencedSource) -> Iterator[Finding]:
    """FENCE001, once for all ids of a connector that are another's, and for an id that is a leader's."""
    hint = "Rename one of the connectors, or give one cluster another group.id."
    id = task_id(facts.group, each.name, 0)
    others = [owner for owner in facts.directory.owners(id) if _other(facts, each, owner)]
    if others:
        holders = " and ".join(f"{owner.connector} in {owner.group}" for owner in others)
        yield AMBIGUOUS.found(each.name, f"Its transactional ids are also those of {holders} (for example {id}).", hint)
    for group in sorted(facts.directory.connectors):
        theirs = (o for o in facts.directory.owners(leader_id(group)) if not _other(facts, each, o))
        mine = [o for o in theirs if o.task is not None and o.task < each.ids]
        if mine:
            holders = f"the leader of {group}: {leader_id(group)}"
            message = f"Its task {mine[0].task} has the same transactional id as {holders}."
            yield AMBIGUOUS.found(each.name, message, hint)


def _other(facts: FencingFacts, each: FencedSource, owner: TaskRef) -> bool:
    return (owner.group, owner.connector) != (facts.group, each.name)


def foreign(facts: FencingFacts, each: FencedSource, goal: Goal) -> Iterator[Finding]:
    """FENCE012, for every id that a stranger uses; certain only where no worker can have begun the transaction."""
    for id, places in sorted(each.foreign.items()):
        if facts.enabled is False:
            why = "though no worker has exactly-once enabled"
        else:
            why = "where no task of this connector writes"
        where = ", ".join(sorted({place.topic for place in places}))
        rule = replace(FOREIGN, severity=Severity.ERROR) if facts.enabled is False else FOREIGN
        message = f"{id} has a transaction open on {where}, {why}."
        yield rule.found(
            each.name, message, f"connectctl transactions show {id}", severity=downgrade_severity(rule.severity, goal)
        )


def old_fencing(facts: FencingFacts) -> Finding | None:
    """FENCE011, for workers between 3.3, which fence first, and 3.7.1."""
    old = [v for v in facts.versions if older(v, _FENCING_FIXED_IN) and not older(v, EXACTLY_ONCE)]
    if not old or not facts.connectors:
        return None
    message = f"They run {' and '.join(old)}, whose admin client fails to fence ids with an open transaction."
    return OLD_FENCING.found("workers", message, "Upgrade the workers to 3.7.1 or newer.")
