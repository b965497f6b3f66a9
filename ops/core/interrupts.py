"""The effect of ^C on work in progress, for the signal handler of ``cli/interrupt.py``.

A command ends within a second of ^C, even within a call that waits for a broker in C code. Two
kinds of work change that: work that must be cleaned up first (``put_in_order``), and work that can
be resumed (``resumable``). Work that handles signals itself (``left_alone``) is not ended by the
watch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Work:
    """The work in progress in this process. Only the main thread changes it; the watch reads it."""

    in_order: list[str] = field(default_factory=list)
    """Descriptions of cleanups before the end, printed after "Interrupted: ", the innermost
    last.
    """
    resume: list[str] = field(default_factory=list)
    """The commands that resume the work, the innermost last."""
    alone: int = 0
    """The number of its parts that handle signals themselves."""


WORK = Work()


@contextmanager
def put_in_order(doing: str) -> Iterator[None]:
    """In its block, the first ^C only raises ``KeyboardInterrupt``, however long ``finally`` takes.

    The second one ends the process. ``doing`` describes the cleanup: ``removing the sandbox``.
    """
    WORK.in_order.append(doing)
    try:
        yield
    finally:
        WORK.in_order.pop()


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """If ^C ends its block, the message names ``command``, which resumes the work."""
    WORK.resume.append(command)
    try:
        yield
    except KeyboardInterrupt:
        raise  # keeps the command for the line that reports the end
    except BaseException:
        WORK.resume.pop()
        raise
    WORK.resume.pop()


@contextmanager
def left_alone() -> Iterator[None]:
    """In its block, the work handles signals itself."""
    WORK.alone += 1
    try:
        yield
    finally:
        WORK.alone -= 1
