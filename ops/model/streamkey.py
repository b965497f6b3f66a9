"""Source partitions that are no place in a source: what a stream of DataFrames remembers beside its source offsets.

They are keys of the connector's offsets like others, so that they are committed in the same transactions, backed up, copied
and shown with them; one member tells them apart, by a name that no column has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STREAM = "connectctl.stream"
"""The member: the id of the query whose micro-batch is told of, or ``ROWS``."""
ROWS = "rows"
"""In place of a query: rows that were written, by their hashes."""


def is_of_a_stream(partition: Mapping[str, Any] | None) -> bool:
    """Whether it is one of them, and no place in a source."""
    return partition is not None and STREAM in partition
