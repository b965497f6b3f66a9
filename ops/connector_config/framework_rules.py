"""Rules about the properties that every connector has, by the validation of workers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.sink_group import DEAD_LETTERS as DLQ
from connectctl.ops.connector_config.property_values import (
    connector_problem,
    listed,
    number_problem,
)
from connectctl.ops.connector_config.subject import (
    SINK,
    PropertyCase,
    Subject,
    of_sink,
    of_source,
    refused,
)
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import rule

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_AMBIGUOUS = re.compile(r"[/\\%]")
_NULL = "Null value can not be supplied as the configuration value."


@rule("CONFIG001", Severity.ERROR)
def no_class(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG001 without a class; only workers know whether a class is installed."""
    if (subject.config.get("connector.class") or "").strip():
        return None
    message = (
        "It has no connector.class."
        if subject.running
        else "The configuration contains no connector type."
    )
    return PropertyCase("connector.class", message, "Set connector.class.", text=message)


@rule("CONFIG002", Severity.ERROR)
def bad_name(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG002 for an invalid name of the connector."""
    found = _CONTROL.findall(subject.name)
    if not subject.name.strip():
        yield refused(
            "name", "Invalid value  for configuration name: String may not be empty", "Set name."
        )
    elif found:
        codes = ", ".join(str(ord(character)) for character in found)
        text = (
            f"String may not contain control sequences but had the following ASCII chars: {codes}"
        )
        shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", subject.name)
        worker_text = f"Invalid value {subject.name} for configuration name: {text}"
        step = "Remove the control characters from the name."
        yield PropertyCase(
            "name", f"Invalid value {shown} for configuration name: {text}", step, text=worker_text
        )
    configured = subject.config.get("name")
    if configured is not None and configured != subject.name:
        message = (
            f"Connector name configuration ({configured}) doesn't match connector name in "
            f"the URL ({subject.name})"
        )
        step = f"Leave the property name out, or set it to {subject.name}."
        yield PropertyCase("name", message, step, text=message)


@rule("CONFIG003", Severity.WARNING)
def unreachable_name(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG003 for a name that workers accept and cannot find in a request's path."""
    mark = _AMBIGUOUS.search(subject.name)
    if not mark and subject.name not in (".", ".."):
        return None
    why = f"a {mark.group()} in it" if mark else "only dots in it"
    message = f"Its name has {why}: workers will create it, and then refuse every request about it."
    return PropertyCase(
        "name", message, "Give it a name of letters, digits, dots, dashes and underscores."
    )


@rule("CONFIG004", Severity.ERROR)
def bad_tasks_max(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG004 for an invalid ``tasks.max``."""
    value = subject.text("tasks.max")
    problem = None if value is None else number_problem("tasks.max", value, "INT", 1)
    return (
        refused("tasks.max", problem, "Set tasks.max to an integer of at least 1.")
        if problem
        else None
    )


@rule("CONFIG005", Severity.WARNING)
def allowed_too_many(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG005 if ``tasks.max.enforce`` is false."""
    if subject.word("tasks.max.enforce", "true") != "false" or subject.running:
        return None
    message = (
        "tasks.max.enforce is false, and the connector may have more tasks than tasks.max for now."
    )
    return PropertyCase(
        "tasks.max.enforce", message, "Raise tasks.max, and leave tasks.max.enforce out."
    )


@rule("CONFIG006", Severity.ERROR)
def bad_value(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG006 for values that Connect does not accept."""
    for name in subject.config:
        text = subject.text(name)
        if text is not None and (
            problem := connector_problem(name, text, sink=subject.kind == SINK)
        ):
            yield refused(name, problem, f"Correct {name}, or leave it out.")


@rule("CONFIG007", Severity.ERROR)
def null(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG007 for properties that are null."""
    for name, value in subject.config.items():
        if value is None:
            yield PropertyCase(
                name, f"{name}: {_NULL}", f"Leave out {name}.", text=_NULL, validated=True
            )


def _aliases(subject: Subject) -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds of aliases with the listed aliases, if they are known."""
    for kind in ("transforms", "predicates"):
        value = subject.text(kind)
        if value is not None or subject.config.get(kind) is None:
            yield kind, listed(value)


@rule("CONFIG012", Severity.ERROR)
def not_defined(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG012 for aliases that are not defined, or are listed twice."""
    for kind, named in _aliases(subject):
        if len(named) > len(set(named)):
            text = (
                f"Invalid value [{', '.join(named)}] for configuration {kind}: Duplicate alias "
                "provided."
            )
            yield refused(kind, text, f"Name each alias once in {kind}.")
        for alias in dict.fromkeys(named):
            prefix = f"{kind}.{alias}"
            if subject.config.get(f"{prefix}.type") is None:
                text = f'Missing required configuration "{prefix}.type" which has no default value.'
                yield refused(
                    f"{prefix}.type", text, f"Set {prefix}.type, or remove {alias!r} from {kind}."
                )
            negates = (
                f"{prefix}.negate" in subject.config and f"{prefix}.predicate" not in subject.config
            )
            if kind == "transforms" and negates:
                why = (
                    f"but there is no config '{prefix}.predicate' defining a predicate to be "
                    "negated."
                )
                text = f"Config '{prefix}.negate' was provided {why}"
                yield refused(
                    f"{prefix}.type", text, f"Set {prefix}.predicate, or leave out negate."
                )


@rule("CONFIG014", Severity.WARNING)
def not_listed(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG014 for defined aliases that are not listed."""
    for kind, named in _aliases(subject):
        parts_of_names = (name.split(".") for name in subject.config if name.startswith(kind))
        defined = [
            parts[1]
            for parts in parts_of_names
            if parts[0] == kind and parts[2:] == ["type"] and parts[1]
        ]
        for alias in (alias for alias in defined if alias not in named):
            message = f"{kind}.{alias}.type is set, and {alias} is not in {kind}."
            yield PropertyCase(
                f"{kind}.{alias}.type",
                message,
                f"Add {alias} to {kind}, or leave its properties out.",
            )


@rule("CONFIG013", Severity.ERROR)
def no_predicate(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG013 for transformations that use an unknown predicate."""
    known = dict(_aliases(subject)).get("predicates")
    if known is None:
        return
    for alias in dict.fromkeys(listed(subject.text("transforms"))):
        predicate = subject.text(f"transforms.{alias}.predicate")
        if predicate is not None and predicate not in known:
            message = (
                f"transforms.{alias}.predicate is {predicate}, which predicates does not "
                "list; tasks fail with"
            )
            unknown = f"Unknown configuration 'predicates.{predicate}.plugin.version'"
            step = f"Add {predicate} to predicates, with predicates.{predicate}.type."
            yield PropertyCase(f"transforms.{alias}.predicate", f"{message} {unknown}.", step)


@rule("CONFIG008", Severity.ERROR, when=of_sink)
def no_topics(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG008 for a sink without valid topics."""
    both = ("topics", "topics.regex")
    configured = [name for name in both if (subject.config.get(name) or "").strip()]
    if len(configured) == 2:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
        yield refused(both, text, "Leave out topics or topics.regex.")
    elif not configured:
        yield refused(both, "Must configure one of topics or topics.regex", "Set topics.")
    named = listed(subject.text("topics"))
    if "" in named:
        text = "Configuration 'topics' values must not be empty."
        yield refused("topics", text, "Remove the extra comma from topics.")
    elif len(named) > len(set(named)):
        text = "Configuration 'topics' values must not be duplicated."
        yield refused("topics", text, "Name each topic once in topics.")


def with_dead_letters(subject: Subject, goal: Goal) -> bool:
    """Return whether it is a sink with a dead letter queue."""
    return subject.kind == SINK and bool(subject.text(DLQ))


@rule("CONFIG009", Severity.ERROR, when=with_dead_letters)
def own_dead_letters(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG009 if a sink reads its own dead letter queue."""
    queue = subject.text(DLQ)
    named = list(dict.fromkeys(topic for topic in listed(subject.text("topics")) if topic))
    if queue not in named:
        return None
    where = f"('topics=[{', '.join(named)}]')"
    text = (
        f"The DLQ topic '{queue}' may not be included in the list of topics {where} consumed "
        "by the connector"
    )
    return refused("topics", text, f"Give {DLQ} a topic of its own.")


@rule("CONFIG010", Severity.WARNING, when=with_dead_letters)
def idle_dead_letters(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG010 if a dead letter queue is not used, because errors are not tolerated."""
    if subject.word("errors.tolerance", "none") != "none" or subject.text(
        "errors.tolerance"
    ) not in (None, "none"):
        return None
    message = (
        f"{DLQ} is {subject.text(DLQ)}, and errors.tolerance is none: the first bad record "
        "ends the task."
    )
    return PropertyCase(DLQ, message, "Set errors.tolerance to all.")


@rule("CONFIG011", Severity.ERROR, when=of_sink)
def workers_group(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG011 if the sink's consumers would join the group of the workers."""
    override = "consumer.override.group.id"
    group = subject.text(override)
    if subject.group_id is None:
        return
    if group is not None and group == subject.group_id:
        text = f"Consumer group {group} conflicts with Connect worker group {group}"
        yield refused(override, text, f"Leave out {override}, or give it another group.")
    elif override not in subject.config and f"connect-{subject.name}" == subject.group_id:
        head = f"Consumer group for sink connector named {subject.name}"
        text = f"{head} conflicts with Connect worker group {subject.group_id}"
        yield refused("name", text, f"Give it another name, or set {override}.")


@rule("CONFIG015", Severity.ERROR, when=of_source)
def topic_creation(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG015 for topic creation without its default group."""
    prefix = "topic.creation."
    if not any(setting.startswith(prefix) for setting in subject.config):
        return
    for setting in ("replication.factor", "partitions"):
        default = f"{prefix}default.{setting}"
        if subject.config.get(default) is None:
            text = f'Missing required configuration "{default}" which has no default value.'
            yield PropertyCase(default, text, f"Set {default}; -1 is the brokers' default.")
