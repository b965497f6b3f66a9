"""The input of the configuration rules, and how Connect reads a property's text (``ConfigDef.parseType``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from connectctl.ops.checks.types import Goal, PluginAnswer, Validation
from connectctl.ops.config.masking import BY_NAME, MASK, is_secret, secrets_of, value_of
from connectctl.ops.connect.connector_class import has_reference, kind_of
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import CheckedRule

SOURCE, SINK = "source", "sink"
_SIZES = {"SHORT": 15, "INT": 31, "LONG": 63}
_NUMBER = re.compile(r"[+-]?[0-9]+")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
LONGEST_TOPIC = 249


@dataclass(frozen=True)
class Subject:
    """One configuration to evaluate, and what else is known.

    ``validations`` are the workers' answers; none where they were not asked. ``offsets_topic`` is the workers'
    ``offset.storage.topic``, ``group_id`` their group. ``running``: it is a connector of the cluster, and no file.
    ``is_source``: its class is at hand, and is a source's. ``release`` is the one of Kafka that is planned, ``policy`` what
    the workers are told to be the policy for client overrides, as far as that is known. ``supports`` is what all workers
    prove of exactly-once, which counts where none was asked about this configuration. ``named_servers`` are the bootstrap
    servers of the clusters that the context names.
    """

    name: str
    config: Mapping[str, str | None]
    goal: Goal = Goal.NOW
    validations: tuple[Validation, ...] = ()
    group_id: str | None = None
    offsets_topic: str | None = None
    running: bool = False
    is_source: bool = False
    release: tuple[int, int] | None = None
    policy: str | None = None
    supports: frozenset[Support] = frozenset()
    named_servers: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[Validation, ...]:
        """The validations that came about."""
        return tuple(each for each in self.validations if each.problem is None)

    @cached_property
    def defined(self) -> frozenset[str]:
        """The properties that Connect and the plugin define, as far as a worker tells."""
        return frozenset(name for each in self.answers for name in each.properties)

    @cached_property
    def kind(self) -> str | None:
        """``source`` or ``sink``: as the workers say, else as the configuration looks; None where neither tells."""
        kinds = {each.kind for each in self.answers if each.kind}
        if self.is_source or len(kinds) == 1:
            return SOURCE if self.is_source else kinds.pop()
        return kind_of(self.config)

    @property
    def modes(self) -> frozenset[bool]:
        """Whether exactly-once is enabled where this runs: both where workers differ, neither where that is unknown."""
        if self.goal is not Goal.NOW:
            return frozenset({self.goal is Goal.ENABLED})
        known = {*(each.support for each in self.answers)} or {*self.supports}
        known -= {Support.UNKNOWN}
        return frozenset(support is Support.ENABLED for support in known)

    @property
    def plugin(self) -> PluginAnswer:
        """What the connector's class says of exactly-once; NOT_ASKED where workers differ or none was asked."""
        answers = {each.plugin for each in self.answers} - {PluginAnswer.NOT_ASKED}
        return answers.pop() if len(answers) == 1 else PluginAnswer.NOT_ASKED

    def text(self, name: str) -> str | None:
        """The value as Connect compares it, without the blanks around it; None where it is not set or not known yet.

        A value with a reference (``${file:…}``) is known to workers only; ``${NAME}`` without a colon is literal text.
        """
        value = self.config.get(name)
        return None if value is None or has_reference(value) else value.strip()

    def word(self, name: str, default: str) -> str:
        """The value in lower case, for words whose case does not matter."""
        value = self.text(name)
        return default if value is None else value.lower()

    def overrides(self, client: str) -> dict[str, str]:
        """The overrides of ``producer``, ``consumer`` or ``admin`` whose values are known."""
        prefix = f"{client}.override."
        names = (name for name in self.config if name.startswith(prefix))
        return {name.removeprefix(prefix): value for name in names if (value := self.text(name)) is not None}


@dataclass(frozen=True)
class Hit:
    """A rule that was met, with the properties it is about.

    ``text`` are the worker's own words where it refuses this, too. ``validated``: its validation decides, so that the
    hit counts for nothing where workers were asked and did not say so.
    """

    finding: Finding
    properties: tuple[str, ...]
    text: str | None = None
    validated: bool = False


@dataclass(frozen=True)
class PropertyCase:
    """Something that a rule found in a configuration; ``text`` and ``validated`` as those of ``Hit``.

    With ``unreported`` it counts only if no rule before reports its property.
    """

    properties: str | tuple[str, ...]
    message: str
    next_step: str | None = None
    severity: Severity | None = None
    text: str | None = None
    validated: bool = False
    unreported: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """The properties."""
        return (self.properties,) if isinstance(self.properties, str) else self.properties


def refused(properties: str | tuple[str, ...], text: str, step: str | None = None) -> PropertyCase:
    """Return a case that the workers' validation has a text for."""
    return PropertyCase(properties, text, step, text=text, validated=True)


def of_sink(subject: Subject, goal: Goal) -> bool:
    """Whether the configuration is a sink's."""
    return subject.kind == SINK


def of_source(subject: Subject, goal: Goal) -> bool:
    """Whether the configuration is a source's."""
    return subject.kind == SOURCE


def of_no_sink(subject: Subject, goal: Goal) -> bool:
    """Whether the configuration is a source's, or of a connector of an unknown kind."""
    return subject.kind != SINK


def hits(modules: Sequence[ModuleType], subject: Subject) -> list[Hit]:
    """Return what the rules of modules find, in their order; messages are scrubbed of secrets."""
    found: list[Hit] = []
    for rule in (each for module in modules for each in vars(module).values() if isinstance(each, CheckedRule)):
        reported = {name for hit in found for name in hit.properties}
        for case in rule.cases_in(subject, subject.goal):
            if not (case.unreported and reported & {*case.named}):
                message = scrubbed(case.message, subject.config, case.named[0])
                finding = rule.found(subject.name, message, case.next_step, severity=case.severity)
                found.append(Hit(finding, case.named, case.text, case.validated))
    return found


def invalid(name: str, value: object, why: str) -> str:
    """The words of ``ConfigException``."""
    return f"Invalid value {value} for configuration {name}: {why}"


def number_problem(name: str, value: str, type_: str = "INT", least: int | None = None) -> str | None:
    """Connect's error if ``value`` is not a number of that type, or is smaller than ``least``; None if it is valid."""
    text = value.strip()
    if not _NUMBER.fullmatch(text) or not -(1 << _SIZES[type_]) <= int(text) < 1 << _SIZES[type_]:
        return invalid(name, value, f"Not a number of type {type_}")
    if least is not None and int(text) < least:
        return invalid(name, int(text), f"Value must be at least {least}")
    return None


def boolean_problem(name: str, value: str) -> str | None:
    """Connect's error if ``value`` is neither true nor false."""
    if value.strip().lower() in ("true", "false"):
        return None
    return invalid(name, value, "Expected value to be either true or false")


def word_problem(name: str, value: str, words: tuple[str, ...], *, any_case: bool = False) -> str | None:
    """Connect's error if ``value`` is none of ``words``."""
    text = value.strip()
    if text in words or (any_case and text.upper() in words):
        return None
    return invalid(name, text, f"String must be one of{' (case insensitive)' if any_case else ''}: {', '.join(words)}")


def listed(value: str | None) -> list[str]:
    """A list as Connect splits it; an empty text is an empty list, an empty part stays."""
    text = (value or "").strip()
    return re.split(r"\s*,\s*", text) if text else []


def topic_problem(name: str) -> str | None:
    """Why brokers refuse a topic of this name, in their words (``Topic.validate``)."""
    if name == "":
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > LONGEST_TOPIC:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST_TOPIC}"
    if not _TOPIC.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def same_words(text: str) -> str:
    """``text`` for comparison: the order of the words to choose from comes from a set, and differs by run."""
    head, mark, words = text.partition("must be one of")
    if not mark:
        return text.strip()
    kind, _, choice = words.partition(":")
    return f"{head}{mark}{kind}:{sorted(part.strip() for part in choice.split(','))}"


def scrubbed(text: str, config: Mapping[str, str | None], about: str = "") -> str:
    """``text`` without the values of secrets: of those that the configuration has, and of one that a worker looked up."""
    value = config.get(about)
    if is_secret(about) or (value is not None and has_reference(value)):
        text = re.sub(
            r"Invalid value .* for configuration", f"Invalid value {MASK} for configuration", text, flags=re.S
        )
    for name, secret in config.items():
        if secret and value_of(name, secret) == BY_NAME and (len(secret) > 3 or name == about):
            text = text.replace(secret, MASK)
    # Passwords inside values: in a URL, in JSON.
    for part in sorted(secrets_of(config), key=len, reverse=True):
        text = text.replace(part, MASK)
    return text
