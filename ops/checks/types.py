"""Types that several checks use: the goal and its effect on a severity, workers' validations,
failed observations.
"""

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
"""The finding about a check that did not happen, which must not look like one that passed."""


class Goal(StrEnum):
    """The intended state of the cluster; NOW evaluates the present one."""

    NOW = "now"
    PREPARING = "preparing"
    ENABLED = "enabled"
    DOWNGRADE = "downgrade"


def leads_to_enabled(enabled: bool | None, goal: Goal) -> bool:
    """Return whether tasks have transactions under the goal; False if that is the present state and
    unknown.

    ``preparing`` leads to ``enabled`` for workers that are disabled, and to ``disabled`` for
    workers that are enabled.
    """
    if goal is Goal.NOW:
        return bool(enabled)
    return goal is Goal.ENABLED or (goal is Goal.PREPARING and not enabled)


class _OfCluster(Protocol):
    @property
    def enabled(self) -> bool | None: ...


def enabling(facts: _OfCluster, goal: Goal) -> bool:
    """Return whether tasks have transactions under the goal, for facts with the present state."""
    return leads_to_enabled(facts.enabled, goal)


def downgrade_severity(severity: Severity, goal: Goal) -> Severity:
    """Return the severity of a fault that only the step after ``preparing`` causes."""
    return Severity.WARNING if goal is Goal.PREPARING and severity is Severity.ERROR else severity


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
class Unseen:
    """A failed observation, which is always reported."""

    what: str
    why: str
    next_step: str | None = None


def unseen_by(what: str, error: ConnectctlError) -> Unseen:
    """Return the failed observation of ``what``, with the text of the error."""
    return Unseen(what, reason(error), error.next_step)


def answer_of(ask: Callable[[], T], unseen: list[Unseen], what: str) -> T | None:
    """Return the result of ``ask``; None if it raises ``ConnectctlError``: then ``what`` is added
    to ``unseen``.
    """
    try:
        return ask()
    except ConnectctlError as e:
        unseen.append(unseen_by(what, e))
        return None


def reason(error: ConnectctlError) -> str:
    """Return the error without its next step, for the middle of a sentence."""
    return (f"{error.what}: {error.why}" if error.why else error.what).rstrip(".")


def finding_of(unseen: Unseen) -> Finding:
    """Return the finding about a failed observation."""
    return NOT_SEEN.found(unseen.what, f"Could not be read: {unseen.why}.", unseen.next_step)
