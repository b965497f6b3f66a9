"""Types that several checks use: the goal and its effect on a severity, workers' validations, failed observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

T = TypeVar("T")
NOT_SEEN = Rule("UNSEEN001", Severity.WARNING)
"""A check that did not happen must not look like one that passed."""


class Goal(StrEnum):
    """What the cluster is to become; NOW asks whether it is right as it is."""

    NOW = "now"
    PREPARING = "preparing"
    ENABLED = "enabled"
    DOWNGRADE = "downgrade"


def leads_to_enabled(enabled: bool | None, goal: Goal) -> bool:
    """Whether tasks have transactions when the goal is reached; not where that is today's state and unknown.

    ``preparing`` is the way to ``enabled`` for workers that are not there yet, and the way back for those that are.
    """
    if goal is Goal.NOW:
        return bool(enabled)
    return goal is Goal.ENABLED or (goal is Goal.PREPARING and not enabled)


class _OfCluster(Protocol):
    @property
    def enabled(self) -> bool | None: ...


def enabling(facts: _OfCluster, goal: Goal) -> bool:
    """Whether tasks have transactions when the goal is reached, for rules of facts that say whether it is enabled now."""
    return leads_to_enabled(facts.enabled, goal)


def downgrade_severity(severity: Severity, goal: Goal) -> Severity:
    """The severity of what ``preparing`` does not bring about yet, and the step after it does."""
    return Severity.WARNING if goal is Goal.PREPARING and severity is Severity.ERROR else severity


class PluginAnswer(StrEnum):
    """Whether a connector's class reports that it supports exactly-once with its configuration."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    FAILS = "fails"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Validation:
    """One worker's answer to the validation of one configuration: its error messages by property.

    ``worker`` is an address, ``host:port``; ``problem`` says why there is no answer. An error that concerns no property
    is under the empty name. ``plugin`` is what the connector's class says of exactly-once with this configuration, and
    ``detail`` what it says when it fails; ``kind`` is ``source`` or ``sink``. ``once_enabled`` are the errors that come
    to ``errors`` once the worker is enabled; ``properties`` are those that Connect and the plugin define.
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
class Unseen:
    """Something that could not be observed: never a silent pass."""

    what: str
    why: str
    next_step: str | None = None


def unseen_by(what: str, error: ConnectctlError) -> Unseen:
    """That ``what`` could not be looked at, in the words of the error."""
    return Unseen(what, reason(error), error.next_step)


def answer_of(ask: Callable[[], T], unseen: list[Unseen], what: str) -> T | None:
    """What ``ask`` returns; None if it raises ``ConnectctlError``: then ``what`` is among the ``unseen``."""
    try:
        return ask()
    except ConnectctlError as e:
        unseen.append(unseen_by(what, e))
        return None


def reason(error: ConnectctlError) -> str:
    """The error without its next step: for the middle of a sentence."""
    return (f"{error.what}: {error.why}" if error.why else error.what).rstrip(".")


def finding_of(unseen: Unseen) -> Finding:
    """The finding that reports what was not observed."""
    return NOT_SEEN.found(unseen.what, f"Could not be read: {unseen.why}.", unseen.next_step)
