"""Records that are Python's objects, as columns: what a batch is made of at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

from connectctl.ops.kafka.record_batch_encoder import RecordColumns

Headers = Sequence[tuple[str, bytes | None]]


@dataclass
class Rows:
    """Records of one topic, in their order: lists that are columns to be. A partition of None is
    chosen by their writer.
    """

    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    timestamps: list[int | None] = field(default_factory=list)
    headers: list[Headers | None] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)

    def add(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> None:
        self.keys.append(key)
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.headers.append(headers)
        self.partitions.append(partition)

    def __len__(self) -> int:
        return len(self.values)

    def columns(self) -> RecordColumns:
        return record_columns(self.values, self.keys, self.timestamps, self.headers)


def record_columns(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] = (),
    timestamps: Sequence[int | None] = (),
    headers: Sequence[Headers | None] = (),
) -> RecordColumns:
    """Return ``values`` and what belongs to them; a column is left out where it is empty or has
    nothing. ``timestamps`` are in milliseconds, -1 or None for the time at which the batch is made.
    """
    import pyarrow as pa

    def raw(column: Sequence[bytes | None]) -> Any:
        return pa.array(column, pa.binary())

    times = lists = None
    if any(when is not None for when in timestamps):
        times = pa.array(timestamps, pa.int64()).fill_null(-1).to_numpy()
    if any(headers):
        flat = list(chain.from_iterable(some or () for some in headers))
        ends = pa.array(
            list(accumulate((len(some or ()) for some in headers), initial=0)), pa.int32()
        )
        # Names are bytes, as some are no text.
        names = raw([name.encode("utf-8", "surrogateescape") for name, _ in flat])
        pairs = pa.StructArray.from_arrays(
            [names, raw([value for _, value in flat])], ["key", "value"]
        )
        lists = pa.ListArray.from_arrays(ends, pairs)
    has_key = any(key is not None for key in keys)
    return RecordColumns(raw(values), raw(keys) if has_key else None, times, lists)
