"""FLOW003 to FLOW008: sinks that do not keep up, and records that they leave out: rules over
``sinks.observe``. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.sinks.observe import (
    DEAD_LATELY,
    JOINED,
    WAITED,
    SinkFacts,
    SinkProgress,
    WaitingPartition,
)
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connector_config import silent_rules
from connectctl.ops.connector_config.subject import Subject, hits
from connectctl.ops.core.finding import Finding, Severity, counted, some_of
from connectctl.ops.core.rule import Case, Several, rule
from connectctl.ops.core.times import in_words

NAMED = 3


@rule("FLOW003", Severity.ERROR, each="sinks")
def stands_still(facts: SinkFacts, sink: SinkProgress, goal: Goal) -> Case | None:
    """Return FLOW003 for a sink none of whose waiting partitions moves."""
    if not _ran(facts, sink) or not sink.lagging:
        return None
    if any(each.moves is not False for each in sink.lagging):
        return None
    message = (
        f"It is RUNNING and stands still: {_lag(sink.lagging)}, and it has not committed an offset "
        f"of them for {_still_for(facts, sink, sink.lagging)}."
    )
    hint = (
        f"Take a thread dump of {_workers(sink)}, then: connectctl connectors restart {sink.name}"
    )
    return Case(sink.name, message, hint, since=_since(sink.lagging), evidence=_evidence(sink))


@rule("FLOW004", Severity.ERROR, each="sinks")
def stuck_partitions(facts: SinkFacts, sink: SinkProgress, goal: Goal) -> Case | None:
    """Return FLOW004 for partitions that do not move while others of the sink do."""
    stuck = tuple(each for each in sink.lagging if each.moves is False)
    if not _ran(facts, sink) or not stuck or all(e.moves is False for e in sink.lagging):
        return None
    message = (
        f"{counted(len(stuck), 'partition')} of {sink.read} stand still while others move: "
        f"{some_of([str(each.partition) for each in stuck], NAMED)}; {_lag(stuck)}."
    )
    hint = f"connectctl connectors restart {sink.name}"
    return Case(sink.name, message, hint, since=_since(stuck), evidence=_evidence(sink))


@rule("FLOW005", Severity.WARNING, each="sinks")
def lag_grows(facts: SinkFacts, sink: SinkProgress, goal: Goal) -> Case | None:
    """Return FLOW005 for a sink whose lag grows; as information if that is not known."""
    if not _ran(facts, sink) or not sink.lagging or any(e.moves is False for e in sink.lagging):
        return None
    lag = _lag(sink.lagging)
    committed_lately = [
        each.committed_lately for each in sink.lagging if each.committed_lately is not None
    ]
    if len(committed_lately) < len(sink.lagging):
        message = f"{lag}; it is not known whether the lag grows."
        hint = "Run doctor again in some minutes, as sinks commit once a minute"
        return Case(sink.name, message, hint, Severity.INFO)
    arrived = sum(each.arrived for each in sink.lagging)
    if sum(committed_lately) >= arrived:
        return None
    message = (
        f"{lag}, and the lag grows: in the last {in_words(WAITED)} {arrived:,} records arrived, "
        f"and {sum(committed_lately):,} were committed."
    )
    hint = f"Give {sink.name} more tasks (tasks.max), or find out what its destination waits for"
    return Case(sink.name, message, hint, evidence=_evidence(sink))


@rule("FLOW006", Severity.ERROR, each="sinks")
def members_missing(facts: SinkFacts, sink: SinkProgress, goal: Goal) -> Case | None:
    """Return FLOW006 for RUNNING tasks that are not in the consumer group."""
    if sink.group is None or not sink.lacks_members(facts.now):
        return None
    message = (
        f"{counted(sink.running, 'task')} of it are RUNNING, and its group {sink.group_id} has "
        f"{counted(len(sink.group.members), 'member')}: a task whose put takes longer than max.poll.interval.ms "
        "leaves the group."
    )
    hint = (
        f"Take a thread dump of {_workers(sink)}, then: connectctl connectors restart {sink.name}"
    )
    return Case(sink.name, message, hint, evidence=_evidence(sink))


@rule("FLOW007", Severity.WARNING, each="sinks")
def dead_letters_fill(facts: SinkFacts, sink: SinkProgress, goal: Goal) -> Case | None:
    """Return FLOW007 for a dead letter queue that got records lately."""
    if not sink.dead or sink.dead_topic is None:
        return None
    message = (
        f"Its dead letter queue {sink.dead_topic} got {counted(sink.dead, 'record')} in the last "
        f"{in_words(DEAD_LATELY)}: it leaves out what it cannot process."
    )
    hint = f"Read the headers __connect.errors.* of the records in {sink.dead_topic}"
    return Case(sink.name, message, hint)


@rule("FLOW008", Severity.WARNING, each="sinks")
def topics_missing(facts: SinkFacts, sink: SinkProgress, goal: Goal) -> Case | None:
    """Return FLOW008 for topics that a running sink is to read, and that do not exist."""
    if not sink.missing or sink.running_since is None or facts.now - sink.running_since < JOINED:
        return None
    count = len(sink.missing)
    message = (
        f"It is RUNNING, and {counted(count, 'topic')} of its configuration "
        f"{'does' if count == 1 else 'do'} not exist: {some_of(list(sink.missing), NAMED)}."
    )
    hint = f"Create what is missing, or correct topics: connectctl connectors show {sink.name}"
    return Case(sink.name, message, hint)


@Several
def thrown_away(facts: SinkFacts, goal: Goal) -> Iterator[Finding]:
    """Yield CONFIG018 for connectors that drop records without a trace."""
    for name, config in sorted(facts.connectors.items()):
        subject = Subject(name, config, running=True)
        yield from (
            hit.finding
            for hit in hits((silent_rules,), subject)
            if hit.finding.id == silent_rules.lost_records.id
        )


def _ran(facts: SinkFacts, sink: SinkProgress) -> bool:
    """Return whether it has run for so long that what waits should have been processed."""
    return sink.running_since is not None and facts.now - sink.running_since > WAITED


def _lag(lagging: tuple[WaitingPartition, ...]) -> str:
    lag = sum(each.lag for each in lagging)
    waiting = f"{lag:,} records wait" if lag != 1 else "1 record waits"
    partitions = counted(len(lagging), "partition")
    return f"{waiting} in {partitions}, the first for over {in_words(WAITED)}"


def _since(lagging: tuple[WaitingPartition, ...]) -> float | None:
    return min((each.moved_at for each in lagging if each.moved_at is not None), default=None)


def _still_for(facts: SinkFacts, sink: SinkProgress, lagging: tuple[WaitingPartition, ...]) -> str:
    last = max((each.moved_at for each in lagging if each.moved_at is not None), default=None)
    return f"over {in_words(WAITED)}" if last is None else in_words(facts.now - last)


def _evidence(sink: SinkProgress) -> tuple[str, ...]:
    worst = sorted(sink.lagging, key=lambda each: -each.lag)[:NAMED]
    return tuple(
        f"{each.partition}: committed "
        f"{'nothing' if each.committed is None else f'{each.committed:,}'}, end {each.end:,}"
        for each in worst
    )


def _workers(sink: SinkProgress) -> str:
    return ", ".join(sink.workers) or "its workers"
