"""Failed observations, which are reported like findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

T = TypeVar("T")
NOT_SEEN = Rule("UNSEEN001", Severity.WARNING)
"""The finding about a check that did not happen, which must not look like one that passed."""


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
