"""Retries transient errors: a broker that restarts, a leader that moves, a connection that was cut.

Every request of a run's driver to Kafka goes through one ``RetryPolicy``. A request without a
response is retried, on the broker that is then responsible, until the time is over; errors that
need the user end the run immediately. Calls must be safe to repeat: they read, or they first settle
the outcome of the previous attempt (docs/decisions/0006).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from connectctl.ops.core.errors import (
    ConnectctlError,
    NeverAnswered,
    NotAuthorized,
    NotTrusted,
    TimedOut,
    UnknownHost,
    Unreachable,
)

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.job_file import Until

T = TypeVar("T")
UNBOUNDED_RUN_SECONDS, BOUNDED_RUN_SECONDS = 300.0, 120.0
"""Seconds for a run without an end, which is unattended, and for any other one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
POLL = 0.2
"""Seconds between two checks whether the run is to end."""
_NOT_RETRIABLE = (NotAuthorized, NotTrusted, UnknownHost)


@dataclass(frozen=True)
class RetryPolicy:
    """``seconds`` for one interruption. ``note`` gets a line when the wait begins and one when it
    is over.

    ``wait_for_first_contact``: also wait for a cluster that has not answered yet
    (docs/decisions/0020). ``stopping``: the run is to end, so that nothing is retried.
    """

    seconds: float = 0.0
    note: Callable[[str], None] = lambda line: None
    stopping: Callable[[], bool] = lambda: False
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wait_for_first_contact: bool = True

    def __call__(self, action: str, call: Callable[[], T]) -> T:
        """Return the result of ``call``, which is retried until it raises no ``Unreachable`` or
        ``TimedOut``.

        Raises the last of them when the time is over, and any other error immediately.
        """
        since: float | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                found = call()
            except ConnectctlError as e:
                if not is_retriable(e):
                    raise
                if isinstance(e, NeverAnswered) and not self.wait_for_first_contact:
                    raise _with_patience_hint(e) from e
                now = self.now()
                if since is None:
                    since = now
                    if self.seconds > 0:
                        limit = f"for up to {self.seconds:g} s (--patience)"
                        text = f"{e.what}: {e.why}" if e.why else e.what
                        self.note(f"waiting: could not {action}; retrying {limit}: {text}")
                remaining = self.seconds - (now - since)
                if remaining <= 0 or self.stopping():
                    raise _with_duration(e, now - since) from e
                self._pause(min(pause, remaining))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                if since is not None:
                    self.note(f"continuing after {self.now() - since:.0f} s: could {action}")
                return found

    def _pause(self, seconds: float) -> None:
        while seconds > 0 and not self.stopping():
            self.sleep(min(POLL, seconds))
            seconds -= POLL


NO_RETRIES = RetryPolicy()
"""The policy without retries."""


def is_retriable(error: ConnectctlError) -> bool:
    """Return whether ``error`` may be temporary, without any action of the user."""
    return isinstance(error, (Unreachable, TimedOut)) and not isinstance(error, _NOT_RETRIABLE)


def default_seconds(until: Until) -> float:
    """Return the seconds for a run that does not set them."""
    return BOUNDED_RUN_SECONDS if until.ends else UNBOUNDED_RUN_SECONDS


def _with_patience_hint(error: NeverAnswered) -> NeverAnswered:
    """Return ``error`` with a hint which runs wait."""
    hint = (
        f"{error.next_step or ''} A run without an end waits for it; any other run with "
        "--patience SECONDS."
    ).lstrip()
    return NeverAnswered(error.what, why=error.why, next_step=hint, code=error.code)


def _with_duration(error: ConnectctlError, waited: float) -> ConnectctlError:
    """Return ``error`` with the duration of the retries."""
    if waited < 1:
        return error
    why = f"{error.why}; retried for {waited:.0f} s" if error.why else f"retried for {waited:.0f} s"
    return type(error)(error.what, why=why, next_step=error.next_step, code=error.code)
