"""Reasons against a change of source offsets, from the records that were read: for its plan, and
for its execution.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.finding import counted
from connectctl.ops.operations.offsets.changes import MergeOffsets, OffsetRequest, RestoreBackup
from connectctl.ops.operations.offsets.last_commits import commits_of, stale

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import Conflict, OffsetChanges
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def obstacles(
    request: OffsetRequest, states: Sequence[OffsetsTopicState], decision: OffsetChanges
) -> list[str]:
    """Return the reasons against ``decision`` on ``request``, with the number of source
    partitions.
    """
    found = list(decision.refusals)
    running = None if not isinstance(request, MergeOffsets) or request.chosen else request.running
    if running is not None and (older := stale(states, running=running, in_doubt=True)):
        found.append(f"{older} Select the correct offsets with --policy")
    if isinstance(request, RestoreBackup) and decision.moved and not request.keeps:
        found.append(
            f"{counted(decision.moved, 'source partition')} of {request.connector} moved since "
            f"the run {request.run}: its records would be written again. To set them back all the "
            f"same: connectctl offsets restore {request.connector} -f FILE --stop, with the "
            f"backup that connectctl runs show {request.run} names"
        )
    return found


def overruled(states: Sequence[OffsetsTopicState], conflicts: Sequence[Conflict]) -> str:
    """Return the number and a digest of the source partitions for which a policy overrules the
    commits of tasks.
    """
    side = commits_of(states, running=False).to
    keys = sorted(
        c.key
        for c in conflicts
        if c.taken != ((c.global_ if side is Side.GLOBAL else c.dedicated) or "deleted")
    )
    return f"{len(keys)}:{hashlib.sha256(repr(keys).encode(errors='backslashreplace')).hexdigest()[:16]}"
