"""Settings that workers ignore or take literally, and settings under which records are lost without an error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from connectctl.ops.checks.connector_config.exactly_once_rules import OFFSETS_TOPIC, SUPPORT, WORKERS_OWN
from connectctl.ops.checks.connector_config.framework_rules import DLQ
from connectctl.ops.checks.connector_config.observe import SINK, SOURCE, PropertyCase, Subject, listed
from connectctl.ops.checks.connector_config.properties import CONNECTOR
from connectctl.ops.checks.connector_config.properties import SINK as OF_SINKS
from connectctl.ops.checks.types import Goal
from connectctl.ops.connect.source_transactions import BOUNDARY, INTERVAL, LATENCY
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
"""Properties that other rules are about."""
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
"""Letters of the shortest name for which a misspelt one is searched: shorter ones resemble too many others."""
_LIKENESS = 0.85
_NAME = re.compile(r"\$\{[^}:]*\}")
_VARIABLE = re.compile(r"\$\{[A-Z_][A-Z0-9_]*\}")
"""A placeholder that looks like an environment variable's; ``${topic}`` is a pattern of many connectors."""
_SKIPS = {
    "event.processing.failure.handling.mode": ("skip", "ignore"),
    "event.deserialization.failure.handling.mode": ("skip", "ignore"),
    "behavior.on.malformed.documents": ("ignore",),
    "behavior.on.error": ("ignore",),
}
"""Properties of widespread connectors (Debezium, Elasticsearch, HTTP) with the values under which they skip records."""
_FILTER = "org.apache.kafka.connect.transforms.Filter"


@rule("CONFIG016", Severity.WARNING)
def misspelt(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG016: names that resemble a property of Connect itself, which no plugin defines."""
    asked = bool(subject.defined)
    for name in subject.config:
        if name in subject.defined or name in _NO_MISTAKE:
            continue
        meant = _meant(name, subject)
        if meant is None or meant in subject.config:
            continue
        doubt = "" if asked else " No worker was asked whether the connector's class defines it."
        message = f"Misspelt: workers ignore {name}; do you mean {meant}?{doubt}"
        yield PropertyCase(name, message, f"Rename it to {meant}, or leave it out.")


def _meant(name: str, subject: Subject) -> str | None:
    """Return the property that ``name`` resembles, None for one that is right, or that resembles none."""
    known = (
        _COMMON | (_OF_SOURCES if subject.kind != SINK else set()) | (_OF_SINKS if subject.kind != SOURCE else set())
    )
    if name in _COMMON | _OF_SOURCES | _OF_SINKS or name.startswith(_PREFIXES):
        return None
    parts = name.split(".", 2)
    if len(parts) == 3 and (near := get_close_matches(f"{parts[0]}.{parts[1]}.", _CLIENTS, 1, _LIKENESS)):
        return f"{near[0]}{parts[2]}"
    long = sorted(each for each in known if len(each) >= _SHORTEST)
    turned = [each for each in long if sorted(each.split(".")) == sorted(name.split("."))]
    longer = [each for each in long if name.startswith(each) and "." not in name.removeprefix(each)]
    return next(iter((*turned, *longer, *get_close_matches(name, long, 1, _LIKENESS))), None)


@rule("CONFIG017", Severity.WARNING)
def placeholders(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG017: ``${NAME}`` without a colon, in values about which no other rule reports anything."""
    values = {"name": subject.name, **subject.config}
    for name, value in values.items():
        own = name in _COMMON | _OF_SOURCES | _OF_SINKS
        found = (_NAME if own else _VARIABLE).search(value or "")
        if found is None:
            continue
        message = f"{name} has {found.group()}, which is no reference without a colon: workers take it literally."
        step = "Replace it before the configuration is sent, for example with envsubst."
        yield PropertyCase(name, message, step, unreported=True)


@rule("CONFIG018", Severity.WARNING)
def lost_records(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG018: records that are skipped or dropped without an error, a dead letter or a line in the log."""
    for name, message, step in _losses(subject):
        yield PropertyCase(name, message, step, unreported=True)


def _losses(subject: Subject) -> Iterator[tuple[str, str, str]]:
    quiet = subject.word("errors.log.enable", "false") == "false" and "errors.log.enable" not in _unknown(subject)
    queue = subject.config.get(DLQ) if subject.kind != SOURCE else None
    if subject.text("errors.tolerance") == "all" and quiet and not queue:
        nothing = (
            "no dead letter queue is set and errors.log.enable is false"
            if subject.kind == SINK
            else ("errors.log.enable is false")
        )
        remedy = f"Set {DLQ}, or errors.log.enable=true." if subject.kind == SINK else "Set errors.log.enable=true."
        yield "errors.tolerance", f"errors.tolerance is all, and {nothing}: bad records are dropped silently.", remedy
    for name, values in _SKIPS.items():
        if (value := subject.word(name, "")) in values:
            yield name, f"{name} is {value}: records that fail are dropped silently.", f"Set {name} to warn or fail."
    for alias in dict.fromkeys(listed(subject.text("transforms"))):
        prefix = f"transforms.{alias}"
        if subject.text(f"{prefix}.type") == _FILTER and not subject.config.get(f"{prefix}.predicate"):
            message = f"{prefix} is a Filter without a predicate: every record is dropped silently."
            yield f"{prefix}.type", message, f"Set {prefix}.predicate."
    if subject.kind == SOURCE and True not in subject.modes and subject.text("producer.override.acks") == "0":
        message = "producer.override.acks is 0: a record that no broker stores is lost silently."
        yield "producer.override.acks", message, "Set it to all, or leave it out."


def _unknown(subject: Subject) -> set[str]:
    """Return the properties whose values only workers know."""
    return {name for name, value in subject.config.items() if value is not None and subject.text(name) is None}
