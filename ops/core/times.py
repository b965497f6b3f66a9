"""Formats times in UTC, for users and for scripts.

Producers may set any number as a record's timestamp: one outside the calendar is printed as
milliseconds.
"""

from __future__ import annotations

from datetime import UTC, datetime


def now_utc(timespec: str = "milliseconds") -> str:
    """Return the current time as ``2026-01-31T12:00:00.000Z``."""
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def utc(milliseconds: float | None, timespec: str = "seconds", *, zone: bool = False) -> str:
    """Return a time as ``2026-01-31 12:00:00``, with ``zone`` as ``2026-01-31T12:00:00+00:00``;
    None is a dash.
    """
    if milliseconds is None:
        return "-"
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds:.0f} ms after 1970"
    return (
        when.isoformat("T", timespec)
        if zone
        else when.replace(tzinfo=None).isoformat(" ", timespec)
    )


def iso_utc(milliseconds: float, timespec: str = "milliseconds") -> str:
    """Return a time as ``2026-01-31T12:00:00.000Z``."""
    return utc(milliseconds, timespec, zone=True).replace("+00:00", "Z")
