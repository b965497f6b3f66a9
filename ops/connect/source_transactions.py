"""The properties that define a source connector's transactions (KIP-618)."""

from __future__ import annotations

from enum import StrEnum

BOUNDARY = "transaction.boundary"
INTERVAL = "transaction.boundary.interval.ms"
LATENCY = "transaction.boundary.latency.ms"
TIMEOUT = "producer.override.transaction.timeout.ms"
DEFAULT_TIMEOUT_MS = DEFAULT_INTERVAL_MS = 60_000
"""Defaults of a producer's ``transaction.timeout.ms`` and of a worker's
``offset.flush.interval.ms``.
"""


class Boundary(StrEnum):
    """``transaction.boundary``: what ends a task's transaction."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"
