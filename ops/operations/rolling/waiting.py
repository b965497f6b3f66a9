"""Wait in a roll: poll until nothing is missing, and report each new reason, and what still is
missing from time to time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from connectctl.ops.core.wait import wait_until

T = TypeVar("T")
S = TypeVar("S")
POLL = 0.4
"""Seconds between two polls."""
FOR_EVER = float("inf")
REMIND = 30.0
"""Seconds after which a wait reports the same reason again."""


class Clock(Protocol):
    """The clock of a run in seconds, and the output for its progress."""

    def now(self) -> float:
        """Return the time."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""

    def progress(self, line: str, /) -> None:
        """Report a line of progress."""


@dataclass(frozen=True)
class Missing:
    """What is still missing; a nonempty ``detail`` is reported instead of ``reason``."""

    reason: str
    detail: str = ""


@dataclass(frozen=True)
class GateResult(Generic[S]):
    """The result of a gate after one more snapshot: passed, failed (``stopped`` is the reason), or
    waiting (``unhealthy``).

    ``watch`` is the state of the gate for the next evaluation.
    """

    watch: S
    unhealthy: tuple[str, ...] = ()
    passed: bool = False
    stopped: str | None = None

    @property
    def missing(self) -> Missing:
        """The first reason for waiting; empty while the cluster is healthy but not yet for long
        enough.
        """
        return Missing(self.unhealthy[0] if self.unhealthy else "", "; ".join(self.unhealthy[:3]))


def wait_for(
    clock: Clock, probe: Callable[[], T | Missing], seconds: float = FOR_EVER
) -> T | Missing:
    """Return the first result of ``probe`` that is not ``Missing``, or the last ``Missing`` after
    ``seconds``.
    """
    last, began = Missing(""), clock.now()
    reported = {"": began}

    def poll() -> list[T] | None:
        nonlocal last
        found = probe()
        if not isinstance(found, Missing):
            return [found]
        last, now = found, clock.now()
        if found.reason not in reported or now - reported[found.reason] >= REMIND:
            reported[found.reason] = now
            clock.progress(_line(found, now - began))
        return None

    found = wait_until(poll, seconds, POLL, now=clock.now, sleep=clock.sleep)
    return last if found is None else found[0]


def _line(missing: Missing, waited: float) -> str:
    head = f"still waiting after {waited:.0f} s" if waited >= REMIND else "waiting"
    return ": ".join(filter(None, [head, missing.detail or missing.reason]))
