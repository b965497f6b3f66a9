"""Times of records, for scripts."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_utc(milliseconds: int) -> str:
    """A time as ``2026-01-31T12:00:00.000Z``.

    Producers may set any number as a timestamp; what no calendar has is given as it is.
    """
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms after 1970"
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
