"""Wait for a cluster's lock that another run holds (``--lock-wait``).

A command that was refused because of the lock has done nothing. It is executed again when the lock
is free, so that it plans for the cluster as the other run left it.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import terminal
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.wait import wait_until

if TYPE_CHECKING:
    from connectctl.cli.session import Session

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds before the command is tried again, and between two requests for the holder, twice as long
each time.
"""
REMIND = 30.0
"""Seconds after which the wait is reported again."""


def retried(session: Session, command: Callable[[], None], given: Mapping[str, Any]) -> None:
    """Execute ``command``, again and again while another run holds the lock, for the seconds of
    ``--lock-wait``.

    ``given`` are its arguments: standard input that it reads is the same each time. Raises the last
    ``Refused``.
    """
    began: float | None = None
    with _standard_input(given) as rewind:
        while True:
            rewind()
            try:
                command()
                return
            except Refused as e:
                seconds = (
                    float(session.settings.get("lock_wait") or 0) if e.code == "locked" else 0.0
                )
                if seconds <= 0:
                    raise
                if began is None:
                    began = time.monotonic()
                    terminal.note(
                        f"{e.what.partition(';')[0]}: {e.why or e.next_step}. Waiting up to "
                        f"{seconds:g} s."
                    )
                if not _is_released(session, began, began + seconds):
                    waited = f"after waiting {time.monotonic() - began:.0f} s (--lock-wait)"
                    raise Refused(
                        e.what,
                        why="; ".join(filter(None, [e.why, waited])),
                        next_step=e.next_step,
                        code=e.code,
                    ) from e


def _is_released(session: Session, began: float, deadline: float) -> bool:
    """Wait until the lock is free, or its holder cannot be determined; return False at
    ``deadline``.
    """
    reported, paused = time.monotonic(), False

    def probe() -> bool | None:
        nonlocal reported, paused
        if not paused:
            paused = True
            return None
        with suppress(ConnectctlError):
            if (holder := session.cluster_lock.holder()) is not None:
                if time.monotonic() - reported >= REMIND:
                    reported = time.monotonic()
                    waited = f"{reported - began:.0f} s"
                    terminal.note(
                        f"Still waiting for the lock after {waited}: it is held by {holder}."
                    )
                return None
        return True

    left = deadline - time.monotonic()
    if left <= 0:
        return False
    now, sleep = time.monotonic, time.sleep
    return wait_until(probe, left, FIRST_PAUSE, longest=LONGEST_PAUSE, now=now, sleep=sleep) is True


@contextmanager
def _standard_input(given: Mapping[str, Any]) -> Iterator[Callable[[], None]]:
    """Yield what makes standard input readable from its beginning, if an argument of the command is
    ``-``.
    """
    values = [
        each for value in given.values() for each in (value if isinstance(value, list) else [value])
    ]
    if Path("-") not in values or sys.stdin.isatty():
        yield lambda: None
        return
    before, content = sys.stdin, sys.stdin.buffer.read()

    def rewind() -> None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(content), encoding=before.encoding)

    try:
        yield rewind
    finally:
        sys.stdin = before
