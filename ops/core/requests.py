"""The requests that are not answered yet, for messages about what a command waits for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Requests:
    """The requests of this process that are not answered yet. Any thread may use it."""

    _open: dict[object, tuple[float, str]] = field(default_factory=dict)

    @contextmanager
    def to(self, server: str) -> Iterator[None]:
        """Count a request to ``server`` as not answered in its block."""
        key = object()
        self._open[key] = time.monotonic(), server
        try:
            yield
        finally:
            del self._open[key]

    def unanswered(self, seconds: float) -> str | None:
        """Return the server that has not answered for the longest time, of ``seconds`` at least;
        None if there is none.
        """
        since, server = min(list(self._open.values()), default=(0.0, ""))
        return server if server and time.monotonic() - since >= seconds else None


REQUESTS = Requests()
