"""Tables that a transform gives, as columns for whole record batches: nothing is done for each
record in Python.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch
from connectctl.ops.task_runtime.spi.transform import check_columns
from pyarrow import types


def column_batches(topic: str, made: Any) -> list[ColumnBatch]:
    """Return the batches for ``topic`` from ``made``: an Arrow table, a pandas DataFrame, or
    several. Raises ``ConnectctlError`` for a result without columns.
    """
    tables = _tables(made)
    for each in tables:
        check_columns(each)
    if not (tables := [table for table in tables if table.num_rows]):
        return []
    complete = pa.concat_tables([_typed(table) for table in tables])
    columns = {name: complete[name].combine_chunks() for name in complete.column_names}
    keys, headers = columns["key"], columns["headers"]
    rows = RecordColumns(
        columns["value"],
        None if keys.null_count == len(keys) else keys,
        columns["timestamp"].fill_null(-1).to_numpy(zero_copy_only=False),
        None if not len(headers.flatten()) else headers,
    )
    return [ColumnBatch(topic, rows, _row)]


def _row(number: int) -> str:
    return f"Row {number} of the result of the transform for a poll"


def _tables(made: Any) -> list[Any]:
    """The tables in ``made``, in their order."""
    if made is None:
        return []
    if isinstance(made, pa.RecordBatch):
        return [pa.Table.from_batches([made])]
    if isinstance(made, pa.Table):
        return [made]
    if hasattr(made, "to_dict") and hasattr(made, "columns"):  # pandas
        return [pa.Table.from_pandas(made, preserve_index=False)]
    if isinstance(made, list | tuple):
        return [table for each in made for table in _tables(each)]
    raise ConnectctlError(
        f"The transform returned {type(made).__name__}, which has no columns",
        next_step="Return a pyarrow.Table or a pandas.DataFrame, or leave out columnar = True in "
        "its class.",
    )


def _typed(table: Any) -> Any:
    """The columns that are written, in one order and with one type each."""
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kinds = {"value": pa.binary(), "key": pa.binary(), "timestamp": pa.int64(), "headers": headers}
    columns = {}
    for name, kind in kinds.items():
        column = table[name] if name in table.column_names else pa.nulls(table.num_rows)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms"))
        if pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type):
            column = pa.nulls(table.num_rows)  # of frames in which no record has a header
        if name in ("value", "key") and not _is_bytes(column.type):
            raise ConnectctlError(f"The {name} of a record is {column.type}, and not bytes or text")
        columns[name] = column.cast(kind)
    return pa.table(columns)


def _is_bytes(kind: Any) -> bool:
    plain = (
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
        types.is_null,
    )
    return any(is_one(kind) for is_one in plain)
