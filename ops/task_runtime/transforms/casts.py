"""``Cast``: fields, or all of a key or value, as another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, time
from typing import Any

from connectctl.ops.task_runtime.spi.json_schemas import MS_OF_A_DAY
from connectctl.ops.task_runtime.spi.schema import DATE_NAME, DataError, Schema
from connectctl.ops.task_runtime.transforms.java_types import (
    Float32,
    Int8,
    Int16,
    Int32,
    class_name,
    parse_integer,
    parse_real,
    single,
    to_integer,
    to_millis,
    to_text,
)
from connectctl.ops.task_runtime.transforms.properties import Change, Properties
from connectctl.ops.task_runtime.transforms.structs import (
    copied,
    field_value,
    fields_of,
    ordered,
    remembering,
    require_map,
    require_struct,
    struct_of,
)

_INTEGERS: dict[str, tuple[int, type]] = {
    "int8": (8, Int8),
    "int16": (16, Int16),
    "int32": (32, Int32),
    "int64": (64, int),
}
_TYPES = {"float32": "float", "float64": "double"} | {
    name: name for name in (*_INTEGERS, "boolean", "string")
}
"""Schema types by the names that ``spec`` has for them."""


def cast(properties: Properties) -> Change:
    casts = _spec(properties)
    with_default, whole = properties.with_defaults, casts.get(None)

    @remembering
    def new_schema(schema: Schema) -> Schema:
        if whole is not None:
            made = _basics(schema, whole)
        else:
            fields = [
                _cast_schema(field, casts[field["field"]]) if field["field"] in casts else field
                for field in fields_of(schema)
            ]
            made = struct_of(fields, schema)
        kept = {"optional": schema.get("optional", False)}
        if schema.get("default") is not None:
            kept["default"] = schema["default"] if whole is None else _default(schema, whole)
        return ordered({**made, **kept})

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if value is None:
            return value, schema
        if schema is None:
            if whole is not None:
                return cast_value(value, None, whole), None
            members = require_map(value, "cast types")
            cast_members = {
                name: cast_value(members.get(name), None, kind)
                for name, kind in casts.items()
                if name is not None
            }
            return copied(members, cast_members), None
        updated = new_schema(schema)
        if whole is not None:
            return cast_value(value, schema, whole), updated
        members = require_struct(value, schema, "cast types")
        made = {}
        for field in fields_of(schema):
            name = field["field"]
            found = field_value(members, field, with_default=with_default)
            made[name] = cast_value(found, field, casts[name]) if name in casts else found
        return made, updated

    return change


def _spec(properties: Properties) -> Mapping[str | None, str]:
    """Return the types by field; that of the whole value by None."""
    found: dict[str | None, str] = {}
    specs = properties.names("spec", required=True)
    for each in specs:
        field, colon, kind = each.rpartition(":")
        name = kind.strip().lower()
        if name not in _TYPES or ":" in field:
            why = f"Invalid type found in casting spec: {kind.strip()}"
            raise properties.invalid("spec", each, f"{why}; use {', '.join(_TYPES)}")
        found[field.strip() if colon else None] = name
    if None in found and len(specs) > 1:
        raise properties.invalid(
            "spec", ", ".join(specs), "a type for the entire value may only be a single cast"
        )
    return found


def _basics(schema: Schema, kind: str) -> Schema:
    named = {
        name: schema[name] for name in ("name", "version", "doc", "parameters") if name in schema
    }
    return {"type": _TYPES[kind], "optional": False, **named}


def _cast_schema(field: Schema, kind: str) -> Schema:
    """Return the schema of a field that is cast, which keeps neither name nor documentation."""
    made: dict[str, Any] = {"type": _TYPES[kind], "optional": field.get("optional", False)}
    if field.get("default") is not None:
        made["default"] = _default(field, kind)
    return {**made, "field": field["field"]}


def _default(schema: Schema, kind: str) -> Any:
    return cast_value(field_value({}, {**schema, "field": ""}), schema, kind)


def cast_value(value: Any, schema: Schema | None, kind: str) -> Any:
    """Return ``value`` as ``kind``. Raises ``DataError`` for a value that has no such form."""
    if value is None:
        return None
    if isinstance(value, dict | list) or (schema is None and isinstance(value, date | time)):
        raise DataError(f"Cast transformation does not support casting from {class_name(value)}")
    if kind == "string":
        return to_text(value)
    if isinstance(value, date | time):
        value = to_millis(value)
        if schema is not None and schema.get("name") == DATE_NAME:
            value //= MS_OF_A_DAY
    if isinstance(value, bytes):
        raise DataError(f"Unexpected type in Cast transformation: class {class_name(value)}")
    try:
        return _CASTS[kind](value)
    except ValueError as e:
        raise DataError(f"Value ({value}) was out of range for requested data type") from e


def _to_integer(kind: str) -> Callable[[Any], Any]:
    bits, of = _INTEGERS[kind]
    return lambda value: of(
        parse_integer(value, bits) if isinstance(value, str) else to_integer(value, bits)
    )


def _to_double(value: Any) -> float:
    return parse_real(value) if isinstance(value, str) else float(value)


def _to_boolean(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else to_integer(value, 64) != 0


_CASTS: dict[str, Callable[[Any], Any]] = {kind: _to_integer(kind) for kind in _INTEGERS} | {
    "float32": lambda value: Float32(single(_to_double(value))),
    "float64": _to_double,
    "boolean": _to_boolean,
}
