"""What every connector's configuration has, against what workers make of it. Pure."""

from __future__ import annotations

import re

from connectctl.ops.checks.connector_config.observe import SINK, SOURCE, Subject, Words, listed, number_problem
from connectctl.ops.checks.connector_config.properties import connector_problem
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

NO_CLASS = Rule("CONFIG001", Severity.ERROR)
BAD_NAME = Rule("CONFIG002", Severity.ERROR)
UNREACHABLE_NAME = Rule("CONFIG003", Severity.WARNING)
BAD_TASKS_MAX = Rule("CONFIG004", Severity.ERROR)
ALLOWED_TOO_MANY = Rule("CONFIG005", Severity.WARNING)
BAD_VALUE = Rule("CONFIG006", Severity.ERROR)
NULL = Rule("CONFIG007", Severity.ERROR)
NO_TOPICS = Rule("CONFIG008", Severity.ERROR)
OWN_DEAD_LETTERS = Rule("CONFIG009", Severity.ERROR)
IDLE_DEAD_LETTERS = Rule("CONFIG010", Severity.WARNING)
WORKERS_GROUP = Rule("CONFIG011", Severity.ERROR)
NOT_DEFINED = Rule("CONFIG012", Severity.ERROR)
NO_PREDICATE = Rule("CONFIG013", Severity.ERROR)
NOT_LISTED = Rule("CONFIG014", Severity.WARNING)
TOPIC_CREATION = Rule("CONFIG015", Severity.ERROR)

DLQ = "errors.deadletterqueue.topic.name"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_AMBIGUOUS = re.compile(r"[/\\%]")
_NULL = "Null value can not be supplied as the configuration value."


def check(subject: Subject, words: Words) -> None:
    class_(subject, words)
    name(subject, words)
    tasks(subject, words)
    values(subject, words)
    for kind in ("transforms", "predicates"):
        aliases(subject, words, kind)
    predicates(subject, words)
    if subject.kind == SINK:
        sink_topics(subject, words)
        dead_letters(subject, words)
        group(subject, words)
    elif subject.kind == SOURCE:
        topic_creation(subject, words)


def class_(subject: Subject, words: Words) -> None:
    """CONFIG001: no class at all; whether workers have it only they can say."""
    if not (subject.config.get("connector.class") or "").strip():
        message = (
            "The configuration contains no connector type." if not subject.running else "It has no connector.class."
        )
        words.add(NO_CLASS, "connector.class", message, "Set connector.class.", text=message)


def name(subject: Subject, words: Words) -> None:
    """CONFIG002 and CONFIG003."""
    found = _CONTROL.findall(subject.name)
    if not subject.name.strip():
        words.refused(BAD_NAME, "name", "Invalid value  for configuration name: String may not be empty", "Set name.")
    elif found:
        codes = ", ".join(str(ord(character)) for character in found)
        text = f"String may not contain control sequences but had the following ASCII chars: {codes}"
        shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", subject.name)
        said = f"Invalid value {subject.name} for configuration name: {text}"
        step = "Remove the control characters from the name."
        words.add(BAD_NAME, "name", f"Invalid value {shown} for configuration name: {text}", step, text=said)
    own = subject.config.get("name")
    if own is not None and own != subject.name:
        message = f"Connector name configuration ({own}) doesn't match connector name in the URL ({subject.name})"
        step = f"Leave the property name out, or set it to {subject.name}."
        words.add(BAD_NAME, "name", message, step, text=message)
    mark = _AMBIGUOUS.search(subject.name)
    if mark or subject.name in (".", ".."):
        why = f"a {mark.group()} in it" if mark else "only dots in it"
        message = f"Its name has {why}: workers will create it, and then refuse every request about it."
        step = "Give it a name of letters, digits, dots, dashes and underscores."
        words.add(UNREACHABLE_NAME, "name", message, step)


def tasks(subject: Subject, words: Words) -> None:
    """CONFIG004 and CONFIG005."""
    value = subject.text("tasks.max")
    if value is not None and (problem := number_problem("tasks.max", value, "INT", 1)):
        words.refused(BAD_TASKS_MAX, "tasks.max", problem, "Set tasks.max to an integer of at least 1.")
    if subject.word("tasks.max.enforce", "true") == "false" and not subject.running:
        message = "tasks.max.enforce is false, and the connector may have more tasks than tasks.max for now."
        step = "Raise tasks.max, and leave tasks.max.enforce out."
        words.add(ALLOWED_TOO_MANY, "tasks.max.enforce", message, step)


def values(subject: Subject, words: Words) -> None:
    """CONFIG006 and CONFIG007."""
    for each, value in subject.config.items():
        if value is None:
            words.add(NULL, each, f"{each}: {_NULL}", f"Leave out {each}.", text=_NULL, validated=True)
            continue
        text = subject.text(each)
        if text is not None and (problem := connector_problem(each, text, sink=subject.kind == SINK)):
            words.refused(BAD_VALUE, each, problem, f"Correct {each}, or leave it out.")


def aliases(subject: Subject, words: Words, kind: str) -> None:
    """CONFIG012 and CONFIG014: aliases that are not defined, defined ones that are not listed."""
    value = subject.text(kind)
    if value is None and subject.config.get(kind) is not None:
        return
    named = listed(value)
    if len(named) > len(set(named)):
        text = f"Invalid value [{', '.join(named)}] for configuration {kind}: Duplicate alias provided."
        words.refused(NOT_DEFINED, kind, text, f"Name each alias once in {kind}.")
    for alias in dict.fromkeys(named):
        prefix = f"{kind}.{alias}"
        if subject.config.get(f"{prefix}.type") is None:
            text = f'Missing required configuration "{prefix}.type" which has no default value.'
            words.refused(NOT_DEFINED, f"{prefix}.type", text, f"Set {prefix}.type, or take {alias!r} off {kind}.")
        if (
            kind == "transforms"
            and f"{prefix}.negate" in subject.config
            and f"{prefix}.predicate" not in subject.config
        ):
            why = f"but there is no config '{prefix}.predicate' defining a predicate to be negated."
            text = f"Config '{prefix}.negate' was provided {why}"
            words.refused(NOT_DEFINED, f"{prefix}.type", text, f"Set {prefix}.predicate, or leave out negate.")
    ours = (each.split(".") for each in subject.config if each.startswith(kind))
    defined = [parts[1] for parts in ours if len(parts) == 3 and parts[0] == kind and parts[1] and parts[2] == "type"]
    for alias in (alias for alias in defined if alias not in named):
        message = f"{kind}.{alias}.type is set, and {alias} is not in {kind}."
        words.add(NOT_LISTED, f"{kind}.{alias}.type", message, f"Add {alias} to {kind}, or leave its properties out.")


def predicates(subject: Subject, words: Words) -> None:
    """CONFIG013: transformations that use an unknown predicate."""
    if subject.text("predicates") is None and subject.config.get("predicates") is not None:
        return
    known = listed(subject.text("predicates"))
    for alias in dict.fromkeys(listed(subject.text("transforms"))):
        wanted = subject.text(f"transforms.{alias}.predicate")
        if wanted is not None and wanted not in known:
            message = f"transforms.{alias}.predicate is {wanted}, which predicates does not list; tasks fail with"
            unknown = f"Unknown configuration 'predicates.{wanted}.plugin.version'"
            step = f"Add {wanted} to predicates, with predicates.{wanted}.type."
            words.add(NO_PREDICATE, f"transforms.{alias}.predicate", f"{message} {unknown}.", step)


def sink_topics(subject: Subject, words: Words) -> None:
    """CONFIG008: which topics a sink reads."""
    both = ("topics", "topics.regex")
    given = [each for each in both if (subject.config.get(each) or "").strip()]
    if len(given) == 2:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
        words.refused(NO_TOPICS, both, text, "Leave out topics or topics.regex.")
    elif not given:
        words.refused(NO_TOPICS, both, "Must configure one of topics or topics.regex", "Set topics.")
    named = listed(subject.text("topics"))
    if "" in named:
        text = "Configuration 'topics' values must not be empty."
        words.refused(NO_TOPICS, "topics", text, "Remove the extra comma from topics.")
    elif len(named) > len(set(named)):
        text = "Configuration 'topics' values must not be duplicated."
        words.refused(NO_TOPICS, "topics", text, "Name each topic once in topics.")


def dead_letters(subject: Subject, words: Words) -> None:
    """CONFIG009 and CONFIG010."""
    queue = subject.text(DLQ)
    if not queue:
        return
    named = list(dict.fromkeys(topic for topic in listed(subject.text("topics")) if topic))
    if queue in named:
        where = f"('topics=[{', '.join(named)}]')"
        text = f"The DLQ topic '{queue}' may not be included in the list of topics {where} consumed by the connector"
        words.refused(OWN_DEAD_LETTERS, "topics", text, f"Give {DLQ} a topic of its own.")
    if subject.word("errors.tolerance", "none") == "none" and subject.text("errors.tolerance") in (None, "none"):
        message = f"{DLQ} is {queue}, and errors.tolerance is none: the first bad record ends the task."
        words.add(IDLE_DEAD_LETTERS, DLQ, message, "Set errors.tolerance to all.", severity=Severity.WARNING)


def group(subject: Subject, words: Words) -> None:
    """CONFIG011: the sink's consumers in the group of the workers."""
    override = "consumer.override.group.id"
    own = subject.text(override)
    if subject.group_id is None:
        return
    if own is not None and own == subject.group_id:
        text = f"Consumer group {own} conflicts with Connect worker group {own}"
        words.refused(WORKERS_GROUP, override, text, f"Leave out {override}, or give it another group.")
    elif override not in subject.config and f"connect-{subject.name}" == subject.group_id:
        head = f"Consumer group for sink connector named {subject.name}"
        text = f"{head} conflicts with Connect worker group {subject.group_id}"
        words.refused(WORKERS_GROUP, "name", text, f"Give it another name, or set {override}.")


def topic_creation(subject: Subject, words: Words) -> None:
    """CONFIG015: topic creation without what it falls back to."""
    prefix = "topic.creation."
    if not any(each.startswith(prefix) for each in subject.config):
        return
    for each in ("replication.factor", "partitions"):
        wanted = f"{prefix}default.{each}"
        if subject.config.get(wanted) is None:
            text = f'Missing required configuration "{wanted}" which has no default value.'
            words.add(TOPIC_CREATION, wanted, text, f"Set {wanted}; -1 is the brokers' default.")
