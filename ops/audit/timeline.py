"""The data of the plots, in bounded memory: numbers over time in a few hundred slots, and sizes in
powers of two.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

SLOTS = 240


@dataclass
class Timeline:
    """Counts by name over time. Slots are ``width`` milliseconds, and grow twofold until ``SLOTS``
    of them are enough.
    """

    width: int = 1000
    slots: dict[int, dict[str, int]] = field(default_factory=dict)

    def add(self, timestamp: int, name: str, count: int) -> None:
        """Count at ``timestamp``, in milliseconds; what has none is left out."""
        if timestamp < 0 or not count:
            return
        slot = self.slots.setdefault(timestamp // self.width, {})
        slot[name] = slot.get(name, 0) + count
        self._fit()

    def merge(self, other: Timeline) -> None:
        while self.width < other.width:
            self.double()
        while other.width < self.width:
            other.double()
        for number, counts in other.slots.items():
            for name, count in counts.items():
                slot = self.slots.setdefault(number, {})
                slot[name] = slot.get(name, 0) + count
        self._fit()

    def _fit(self) -> None:
        # Only a new slot can be one too many, and then the span is worth a look.
        while len(self.slots) > 1 and max(self.slots) - min(self.slots) >= SLOTS:
            self.double()

    def double(self) -> None:
        """Make the slots twice as wide."""
        found: dict[int, dict[str, int]] = {}
        for number, counts in self.slots.items():
            slot = found.setdefault(number // 2, {})
            for name, count in counts.items():
                slot[name] = slot.get(name, 0) + count
        self.slots, self.width = found, self.width * 2

    def as_row(self) -> dict[str, Any]:
        return {"width": self.width, "slots": self.slots}

    @classmethod
    def of(cls, row: dict[str, Any]) -> Timeline:
        """Return the timeline of a row of ``as_row``, also after JSON."""
        return cls(
            row["width"], {int(number): dict(counts) for number, counts in row["slots"].items()}
        )


@dataclass
class Sizes:
    """The numbers of transactions by size, in powers of two."""

    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, size: int, times: int = 1) -> None:
        power = size.bit_length() - 1 if size > 0 else 0
        self.counts[power] = self.counts.get(power, 0) + times

    def merge(self, other: dict[Any, int]) -> None:
        """Add other counts, also after JSON."""
        for power, count in other.items():
            self.counts[int(power)] = self.counts.get(int(power), 0) + count
