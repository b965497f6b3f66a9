"""The properties by which a source connector says what its transactions are (KIP-618)."""

from __future__ import annotations

from enum import StrEnum

BOUNDARY = "transaction.boundary"
INTERVAL = "transaction.boundary.interval.ms"
LATENCY = "transaction.boundary.latency.ms"
TIMEOUT = "producer.override.transaction.timeout.ms"
DEFAULT_TIMEOUT_MS = DEFAULT_INTERVAL_MS = 60_000
"""``transaction.timeout.ms`` of a producer; ``offset.flush.interval.ms`` of a worker, the interval of who sets none."""


class Boundary(StrEnum):
    """``transaction.boundary``: what ends a task's transaction."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"
