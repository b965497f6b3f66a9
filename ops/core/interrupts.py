"""What a ^C means to work that is under way: what the work and the handler in ``main`` agree on.

A command ends within a second of ^C, even from inside a call that waits for a broker in C code. Two kinds of work say
something about that: what has to be put in order first (``put_in_order``), and what can be taken up again
(``resumable``). Work that hears signals itself (``left_alone``) is not ended by the watch at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Work:
    """What this process is in the middle of. Only the main thread changes it; the watch reads it."""

    in_order: list[str] = field(default_factory=list)
    """What is put in order before the end, in words that follow "Interrupted: ", the innermost last."""
    resume: list[str] = field(default_factory=list)
    """The commands that take up what was begun, the innermost last."""
    alone: int = 0
    """How many parts of it hear signals themselves."""


WORK = Work()


@contextmanager
def put_in_order(doing: str) -> Iterator[None]:
    """While it lasts, the first ^C is heard as ``KeyboardInterrupt`` and nothing more, however long ``finally`` takes.

    The second one ends the process. ``doing`` says what takes so long: ``removing the sandbox``.
    """
    WORK.in_order.append(doing)
    try:
        yield
    finally:
        WORK.in_order.pop()


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """While it lasts, and where ^C ends it, the message says that ``command`` resumes it."""
    WORK.resume.append(command)
    try:
        yield
    except KeyboardInterrupt:
        raise  # and keeps the command for the line that tells of the end
    except BaseException:
        WORK.resume.pop()
        raise
    WORK.resume.pop()


@contextmanager
def left_alone() -> Iterator[None]:
    """While it lasts, signals are the work's own business."""
    WORK.alone += 1
    try:
        yield
    finally:
        WORK.alone -= 1
