"""The input of the configuration rules, and what they find."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

from connectctl.ops.config.masking import BY_NAME, MASK, is_secret, secrets_of, value_of
from connectctl.ops.connect.connector_class import has_reference, kind_of
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import CheckedRule

SOURCE, SINK = "source", "sink"


class PluginAnswer(StrEnum):
    """A class's answer whether it supports exactly-once with a configuration."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    FAILS = "fails"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Validation:
    """One worker's validation of one configuration: its error messages by property.

    ``worker`` is an address, ``host:port``; ``problem`` is why there is no answer. An error that
    concerns no property is under the empty name. ``plugin`` is the answer of the connector's class
    about exactly-once with this configuration, and ``detail`` its error if it fails; ``kind`` is
    ``source`` or ``sink``. ``once_enabled`` are the additional errors of an enabled worker;
    ``properties`` are those that Connect and the plugin define.
    """

    worker: str
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str | None = None
    support: Support = Support.UNKNOWN
    plugin: PluginAnswer = PluginAnswer.NOT_ASKED
    detail: str | None = None
    kind: str | None = None
    once_enabled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Subject:
    """One configuration to evaluate, with the known facts about the cluster.

    ``validations`` are the workers' answers; none if no worker was asked. ``offsets_topic`` is the
    workers' ``offset.storage.topic``, ``group_id`` their group. ``running``: it is a connector of
    the cluster, not of a file. ``is_source``: its class is available, and is a source connector.
    ``release`` is the planned one of Kafka, ``policy`` the workers' policy for client overrides, if
    it is known. ``supports`` is the exactly-once support that the workers prove, which counts if
    none validated this configuration. ``named_servers`` are the bootstrap servers of the clusters
    in the context.
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
        """Return the validations that succeeded."""
        return tuple(validation for validation in self.validations if validation.problem is None)

    @cached_property
    def defined(self) -> frozenset[str]:
        """Return the properties that Connect and the plugin define, by the workers' answers."""
        return frozenset(name for answer in self.answers for name in answer.properties)

    @cached_property
    def kind(self) -> str | None:
        """Return ``source`` or ``sink`` by the workers, else by the configuration; None if neither
        determines it.
        """
        kinds = {answer.kind for answer in self.answers if answer.kind}
        if self.is_source or len(kinds) == 1:
            return SOURCE if self.is_source else kinds.pop()
        return kind_of(self.config)

    @property
    def modes(self) -> frozenset[bool]:
        """Return whether exactly-once is enabled where this runs: both values if workers differ,
        none if it is unknown.
        """
        if self.goal is not Goal.NOW:
            return frozenset({self.goal is Goal.ENABLED})
        known = {*(answer.support for answer in self.answers)} or {*self.supports}
        known -= {Support.UNKNOWN}
        return frozenset(support is Support.ENABLED for support in known)

    @property
    def plugin(self) -> PluginAnswer:
        """Return the answer of the connector's class about exactly-once; NOT_ASKED if workers
        differ or none was asked.
        """
        answers = {answer.plugin for answer in self.answers} - {PluginAnswer.NOT_ASKED}
        return answers.pop() if len(answers) == 1 else PluginAnswer.NOT_ASKED

    def text(self, name: str) -> str | None:
        """Return the stripped value, as Connect compares it; None if it is not set or not known.

        Only workers know a value with a reference (``${file:…}``); ``${NAME}`` without a colon is
        literal text.
        """
        value = self.config.get(name)
        return None if value is None or has_reference(value) else value.strip()

    def word(self, name: str, default: str) -> str:
        """Return the value in lower case, for words whose case does not matter."""
        value = self.text(name)
        return default if value is None else value.lower()

    def overrides(self, client: str) -> dict[str, str]:
        """Return the overrides of ``producer``, ``consumer`` or ``admin`` whose values are
        known.
        """
        texts = {name: value for name in self.config if (value := self.text(name)) is not None}
        return client_overrides(texts, client)


@dataclass(frozen=True)
class PropertyCase:
    """A fault that a rule found in a configuration.

    ``text`` is the worker's own message if the worker refuses this as well. ``validated``: the
    worker's validation decides, so that the case is dropped if workers were asked and did not
    report it. ``unreported``: it counts only if no earlier rule reports its property.
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
        """Return the properties as a tuple."""
        return (self.properties,) if isinstance(self.properties, str) else self.properties


class Hit(NamedTuple):
    """A finding, and the case that it is about."""

    finding: Finding
    case: PropertyCase


def refused(properties: str | tuple[str, ...], text: str, step: str | None = None) -> PropertyCase:
    """Return a case for which the workers' validation has a message."""
    return PropertyCase(properties, text, step, text=text, validated=True)


def of_sink(subject: Subject, goal: Goal) -> bool:
    """Return whether the configuration is of a sink connector."""
    return subject.kind == SINK


def of_source(subject: Subject, goal: Goal) -> bool:
    """Return whether the configuration is of a source connector."""
    return subject.kind == SOURCE


def of_no_sink(subject: Subject, goal: Goal) -> bool:
    """Return whether the configuration is of a source connector, or of a connector of an unknown
    kind.
    """
    return subject.kind != SINK


def hits(modules: Sequence[ModuleType], subject: Subject) -> list[Hit]:
    """Return the hits of the rules in ``modules``, in their order; secrets are removed from
    messages.
    """
    found: list[Hit] = []
    for rule in (
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, CheckedRule)
    ):
        reported = {name for hit in found for name in hit.case.named}
        for case in rule.cases_in(subject, subject.goal):
            if not (case.unreported and reported & {*case.named}):
                message = scrubbed(case.message, subject.config, case.named[0])
                finding = rule.found(subject.name, message, case.next_step, severity=case.severity)
                found.append(Hit(finding, case))
    return found


def comparable(text: str) -> str:
    """Return ``text`` for comparison: the order of a message's alternatives comes from a set, and
    differs by run.
    """
    head, mark, alternatives = text.partition("must be one of")
    if not mark:
        return text.strip()
    kind, _, choice = alternatives.partition(":")
    return f"{head}{mark}{kind}:{sorted(part.strip() for part in choice.split(','))}"


def scrubbed(text: str, config: Mapping[str, str | None], about: str = "") -> str:
    """Return ``text`` without secrets: those in the configuration, and one that a worker
    resolved.
    """
    value = config.get(about)
    if is_secret(about) or (value is not None and has_reference(value)):
        text = re.sub(
            r"Invalid value .* for configuration",
            f"Invalid value {MASK} for configuration",
            text,
            flags=re.S,
        )
    for name, secret in config.items():
        if secret and value_of(name, secret) == BY_NAME and (len(secret) > 3 or name == about):
            text = text.replace(secret, MASK)
    # Passwords inside values: in a URL, in JSON.
    for part in sorted(secrets_of(config), key=len, reverse=True):
        text = text.replace(part, MASK)
    return text
