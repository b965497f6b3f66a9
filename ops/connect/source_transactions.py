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
MOST_OF_TIMEOUT = 0.75
"""The largest share of the time-out for an interval; the rest is needed to send the collected
records.
"""


class Boundary(StrEnum):
    """``transaction.boundary``: what ends a task's transaction."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


class IntervalRisk(StrEnum):
    """Whether a transaction that ends with its interval is open for longer than its time-out."""

    NONE = "none"
    POSSIBLE = "possible"
    CERTAIN = "certain"


def interval_risk(interval_ms: int, timeout_ms: int) -> IntervalRisk:
    """Return the risk that the coordinator aborts a transaction before its task commits it.

    Records that are left are sent after the interval, so the risk begins before the time-out.
    Coordinators look for expired transactions only every 10 s, so it is not certain if both are
    equal.
    """
    if interval_ms > timeout_ms:
        return IntervalRisk.CERTAIN
    if interval_ms >= timeout_ms * MOST_OF_TIMEOUT:
        return IntervalRisk.POSSIBLE
    return IntervalRisk.NONE
