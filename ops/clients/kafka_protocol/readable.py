"""Waits for sockets with something to read, however many files are open: ``select`` takes
descriptors below 1,024.
"""

from __future__ import annotations

import selectors
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar


class Readable(Protocol):
    def fileno(self) -> int:
        """Return its descriptor."""


R = TypeVar("R", bound=Readable)


def readable(sockets: Iterable[R], seconds: float) -> list[R]:
    """Return those of ``sockets`` that can be read, after ``seconds`` at most."""
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        found: list[Any] = [key.fileobj for key, _ in selector.select(seconds)]
        return found
