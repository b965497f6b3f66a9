"""Columns of any type as keys and values by a converter, as a worker's converter writes them: Spark's
types as Connect's schemas, Arrow's values as Python's.

=========================  ===========================================================
Spark                      Connect
=========================  ===========================================================
tinyint … bigint           int8 … int64
float, double, boolean     float, double, boolean
string, binary             string, bytes
decimal(p,s)               Decimal of the scale s, ``connect.decimal.precision`` p
date, timestamp            Date, Timestamp in milliseconds: microseconds are cut off
array, struct              array, struct
map                        map; its keys are no arrays, maps or structs
=========================  ===========================================================

A null of the column itself is a tombstone, whose schema is null; all others are of an optional schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.spi import schema as of
from connectctl.ops.task_runtime.spi.converters import (
    BYTES,
    STRING,
    converter_class,
    converters,
    text_encoding,
)
from connectctl.ops.task_runtime.spi.schema import DataError, Schema

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns

PARTS = ("key", "value")
TEXT_OR_BYTES = ("string", "binary")
_PRIMITIVE = {
    "tinyint": of.INT8,
    "smallint": of.INT16,
    "int": of.INT32,
    "bigint": of.INT64,
    "float": of.FLOAT32,
    "double": of.FLOAT64,
    "boolean": of.BOOLEAN,
    "binary": of.BYTES,
    "date": of.DATE,
    "timestamp": of.TIMESTAMP,
}
_TEXT = ("string", "char", "varchar")
_NESTED = ("array", "map", "struct")
_HINTS = {
    "timestamp_ntz": "cast it to timestamp",
    "interval": "cast it to a number, or to string",
    "variant": "cast it to a struct, or use to_json",
}


def properties(key: str | None, value: str | None, more: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of converters as a worker has them. Raises ``BadInput`` for a property
    of a converter that is not named.
    """
    named = {"key.converter": key, "value.converter": value}
    found = {name: given for name, given in named.items() if given is not None}
    for name in more:
        if not any(name.startswith(f"{each}.") for each in found):
            raise BadInput(
                f"{name} in converter_configs is not a property of a converter that the Target "
                "names",
                next_step="Begin it with key.converter. or value.converter., and set key_converter or "
                "value_converter.",
            )
    return {**more, **found}


def converts(configs: Mapping[str, str], part: str) -> bool:
    """Return whether keys or values (``part``) are made by a converter; text and bytes are taken as
    they are otherwise. Raises ``BadInput`` for a converter that is not known.
    """
    name = f"{part}.converter"
    kind = converter_class(configs, name)
    return kind != BYTES and (kind != STRING or text_encoding(configs, name).name != "utf-8")


def converted_parts(columns: FrameColumns) -> list[tuple[str, str]]:
    """Return the parts that a converter makes, each with the name of its column."""
    names = {"key": columns.key, "value": columns.value}
    return [
        (part, name)
        for part in PARTS
        if (name := names[part]) and converts(columns.converters, part)
    ]


def with_schemas(columns: FrameColumns, fields: Iterable[Any]) -> FrameColumns:
    """Return ``columns`` with the schemas of what converters make; ``fields`` are those of the frame's
    ``schema``. Raises ``BadInput`` that names column and type of what has no equal in Connect, and
    for a converter that refuses its properties.
    """
    parts = converted_parts(columns)
    if not parts:
        return columns
    converters(columns.converters)
    types = {field.name: field.dataType for field in fields}
    found = {}
    for part, name in parts:
        if converter_class(columns.converters, f"{part}.converter") == STRING:
            _check_text(name, types[name])
        found[part] = _schema_of(name, types[name])
    return replace(columns, schemas=found)


def _check_text(name: str, kind: Any) -> None:
    if kind.simpleString() not in TEXT_OR_BYTES:
        raise BadInput(
            f"The column {name} is a {kind.simpleString()}; StringConverter takes string or binary",
            next_step="Use JsonConverter for structs, or to_json(struct(*)).",
        )


def _schema_of(path: str, kind: Any) -> Schema:
    """Return Connect's schema of a type of Spark, not optional; ``path`` is the name of the column,
    with those of its fields.
    """
    name = kind.typeName()
    if name == "decimal":
        made = of.decimal(kind.scale)
        precision = {"connect.decimal.precision": str(kind.precision)}
        return {**made, "parameters": {**made["parameters"], **precision}}
    if name == "array":
        return of.array(_nullable(f"{path}.element", kind.elementType, kind.containsNull))
    if name == "map":
        if kind.keyType.typeName() in _NESTED:
            raise _unsupported(f"{path}.key", kind.keyType, "use keys of numbers or text")
        values = _nullable(f"{path}.value", kind.valueType, kind.valueContainsNull)
        return of.map_of(_schema_of(f"{path}.key", kind.keyType), values)
    if name == "struct":
        return _struct_of(path, kind)
    simple = "string" if name in _TEXT else kind.simpleString()
    if simple == "string":
        return of.STRING
    if simple not in _PRIMITIVE:
        hint = next((hint for each, hint in _HINTS.items() if each in simple), "cast it to string")
        raise _unsupported(path, kind, hint)
    return _PRIMITIVE[simple]


def _struct_of(path: str, kind: Any) -> Schema:
    members: list[dict[str, Any]] = []
    for field in kind.fields:
        if any(field.name == each["field"] for each in members):
            raise BadInput(
                f"The column {path} has two fields {field.name}", next_step="Rename one of them."
            )
        schema = _nullable(f"{path}.{field.name}", field.dataType, field.nullable)
        members.append({**schema, "field": field.name})
    return {**of.struct(), "fields": members}


def _nullable(path: str, kind: Any, nullable: bool) -> Schema:
    schema = _schema_of(path, kind)
    return of.optional(schema) if nullable else schema


def _unsupported(path: str, kind: Any, hint: str) -> BadInput:
    return BadInput(
        f"The column {path} is a {kind.simpleString()}, which has no equal in Connect",
        next_step=f"{hint[0].upper()}{hint[1:]}.",
    )


class ColumnConverter:
    """Converts columns of Arrow for ``topic``. Made once for a task: converters keep what they know of
    a schema.
    """

    def __init__(self, topic: str, columns: FrameColumns):
        self._topic, self._schemas, self._configs = topic, columns.schemas, columns.converters
        self._names = dict(converted_parts(columns))
        self._made: Mapping[str, Any] = {}

    def bytes_of(self, part: str, column: Any, row_name: Callable[[int], str]) -> Any:
        """Return keys or values (``part``) as a column of bytes; ``row_name`` names the row of an
        error. Raises ``ConnectctlError``.
        """
        import pyarrow as pa

        if part not in self._names:
            return _text_as_bytes(column)
        if not self._made:
            made = converters(self._configs)
            self._made = {"key": made.of_key, "value": made.of_value}
        convert, schema, topic = self._made[part], self._schemas[part], self._topic
        found: list[bytes | None] = []
        try:
            for value in _values(column):
                found.append(convert(topic, None if value is None else schema, value))
        except Exception as e:
            # What a registry does not answer has no row, and keeps its class: it may pass.
            if isinstance(e, ConnectctlError) and not isinstance(e, DataError):
                raise
            raise self._failed(part, row_name(len(found)), e) from e
        return pa.array(found, pa.large_binary())

    def _failed(self, part: str, row: str, error: Exception) -> ConnectctlError:
        kind = converter_class(self._configs, f"{part}.converter").rpartition(".")[2]
        return DataError(
            f"{kind} cannot write the column {self._names[part]}", why=f"{error} ({row})"
        )


def _text_as_bytes(column: Any) -> Any:
    """Text as UTF-8, which is what Arrow keeps it as: nothing is copied for that."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column


def _values(column: Any) -> Iterable[Any]:
    """Yield the values of a column; maps, which Arrow has as lists of pairs, as dictionaries."""
    build = _builder(column.type)
    values = column.to_pylist()
    return values if build is None else (None if v is None else build(v) for v in values)


def _builder(kind: Any) -> Callable[[Any], Any] | None:
    """Return what makes dictionaries of the maps in values of ``kind``; None if it has none."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        values = _builder(kind.item_type)
        return dict if values is None else lambda pairs: {k: _built(values, v) for k, v in pairs}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        elements = _builder(kind.value_type)
        return None if elements is None else lambda items: [_built(elements, v) for v in items]
    if not pa.types.is_struct(kind):
        return None
    fields = {field.name: _builder(field.type) for field in kind}
    if not any(fields.values()):
        return None
    return lambda members: {name: _built(fields[name], v) for name, v in members.items()}


def _built(build: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if value is None or build is None else build(value)
