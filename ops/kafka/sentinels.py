"""Kafka's numbers that stand for nothing, as None: read here and nowhere else, so that none of them
is taken for a value.

The protocol has -1 for an offset, a time, a producer id, an epoch and a leader that are not there.
librdkafka has -1001 for an offset that it was not given (``RD_KAFKA_OFFSET_INVALID``, with which
ListOffsets completes where a leader has just died, and without an error), and -1000, -1 and -2 for
places that are not offsets (stored, end, beginning).
"""

from __future__ import annotations

from typing import NewType

Offset = NewType("Offset", int)
"""An offset that a broker gave: 0 or more."""


def offset_of(raw: int | None) -> Offset | None:
    """Return the offset that a client returns as ``raw``; None for a sentinel."""
    return Offset(raw) if raw is not None and raw >= 0 else None


def number_of(raw: int | None) -> int | None:
    """Return the number of a broker, a producer or an epoch, or the time, that a client returns as
    ``raw``; None for a sentinel.
    """
    return raw if raw is not None and raw >= 0 else None
