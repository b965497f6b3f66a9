"""What two places say differently of source offsets: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connectctl.ops.offsets.decide import Place
    from connectctl.ops.offsets.snapshot import SourceOffsets

Said = Mapping[tuple[str, str], str | None]
"""Live values by connector and raw key, as text."""


@dataclass(frozen=True)
class Difference:
    """One key that the two sides do not agree on; None where a side has no offset."""

    connector: str
    key: str
    left: str | None
    right: str | None

    def as_json(self) -> dict[str, Any]:
        """The difference as scripts get it."""
        return {"connector": self.connector, "key": self.key, "left": self.left, "right": self.right}


def differences(left: Said, right: Said) -> tuple[Difference, ...]:
    """Every key whose value is not the same on both sides, in order."""
    keys = sorted({*left, *right})
    return tuple(
        Difference(c, k, left.get((c, k)), right.get((c, k))) for c, k in keys if left.get((c, k)) != right.get((c, k))
    )


def said_by(connector: str, place: Place) -> dict[tuple[str, str], str | None]:
    """The live values of one connector in one topic."""
    found: dict[tuple[str, str], str | None] = {}
    for key in place.records:
        value = place.value(key)
        if value is not None:
            found[connector, key.decode(errors="backslashreplace")] = value.decode(errors="backslashreplace")
    return found


def effective_of(found: SourceOffsets) -> dict[tuple[str, str], str | None]:
    """The effective offsets of every connector."""
    from connectctl.ops.model.sourcekey import connect_json

    return {
        (connector.name, entry.key.text): connect_json(entry.effective)
        for connector in found.connectors
        for entry in connector.offsets
        if entry.effective is not None
    }
