"""Whether a DataFrame can be written: its columns, and the offsets that were committed before.
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import SourceKey, connect_json, decode_json, parse_key
from connectctl.ops.connect.stream_source_partitions import is_stream_state
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.task_runtime.dataframe.column_conversion import (
    TEXT_OR_BYTES,
    converted_parts,
)

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
    from connectctl.ops.task_runtime.spi.transaction_batch import StoredOffsets

WHOLE = ("tinyint", "smallint", "int", "bigint")
PARTITION_TYPES = (*WHOLE, "string", "boolean")
"""Types that JSON keeps exactly."""
HEADERS = "array<struct<key:string,value:binary>>"
"""The type of headers in Spark's own Kafka source and sink."""


def check_columns(dtypes: Iterable[tuple[str, str]], columns: FrameColumns) -> None:
    """Raises ``BadInput`` for a column that is missing, or of a type that does not fit what it is
    for.
    """
    have = dict(dtypes)
    if not columns.offset:
        raise BadInput(
            "No column is set as source offset",
            next_step="Set one that is increasing within a source partition; for a stream without "
            "one, use StreamWriter.",
        )
    if not columns.partition:
        raise BadInput(
            "No column is set as source partition",
            next_step="Set one or more. For a DataFrame that is one source partition: a column "
            "with a constant value.",
        )
    check_names(have, columns.names)
    if have[columns.offset] not in (*WHOLE, "string"):
        raise BadInput(
            f"The column {columns.offset} of type {have[columns.offset]} cannot be a source offset",
            next_step="Use integers or strings, such as unix_micros(time).",
        )
    for name in columns.partition:
        if have[name] not in PARTITION_TYPES:
            raise BadInput(
                f"The column {name} of type {have[name]} cannot be part of the source partition",
                next_step="Use integers, strings or booleans, such as cast(day AS string).",
            )
    check_records(have.items(), columns)


def check_records(dtypes: Iterable[tuple[str, str]], columns: FrameColumns) -> None:
    """``check_columns`` of what makes the records alone."""
    have = dict(dtypes)
    check_names(
        have, filter(None, (columns.key, columns.value, columns.timestamp, columns.headers))
    )
    converted = dict(converted_parts(columns))
    for part, name in (("key", columns.key), ("value", columns.value)):
        if name and part not in converted and have[name] not in TEXT_OR_BYTES:
            raise BadInput(
                f"The column {name} is a {have[name]}; expected string or binary",
                next_step="Use string or binary, such as to_json(struct(*)) or cast(number AS "
                f"string), or set a converter for the {part}, such as JsonConverter.",
            )
    if columns.timestamp is not None and have[columns.timestamp] != "bigint":
        raise BadInput(
            f"The column {columns.timestamp} is a {have[columns.timestamp]}; expected bigint "
            "(milliseconds since the epoch)",
            next_step="Use unix_millis(time).",
        )
    if columns.headers is not None and have[columns.headers] != HEADERS:
        raise BadInput(
            f"The column {columns.headers} is a {have[columns.headers]}; expected {HEADERS}",
            next_step="Use array(struct('name' AS key, cast(value AS binary) AS value)).",
        )


def check_names(have: Collection[str], names: Iterable[str]) -> None:
    """Raises ``BadInput`` for one of ``names`` that is not among the columns that a frame has."""
    for name in names:
        if name not in have:
            raise BadInput(
                f"The DataFrame has no column {name}", next_step=f"Columns: {', '.join(have)}."
            )


def check_committed(
    connector: str, stored: StoredOffsets, dtypes: Iterable[tuple[str, str]], columns: FrameColumns
) -> None:
    """Raise ``Refused`` if offsets were committed with other columns, which do not show the
    delivered rows.
    """
    kind = str if dict(dtypes)[columns.offset] == "string" else int
    for raw in sorted(stored.known()):
        key, value = parse_key(raw), stored.value(raw)
        if (
            not isinstance(key, SourceKey)
            or key.partition is None
            or value is None
            or is_stream_state(key.partition)
        ):
            continue
        offset, _ = decode_json(value.decode())
        if not _fits(key.partition, offset, kind, columns):
            word = "text" if kind is str else "integers"
            raise Refused(
                f"The committed offsets of {connector} were written with other columns",
                why=f"there is {connect_json(offset)} of {connect_json(key.partition)}; the "
                f"source partition is now made of {', '.join(columns.partition)}, and the "
                f"offset of {columns.offset} ({word})",
                next_step=f"See connectctl offsets show {connector}; or use another name.",
                code="other-columns",
            )


def _fits(partition: Mapping[str, Any], offset: Any, kind: type, columns: FrameColumns) -> bool:
    if set(partition) != set(columns.partition) or not isinstance(offset, dict):
        return False
    # A bool would be an int, too, and is none that a column of whole numbers has left.
    return set(offset) == {columns.offset} and type(offset[columns.offset]) is kind
