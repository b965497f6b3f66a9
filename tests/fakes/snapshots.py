"""Offsets that a fake broker has, as a task sees them: as they were when it last read them."""

from __future__ import annotations


class Snapshots:
    """For fakes that are broker and store in one: ``wrote`` is told of offsets, ``looked`` of a
    reading.
    """

    def __init__(self) -> None:
        self._end = 0
        self._there: dict[bytes, int] = {}
        self._seen: dict[bytes, int] = {}

    def wrote(self, *keys: bytes) -> None:
        """A record of each of ``keys`` is in the offsets topic by now."""
        for key in keys:
            self._there[key], self._end = self._end, self._end + 1

    def looked(self) -> None:
        """The topic was read to its end."""
        self._seen = dict(self._there)

    def position(self, key: bytes) -> tuple[int, int] | None:
        """Where the last reading found the newest record of ``key``."""
        return (0, self._seen[key]) if key in self._seen else None
