"""A digest of the planned writes and the records they replace: if it changes, the plan is stale."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Collection
from itertools import repeat
from operator import methodcaller
from typing import TYPE_CHECKING

from connectctl.ops.kafka import spill

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import RecordChange


def digest(writes: Collection[RecordChange]) -> str:
    """The same for the same writes over the same records, in whatever order."""
    if len(writes) <= spill.MOST:
        parts = (
            repr((bootstrap, topic, partition, key, value, before)).encode()
            for topic, partition, key, value, before, bootstrap in writes
        )
        return hashlib.sha256(b"\n".join(sorted(parts))).hexdigest()
    # As too many to sort in memory, a sum; without a line of Python for each. Version 2 is without references.
    total = 0
    for some in spill.chunks_of(writes):
        hashes = map(hashlib.sha256, map(marshal.dumps, some, repeat(2)))
        total += sum(map(int.from_bytes, map(methodcaller("digest"), hashes)))
    return f"{total % (1 << 256):064x}"
