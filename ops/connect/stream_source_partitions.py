"""Source partitions that are no position in a source: the state of a stream of DataFrames.

They are keys in the connector's offsets like others, so that they are committed in the same
transactions, backed up, copied and shown with them. One member, whose name no column has,
distinguishes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 100

STREAM = "connectctl.stream"
"""The member: the id of the query whose micro-batch is described."""


def is_stream_state(partition: Mapping[str, Any] | None) -> bool:
    """Return whether a source partition holds the state of a stream, and no position in a
    source.
    """
    return partition is not None and STREAM in partition


def abridged(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stream's state without its thousands of row hashes, for people; any other value is
    unchanged.
    """
    if value.keys() != {"turn", "hashes"} or len(str(value["hashes"])) <= _LONGEST:
        return value
    return {**value, "hashes": f"{str(value['hashes'])[:8]}… (whole with -o json)"}
