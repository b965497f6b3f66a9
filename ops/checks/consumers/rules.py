"""READER001 to READER005 and SINK001: consumers that are not known to use read_committed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.consumers.observe import (
    COMMITTED,
    ISOLATION,
    MIRROR,
    SINK,
    ReaderConnector,
    ReaderFacts,
)
from connectctl.ops.connect.goal import Goal, enabling
from connectctl.ops.core.finding import Severity, some_of
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.kafka.brokers import ReaderGroup

_SHOWN = 20
"""The number of names in one sentence."""


@rule("SINK001", Severity.INFO)
def sinks_untouched(facts: ReaderFacts, goal: Goal) -> Iterator[Case]:
    """Yield SINK001 once, if there are sink connectors."""
    if facts.sinks and goal in (Goal.PREPARING, Goal.ENABLED):
        message = (
            f"{some_of(sorted(facts.sinks), _SHOWN)}: exactly-once source support changes "
            "nothing for sinks."
        )
        hint = (
            f"Set consumer.override.{ISOLATION}={COMMITTED} on those that read topics of "
            "source connectors."
        )
        yield Case("sinks", message, hint)


@rule("READER001", Severity.WARNING, when=enabling, each="connectors")
def sink_reads_all(facts: ReaderFacts, reading: ReaderConnector, goal: Goal) -> Case | None:
    """Return READER001 for each sink that is not known to use read_committed."""
    default = f": read_uncommitted, unless the workers set consumer.{ISOLATION}."
    return _reads_all(reading, default) if reading.kind == SINK else None


@rule("READER002", Severity.WARNING, when=enabling, each="connectors")
def mirror_reads_all(facts: ReaderFacts, reading: ReaderConnector, goal: Goal) -> Case | None:
    """Return READER002 for each mirror that is not known to use read_committed."""
    return _reads_all(reading, ": read_uncommitted.") if reading.kind == MIRROR else None


def _reads_all(reading: ReaderConnector, default: str) -> Case | None:
    if reading.level == COMMITTED:
        return None
    message = f"It reads {some_of(sorted(reading.topics), _SHOWN)}"
    unset = f", and {reading.property} is not set{default}"
    message += unset if reading.level is None else f" with {ISOLATION}={reading.level}."
    return Case(reading.name, message, f"Set {reading.property}={COMMITTED}")


@rule("READER003", Severity.WARNING, when=enabling, each="groups")
def proven(facts: ReaderFacts, group: ReaderGroup, goal: Goal) -> Iterator[Case]:
    """Yield READER003 for a group with evidence that it uses read_uncommitted."""
    evidence = facts.beyond.get(group.id, ())
    if not evidence:
        return
    first = evidence[0]
    message = (
        f"It committed {first.committed} on {first.partition}; read_committed readers get no "
        f"further than {first.stable}"
    )
    message += (
        f", and likewise on {len(evidence) - 1} more partitions." if len(evidence) > 1 else "."
    )
    if not group.active and all(commit.committed == commit.end for commit in evidence):
        message += " It has no members now, so its offsets may have been set by hand."
    yield Case(
        group.id, message + _clients(group), f"Set {ISOLATION}={COMMITTED} in its consumers."
    )


@rule("READER005", Severity.INFO, when=enabling)
def cannot_be_seen(facts: ReaderFacts, goal: Goal) -> Iterator[Case]:
    """Yield READER005 for each source connector with groups of unknown isolation level, and once
    for share groups.
    """
    for source, topics in facts.sources.items():
        if unknown := {group for topic in topics for group in facts.unexplained.get(topic, ())}:
            message = (
                f"Its topics are read by {some_of(sorted(unknown), _SHOWN)}; their "
                f"{ISOLATION} is unknown."
            )
            yield Case(source, message, f"Check {ISOLATION}={COMMITTED} in their consumers.")
    if facts.sharing:
        message = (
            f"{some_of(facts.sharing, _SHOWN)}: it is not checked what these share groups "
            "read, nor how."
        )
        yield Case(
            "share groups",
            message,
            f"Check share.{ISOLATION}={COMMITTED} of those that read what source connectors write.",
        )


def _clients(group: ReaderGroup) -> str:
    clients = sorted(
        {f"{member.client_id} at {member.host.lstrip('/')}" for member in group.members}
    )
    return f" Its members: {some_of(sorted(clients), _SHOWN)}." if clients else ""
