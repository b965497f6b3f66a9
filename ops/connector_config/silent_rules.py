"""Rules about settings that workers ignore or use literally, and settings that lose records
silently. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from connectctl.ops.connect.connector_class import configured_topics
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import TOPIC as OFFSETS_TOPIC
from connectctl.ops.connect.sink_group import DEAD_LETTERS as DLQ
from connectctl.ops.connect.source_transactions import BOUNDARY, INTERVAL, LATENCY
from connectctl.ops.connector_config.exactly_once_rules import SUPPORT, WORKERS_OWN
from connectctl.ops.connector_config.property_values import CONNECTOR, listed
from connectctl.ops.connector_config.property_values import SINK as OF_SINKS
from connectctl.ops.connector_config.subject import SINK, SOURCE, PropertyCase, Subject
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import rule

_COMMON = frozenset(CONNECTOR) | {
    "name",
    "connector.class",
    "connector.plugin.version",
    "tasks.max",
    "key.converter",
    "value.converter",
    "header.converter",
    "transforms",
    "predicates",
}
_OF_SOURCES = frozenset({SUPPORT, BOUNDARY, INTERVAL, OFFSETS_TOPIC, "topic.creation.groups"})
_OF_SINKS = frozenset(OF_SINKS) | {"topics", "topics.regex", DLQ}
_NO_MISTAKE = frozenset(WORKERS_OWN) | {LATENCY}
"""Properties that other rules report."""
_CLIENTS = tuple(f"{client}.override." for client in ("producer", "consumer", "admin"))
_PREFIXES = (
    *_CLIENTS,
    "transforms.",
    "predicates.",
    "topic.creation.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
)
_SHORTEST = 8
"""The length of the shortest name for which misspelt ones are searched: shorter ones resemble too
many others.
"""
_LIKENESS = 0.85
_NAME = re.compile(r"\$\{[^}:]*\}")
_VARIABLE = re.compile(r"\$\{[A-Z_][A-Z0-9_]*\}")
"""A placeholder with the form of an environment variable's; ``${topic}`` is a pattern of many
connectors.
"""
_SKIPS = {
    "event.processing.failure.handling.mode": ("skip", "ignore"),
    "event.deserialization.failure.handling.mode": ("skip", "ignore"),
    "behavior.on.malformed.documents": ("ignore",),
    "behavior.on.error": ("ignore",),
}
"""Properties of widespread connectors (Debezium, Elasticsearch, HTTP) with the values that make
them skip records.
"""
_FILTER = "org.apache.kafka.connect.transforms.Filter"


@rule("CONFIG016", Severity.WARNING)
def misspelt(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG016 for names that resemble a property of Connect itself and that no plugin
    defines.
    """
    asked = bool(subject.defined)
    for name in subject.config:
        if name in subject.defined or name in _NO_MISTAKE:
            continue
        intended = _intended(name, subject)
        if intended is None or intended in subject.config:
            continue
        doubt = "" if asked else " No worker was asked whether the connector's class defines it."
        message = f"Misspelt: workers ignore {name}; do you mean {intended}?{doubt}"
        yield PropertyCase(name, message, f"Rename it to {intended}, or leave it out.")


def _intended(name: str, subject: Subject) -> str | None:
    """Return the property that ``name`` resembles, None for a known one, or if it resembles
    none.
    """
    known = (
        _COMMON
        | (_OF_SOURCES if subject.kind != SINK else set())
        | (_OF_SINKS if subject.kind != SOURCE else set())
    )
    if name in _COMMON | _OF_SOURCES | _OF_SINKS or name.startswith(_PREFIXES):
        return None
    parts = name.split(".", 2)
    if len(parts) == 3 and (
        similar := get_close_matches(f"{parts[0]}.{parts[1]}.", _CLIENTS, 1, _LIKENESS)
    ):
        return f"{similar[0]}{parts[2]}"
    candidates = sorted(known_name for known_name in known if len(known_name) >= _SHORTEST)
    reordered = [
        known_name
        for known_name in candidates
        if sorted(known_name.split(".")) == sorted(name.split("."))
    ]
    longer = [
        known_name
        for known_name in candidates
        if name.startswith(known_name) and "." not in name.removeprefix(known_name)
    ]
    return next(
        iter((*reordered, *longer, *get_close_matches(name, candidates, 1, _LIKENESS))), None
    )


@rule("CONFIG017", Severity.WARNING)
def placeholders(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG017 for ``${NAME}`` without a colon, in values that no other rule reports."""
    values = {"name": subject.name, **subject.config}
    for name, value in values.items():
        is_known = name in _COMMON | _OF_SOURCES | _OF_SINKS
        found = (_NAME if is_known else _VARIABLE).search(value or "")
        if found is None:
            continue
        message = (
            f"{name} has {found.group()}, which is not a reference without a colon: workers "
            "take it literally."
        )
        step = "Replace it before the configuration is sent, for example with --env-file or --set."
        yield PropertyCase(name, message, step, unreported=True)


@rule("CONFIG018", Severity.WARNING)
def lost_records(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG018 for records that are skipped or dropped without an error, a dead letter or a
    log line.
    """
    for name, message, step in _losses(subject):
        yield PropertyCase(name, message, step, unreported=True)


def _losses(subject: Subject) -> Iterator[tuple[str, str, str]]:
    unlogged = subject.word(
        "errors.log.enable", "false"
    ) == "false" and "errors.log.enable" not in _unknown(subject)
    dead_letters = subject.config.get(DLQ) if subject.kind != SOURCE else None
    if subject.text("errors.tolerance") == "all" and unlogged and not dead_letters:
        reason = (
            "no dead letter queue is set and errors.log.enable is false"
            if subject.kind == SINK
            else ("errors.log.enable is false")
        )
        remedy = (
            f"Set {DLQ}, or errors.log.enable=true."
            if subject.kind == SINK
            else "Set errors.log.enable=true."
        )
        yield (
            "errors.tolerance",
            f"errors.tolerance is all, and {reason}: bad records are dropped silently.",
            remedy,
        )
    for name, values in _SKIPS.items():
        if (value := subject.word(name, "")) in values:
            yield (
                name,
                f"{name} is {value}: records that fail are dropped silently.",
                f"Set {name} to warn or fail.",
            )
    for alias in dict.fromkeys(listed(subject.text("transforms"))):
        prefix = f"transforms.{alias}"
        if subject.text(f"{prefix}.type") == _FILTER and not subject.config.get(
            f"{prefix}.predicate"
        ):
            message = f"{prefix} is a Filter without a predicate: every record is dropped silently."
            yield f"{prefix}.type", message, f"Set {prefix}.predicate."
    if (
        subject.kind == SOURCE
        and True not in subject.modes
        and subject.text("producer.override.acks") == "0"
    ):
        message = "producer.override.acks is 0: a record that no broker stores is lost silently."
        yield "producer.override.acks", message, "Set it to all, or leave it out."


def _unknown(subject: Subject) -> set[str]:
    """Return the properties whose values only workers know."""
    return {
        name
        for name, value in subject.config.items()
        if value is not None and subject.text(name) is None
    }


OWN_TOPIC = (
    "Source tasks may not produce to their own offsets topics when exactly-once support is enabled"
)


@rule("STORE008", Severity.ERROR)
def own_target(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return STORE008 for a configuration that is not on the cluster yet; ``offset_stores`` has it
    for the others.
    """
    if subject.running or subject.kind != SOURCE or subject.modes == {False}:
        return None
    dedicated = subject.text(OFFSETS_TOPIC)
    topic = subject.offsets_topic if dedicated is None else dedicated
    targets = configured_topics(
        {name: value for name, value in subject.config.items() if value is not None}
    )
    if not topic or topic not in targets:
        return None
    severity = Severity.ERROR if subject.modes else Severity.WARNING
    step = f"Write to another topic than {topic}, or give {OFFSETS_TOPIC} another name."
    return PropertyCase(OFFSETS_TOPIC, f"{OWN_TOPIC}.", step, severity)
