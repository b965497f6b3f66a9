"""Maps without a schema and structs with one, as transformations read and make them.

A map that Java makes has the order of a ``HashMap``, and so has the one that is made here: the
bytes of a key that ``ValueToKey`` makes choose its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connectctl.ops.connect.source_keys import java_map
from connectctl.ops.task_runtime.spi.json_schemas import value_of
from connectctl.ops.task_runtime.spi.schema import DataError, Schema, plain
from connectctl.ops.task_runtime.transforms.java_types import class_name

Members = Mapping[str, Any]
_ORDER = ("type", "fields", "optional", "name", "version", "doc", "parameters", "default", "field")
LOAD = 0.75


def buckets(size: float, *, least: int = 1) -> int:
    """Return ``HashMap.tableSizeFor``: a power of two that is at least ``size``."""
    found = least
    while found < int(size):
        found *= 2
    return found


def copied(members: Members, added: Members | None = None) -> dict[str, Any]:
    """Return ``new HashMap<>(members)`` of Java 17, after ``put`` of each of ``added``."""
    size = buckets(len(members) / LOAD + 1) if members else 16
    return java_map({**members, **(added or {})}, size) or {}


def require_map(value: Any, purpose: str) -> Members:
    """Return ``value`` if it is a map. Raises ``DataError``."""
    if isinstance(value, Mapping):
        return value
    raise DataError(
        f"Only Map objects supported in absence of schema for [{purpose}], found: "
        f"{class_name(value)}"
    )


def require_struct(value: Any, schema: Schema, purpose: str) -> Members:
    """Return ``value`` if it is a struct. Raises ``DataError``."""
    if schema.get("type") == "struct" and isinstance(value, Mapping):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name(value)}")


def fields_of(schema: Schema) -> Sequence[Schema]:
    """Return the schemas of the fields of a struct. Raises ``DataError`` for another schema."""
    if schema.get("type") != "struct":
        raise DataError("Cannot list fields on non-struct type")
    fields: Sequence[Schema] = schema["fields"]
    return fields


def field_value(value: Members, field: Schema, *, with_default: bool = True) -> Any:
    """Return ``Struct.get``, or without the default of the field ``getWithoutDefault``."""
    found = value.get(field["field"])
    if found is None and with_default and field.get("default") is not None:
        return value_of(field, None)
    return found


def as_field(schema: Schema, name: str) -> Schema:
    return {**plain(schema), "field": name}


def ordered(schema: Schema) -> Schema:
    """Return ``schema`` with its members in the order of ``JsonConverter``."""
    return {name: schema[name] for name in _ORDER if name in schema} | dict(schema)


def struct_of(fields: Iterable[Schema], basics: Schema | None = None) -> Schema:
    """Return the schema of a required struct with name, version, documentation and parameters of
    ``basics`` (``SchemaUtil.copySchemaBasics``). Raises ``DataError`` for a name that occurs twice.
    """
    listed = list(fields)
    names = [each["field"] for each in listed]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"Cannot create field because of field name duplication {name}")
    kept = {n: v for n, v in (basics or {}).items() if n not in ("optional", "default", "field")}
    return ordered({**kept, "type": "struct", "fields": listed, "optional": False})


def remembering(make: Callable[[Schema], Schema]) -> Callable[[Schema], Schema]:
    """Return ``make``, which is not called again for the same object: most records of a task have
    one schema.
    """
    last: list[Schema] = []

    def remembered(schema: Schema) -> Schema:
        if not last or last[0] is not schema:
            last[:] = [schema, make(schema)]
        return last[1]

    return remembered
