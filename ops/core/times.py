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


def in_words(seconds: float) -> str:
    """Return a time span in its two largest units: ``40 s``, ``5 min``, ``3 h 10 min``, ``2 d 4 h``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((i for i, (number, _) in enumerate(parts) if number), len(parts) - 1)
    shown = parts[first : first + 2]
    return " ".join(f"{number} {unit}" for number, unit in shown if number) or "0 s"


def iso_utc(milliseconds: float, timespec: str = "milliseconds") -> str:
    """Return a time as ``2026-01-31T12:00:00.000Z``."""
    return utc(milliseconds, timespec, zone=True).replace("+00:00", "Z")
