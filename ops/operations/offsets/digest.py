"""A digest of the planned writes and the records they replace: if it changes, the plan is stale."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import RecordChange


def digest(writes: Sequence[RecordChange]) -> str:
    """The same for the same writes over the same records, in whatever order."""
    parts = sorted(repr((w.bootstrap, w.topic, w.partition, w.key, w.value, w.before)) for w in writes)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
