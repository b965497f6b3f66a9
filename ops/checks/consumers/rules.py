"""READER001 … and SINK001: who reads what source connectors write without read_committed, as far as it can be seen. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.consumers.observe import (
    COMMITTED,
    ISOLATION,
    MIRROR,
    SINK,
    UNCOMMITTED,
    ReaderConnector,
    ReaderFacts,
)
from connectctl.ops.checks.types import Goal, leads_to_enabled
from connectctl.ops.core.finding import Finding, Severity, some_of
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.brokers import SHARE, ReaderGroup

_SHOWN = 20
"""Names in one sentence."""

SINK_READS_ALL = Rule("READER001", Severity.WARNING)
MIRROR_READS_ALL = Rule("READER002", Severity.WARNING)
PROVEN = Rule("READER003", Severity.WARNING)
SHARES_ALL = Rule("READER004", Severity.WARNING)
CANNOT_BE_SEEN = Rule("READER005", Severity.INFO)
SINKS_UNTOUCHED = Rule("SINK001", Severity.INFO)


def check(facts: ReaderFacts, goal: Goal) -> Iterator[Finding]:
    """Everything about readers and sinks, where source connectors have transactions or are to have them."""
    yield from sinks_untouched(facts, goal)
    if not leads_to_enabled(facts.enabled, goal):
        return
    for reading in facts.connectors:
        yield from reads_all(reading)
    for group in facts.groups:
        yield from proven(group, facts)
        yield from share_group_reads_all(group, facts)
    for source, topics in facts.sources.items():
        yield from cannot_be_seen(source, topics, facts)


def sinks_untouched(facts: ReaderFacts, goal: Goal) -> Iterator[Finding]:
    """SINK001, once."""
    if facts.sinks and goal in (Goal.PREPARING, Goal.ENABLED):
        message = f"{some_of(sorted(facts.sinks), _SHOWN)}: exactly-once source support changes nothing for sinks."
        hint = f"Set consumer.override.{ISOLATION}={COMMITTED} on those that read what source connectors write."
        yield SINKS_UNTOUCHED.found("sinks", message, hint)


def reads_all(reading: ReaderConnector) -> Iterator[Finding]:
    """READER001 and READER002, for each connector that does not have read_committed as far as anybody says."""
    rule = {SINK: SINK_READS_ALL, MIRROR: MIRROR_READS_ALL}[reading.kind]
    if reading.level == COMMITTED:
        return
    message = f"It reads {some_of(sorted(reading.topics), _SHOWN)}"
    if reading.level is not None:
        message += f" with {ISOLATION}={reading.level}."
    elif reading.kind == SINK:
        message += (
            f", and {reading.property} is not set: read_uncommitted, unless the workers set consumer.{ISOLATION}."
        )
    else:
        message += f", and {reading.property} is not set: read_uncommitted."
    yield rule.found(reading.name, message, f"Set {reading.property}={COMMITTED}")


def proven(group: ReaderGroup, facts: ReaderFacts) -> Iterator[Finding]:
    """READER003, for a group with evidence."""
    evidence = facts.beyond.get(group.id, ())
    if not evidence:
        return
    first = evidence[0]
    message = (
        f"It committed {first.committed} on {first.place}; read_committed readers get no further than {first.stable}"
    )
    message += f", and likewise on {len(evidence) - 1} more partitions." if len(evidence) > 1 else "."
    if not group.active and all(each.committed == each.end for each in evidence):
        message += " It has no members now, so its offsets may have been set by hand."
    yield PROVEN.found(group.id, message + _clients(group), f"Set {ISOLATION}={COMMITTED} in its consumers.")


def share_group_reads_all(group: ReaderGroup, facts: ReaderFacts) -> Iterator[Finding]:
    """READER004, for a share group."""
    if group.type == SHARE and group.isolation == UNCOMMITTED:
        topics = some_of(sorted(group.topics & facts.topics), _SHOWN)
        message = f"It reads {topics}, and its share.isolation.level is {group.isolation}."
        hint = f"kafka-configs.sh --alter --group {group.id} --add-config share.isolation.level={COMMITTED}"
        yield SHARES_ALL.found(group.id, message, hint)


def cannot_be_seen(source: str, topics: frozenset[str], facts: ReaderFacts) -> Iterator[Finding]:
    """READER005, for each source connector, with the groups whose isolation level is unknown."""
    unknown = {group for topic in topics for group in facts.unexplained.get(topic, ())}
    if unknown:
        message = f"What it writes is read by {some_of(sorted(unknown), _SHOWN)}; their {ISOLATION} is unknown."
        yield CANNOT_BE_SEEN.found(source, message, f"Check {ISOLATION}={COMMITTED} in their consumers.")


def _clients(group: ReaderGroup) -> str:
    clients = sorted({f"{member.client_id} at {member.host.lstrip('/')}" for member in group.members})
    return f" Its members: {some_of(sorted(clients), _SHOWN)}." if clients else ""
