"""``connectctl`` in a process of its own that takes its time over batch headers:
``python slowaudit.py SECONDS ARGS…``.

It asks for little at once and pauses before it asks on, until SECONDS have gone by, so that one
connection lasts as long. The seconds that reading took are the last line of standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from connectctl.cli.main import app
from connectctl.ops.clients.kafka_protocol import headers

SMALL = 1
"""Bytes of an answer, in which a whole batch comes all the same."""
PAUSE = 3.0


def slowed(seconds: float) -> None:
    """Make every read of headers last so long, where there is enough to read."""
    fetch: Any = headers.Headers._fetch
    began: list[float] = []

    def slow(self: Any, topic_partition: Any, offset: int) -> Iterator[Any]:
        began.append(time.monotonic())
        if began[-1] - began[0] < seconds:
            time.sleep(PAUSE)
        yield from fetch(self, topic_partition, offset)

    headers.request = partial(headers.request, most=SMALL)
    headers.Headers._fetch = slow  # type: ignore[method-assign]
    try:
        app(sys.argv[2:])
    finally:
        print(began[-1] - began[0] if began else 0.0, file=sys.stderr)


if __name__ == "__main__":
    slowed(float(sys.argv[1]))
