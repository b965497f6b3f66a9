"""The end offsets up to which topics are read, after a wait for open transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connectctl.ops.core.wait import wait_until
from connectctl.ops.kafka.topics import OffsetRange

POLL = 0.2
"""Seconds between two readings of an open transaction."""
Extents = Mapping[str, Mapping[int, OffsetRange]]


def settled(
    read: Callable[[], Extents], patience: float, poll: float = POLL
) -> tuple[Extents, Extents]:
    """Return the first and the last result of ``read``.

    The last one is read after the end of all transactions that are open in the first, or after
    ``patience`` seconds.
    """
    readings: list[Extents] = []

    def ended() -> bool | None:
        readings.append(read())
        first, last = readings[0], readings[-1]
        return (
            all(
                last[t][p].stable >= extent.end
                for t, found in first.items()
                for p, extent in found.items()
            )
            or None
        )

    wait_until(ended, patience, poll)
    return readings[0], readings[-1]
