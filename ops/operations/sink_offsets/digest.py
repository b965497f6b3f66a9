"""A digest of planned writes and of what they replace: if it changes, the plan is stale."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.operations.sink_offsets.changes import OffsetWrite


def digest(writes: Iterable[OffsetWrite]) -> str:
    """The same for the same writes, in whatever order."""
    parts = sorted(repr((*w.place, w.before, w.after)) for w in writes)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
