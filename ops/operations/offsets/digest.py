"""A digest of the planned writes and the records they replace: if it changes, the plan is stale."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from connectctl.ops.kafka import spill

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import RecordChange


def digest(writes: Collection[RecordChange]) -> str:
    """The same for the same writes over the same records, in whatever order."""
    parts = (
        repr((bootstrap, topic, partition, key, value, before)).encode()
        for topic, partition, key, value, before, bootstrap in writes
    )
    if len(writes) <= spill.MOST:
        return hashlib.sha256(b"\n".join(sorted(parts))).hexdigest()
    total = sum(int.from_bytes(hashlib.sha256(part).digest()) for part in parts)  # as too many to sort in memory
    return f"{total % (1 << 256):064x}"
