"""Waits out what passes by itself: a broker that restarts, a leader that moves, a connection that was cut.

Whatever the driver of a run asks of Kafka goes through one ``Patience``. An answer that did not come is asked for again, of
whichever broker has it by then, until the time is over; what only a person can mend ends the run at once. What is given to
it must be safe to repeat: it reads, or it begins by settling what became of the attempt before (docs/decisions/0006).
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
FOREVER, OTHERWISE = 300.0, 120.0
"""Seconds for a run without an end, which nobody watches, and for any other one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
LOOK = 0.2
"""Seconds between two looks whether the run is to end."""
_FOR_A_PERSON = (NotAuthorized, NotTrusted, UnknownHost)


@dataclass(frozen=True)
class Patience:
    """``seconds`` for one interruption. ``note`` gets a line when the wait begins and one when it is over.

    ``unmet`` says whether a cluster is waited for that has not answered yet, too (docs/decisions/0020); ``wanted`` that the
    run is to end: then nothing is repeated any more.
    """

    seconds: float = 0.0
    note: Callable[[str], None] = lambda line: None
    wanted: Callable[[], bool] = lambda: False
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    unmet: bool = True

    def __call__(self, doing: str, work: Callable[[], T]) -> T:
        """What ``work`` gives, which is called until it raises no ``Unreachable`` or ``TimedOut`` any more.

        Raises the last of them when the time is over, and any other error at once.
        """
        since: float | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                found = work()
            except ConnectctlError as e:
                if not passes(e):
                    raise
                if isinstance(e, NeverAnswered) and not self.unmet:
                    raise _unmet(e) from e
                now = self.now()
                if since is None:
                    since = now
                    if self.seconds > 0:
                        limit = f"for up to {self.seconds:g} s (--patience)"
                        self.note(f"waiting: could not {doing}, and trying again {limit}: {_said(e)}")
                left = self.seconds - (now - since)
                if left <= 0 or self.wanted():
                    raise _at_last(e, now - since) from e
                self._pause(min(pause, left))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                if since is not None:
                    self.note(f"continuing after {self.now() - since:.0f} s: could {doing}")
                return found

    def _pause(self, seconds: float) -> None:
        while seconds > 0 and not self.wanted():
            self.sleep(min(LOOK, seconds))
            seconds -= LOOK


NONE = Patience()
"""Nothing is repeated."""


def passes(error: ConnectctlError) -> bool:
    """Whether ``error`` may be gone in a moment, without a person."""
    return isinstance(error, (Unreachable, TimedOut)) and not isinstance(error, _FOR_A_PERSON)


def default(until: Until) -> float:
    """The seconds of a run that says nothing of them."""
    return FOREVER if until.idle is until.records is until.duration is None else OTHERWISE


def _unmet(error: NeverAnswered) -> NeverAnswered:
    """``error``, with what would wait."""
    hint = f"{error.next_step or ''} A run without an end waits for it; any other one with --patience SECONDS.".lstrip()
    return NeverAnswered(error.what, why=error.why, next_step=hint, code=error.code)


def _said(error: ConnectctlError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what


def _at_last(error: ConnectctlError, waited: float) -> ConnectctlError:
    """``error``, with how long it was waited for."""
    if waited < 1:
        return error
    why = f"{error.why}; tried again for {waited:.0f} s" if error.why else f"tried again for {waited:.0f} s"
    return type(error)(error.what, why=why, next_step=error.next_step, code=error.code)
