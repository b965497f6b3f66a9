"""Schemas of records, as Connect has them, and the interface of a converter of one's own.

A ``Schema`` is what ``JsonConverter`` writes; ``struct``, ``array``, ``decimal`` and so on make one.
How to: docs/how-to/schemas.md.
"""

from __future__ import annotations

from connectctl.ops.task_runtime.spi.converter import Converter
from connectctl.ops.task_runtime.spi.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    DataError,
    Schema,
    SchemaAndValue,
    array,
    decimal,
    map_of,
    optional,
    struct,
)

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DATE",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "Converter",
    "DataError",
    "Schema",
    "SchemaAndValue",
    "array",
    "decimal",
    "map_of",
    "optional",
    "struct",
]
