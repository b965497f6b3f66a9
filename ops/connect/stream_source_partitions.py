"""Source partitions that are not place in a source: what a stream of DataFrames remembers beside its source offsets.

They are keys of the connector's offsets like others, so that they are committed in the same transactions, backed up, copied
and shown with them; one member tells them apart, by a name that no column has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 100

STREAM = "connectctl.stream"
"""The member: the id of the query whose micro-batch is described."""


def is_of_a_stream(partition: Mapping[str, Any] | None) -> bool:
    """Whether it is one of them, and no place in a source."""
    return partition is not None and STREAM in partition


def in_short(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is remembered of rows without its thousands of hashes, for people; anything else as it is."""
    if value.keys() != {"turn", "hashes"} or len(str(value["hashes"])) <= _LONGEST:
        return value
    return {**value, "hashes": f"{str(value['hashes'])[:8]}… (whole with -o json)"}
