"""``MaskField``: fields with a value that tells nothing, or with ``replacement``."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from connectctl.ops.connect.source_keys import java_map
from connectctl.ops.task_runtime.spi.json_schemas import BITS
from connectctl.ops.task_runtime.spi.schema import DataError, Schema
from connectctl.ops.task_runtime.transforms.java_types import (
    ZERO,
    Float32,
    Int8,
    Int16,
    Int32,
    class_name,
    single,
    wrapped,
)
from connectctl.ops.task_runtime.transforms.properties import Change, Properties
from connectctl.ops.task_runtime.transforms.structs import (
    LOAD,
    buckets,
    copied,
    field_value,
    fields_of,
    require_map,
    require_struct,
)

_KINDS = {int: "int64", Int8: "int8", Int16: "int16", Int32: "int32"} | {
    float: "double",
    Float32: "float",
    str: "string",
    Decimal: "bytes",
}
"""Schema types of the classes that a replacement can have."""


def mask_field(properties: Properties) -> Change:
    names = properties.names("fields", required=True)
    masked_fields = java_map(dict.fromkeys(names), buckets(len(names) / LOAD + 1, least=16)) or {}
    replacement, with_default = properties.text("replacement"), properties.with_defaults
    if replacement == "":
        raise properties.invalid("replacement", "", "String must be non-empty")

    def masked(value: Any, field: Schema | None) -> Any:
        if value is None:
            return None
        return _zero(value, field) if replacement is None else _replaced(value, field, replacement)

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if schema is None:
            members = require_map(value, "mask fields")
            return copied(members, {n: masked(members.get(n), None) for n in masked_fields}), None
        members = require_struct(value, schema, "mask fields")
        made = {}
        for field in fields_of(schema):
            name = field["field"]
            found = field_value(members, field, with_default=with_default)
            made[name] = masked(found, field) if name in masked_fields else found
        return made, schema

    return change


def _zero(value: Any, field: Schema | None) -> Any:
    if type(value) in ZERO:
        return ZERO[type(value)]
    if isinstance(value, list):
        return []
    if isinstance(value, dict) and (field is None or field["type"] == "map"):
        return {}
    raise DataError(f"Cannot mask value of type: class {class_name(value)}")


def _replaced(value: Any, field: Schema | None, text: str) -> Any:
    """Return ``text`` in the class of ``value``: numbers of Java, which overflow."""
    kind = _KINDS.get(type(value))
    if kind is None:
        raise DataError(
            f"Cannot mask value of type class {class_name(value)} with custom replacement."
        )
    if kind == "string":
        return text
    try:
        number = Decimal(text)
        if kind == "bytes":
            return number
        if kind in ("double", "float"):
            if field is not None and field["type"] == "float":
                return single(float(number))
            return Float32(single(float(number))) if kind == "float" else float(number)
        bits = BITS[kind if field is None else field["type"]]
        return type(value)(wrapped(wrapped(int(number), 64), bits))
    except (InvalidOperation, ValueError, OverflowError) as e:
        raise DataError(
            f"Unable to convert {text} (class java.lang.String) to a number", why=str(e)
        ) from e
