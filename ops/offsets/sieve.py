"""Which source partitions can matter to a purpose: what an engine may leave out of a big topic, and nothing more.

Decisions about source offsets are made key by key (``decide``, ``differences``), so a key about which nothing would be
decided can be left out before the rest is looked at. What is kept is decided again by the very same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.model.offsets import effective, read_side, worker_reads
from connectctl.ops.model.sourcekey import SourceKey, parse_key
from connectctl.ops.offsets.decide import Place, decide, is_of
from connectctl.ops.offsets.wishes import Merge, Restore, Side

if TYPE_CHECKING:
    from connectctl.ops.offsets.saved import Saved


@dataclass(frozen=True)
class Everything:
    """Every record of a connector: for a backup, and where nothing better is known."""

    connector: str


@dataclass(frozen=True)
class Differing:
    """The keys of which the global and the dedicated topic say different things."""

    connector: str


@dataclass(frozen=True)
class Lost:
    """The keys that a worker would start elsewhere than KIP-618 says."""

    connector: str


Purpose = Everything | Differing | Lost | Merge | Restore


def matters(purpose: Purpose, key: bytes | None, places: Sequence[Place], saved: Saved) -> bool:
    """Whether anything may be said about ``key``, where ``places`` and ``saved`` hold its records and no others."""
    if key is None or not is_of(key, purpose.connector):
        return False
    if isinstance(purpose, Everything) or (isinstance(purpose, Merge) and len(places) < 2):
        return True
    if isinstance(purpose, Merge | Restore):
        decision = decide(purpose, places, saved)
        return bool(decision.writes or decision.conflicts or decision.refusals)
    sides = {at.side: at for at in places}
    if isinstance(purpose, Differing):
        return len({at.value(key) for at in sides.values()}) > 1 or len(sides) < 2
    return _lost(key, sides)


def _lost(key: bytes, sides: Mapping[Side, Place]) -> bool:
    parsed = parse_key(key)
    assert isinstance(parsed, SourceKey)
    records = {side: at.record(key) for side, at in sides.items()}
    theirs, ours = records.get(Side.GLOBAL), records.get(Side.DEDICATED)
    left, right = read_side(theirs) if theirs else None, read_side(ours) if ours else None
    return effective(left, right)[0] != worker_reads(parsed, left, right, has_dedicated=Side.DEDICATED in sides)
