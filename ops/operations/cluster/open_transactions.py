"""How far topics are read: to where they end now, once open transactions have had time to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connectctl.ops.core.wait import wait_until
from connectctl.ops.kafka.topics import OffsetRange

POLL = 0.2
"""Seconds between two looks at an open transaction."""
Extents = Mapping[str, Mapping[int, OffsetRange]]


def settled(read: Callable[[], Extents], patience: float, poll: float = POLL) -> tuple[Extents, Extents]:
    """What ``read`` returns now, and again once no transaction that is open now is left, or after ``patience`` seconds."""
    readings: list[Extents] = []

    def ended() -> bool | None:
        readings.append(read())
        first, last = readings[0], readings[-1]
        return all(last[t][p].stable >= extent.end for t, found in first.items() for p, extent in found.items()) or None

    wait_until(ended, patience, poll)
    return readings[0], readings[-1]
