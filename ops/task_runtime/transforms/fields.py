"""``ReplaceField``, ``ExtractField``, ``HoistField``, ``ValueToKey`` and ``SetSchemaMetadata``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connectctl.ops.connect.source_keys import java_map
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.schema import DataError, Schema, plain
from connectctl.ops.task_runtime.transforms.field_path import field_path, schema_at, value_at
from connectctl.ops.task_runtime.transforms.properties import Change, Properties
from connectctl.ops.task_runtime.transforms.structs import (
    as_field,
    buckets,
    field_value,
    fields_of,
    ordered,
    remembering,
    require_map,
    require_struct,
    struct_of,
)


def replace_field(properties: Properties) -> Change:
    """``ReplaceField``: fields left out, or under another name."""
    exclude, include = set(properties.names("exclude")), set(properties.names("include"))
    renames = _renames(properties)
    originals = {new: old for old, new in renames.items()}
    with_default, purpose = properties.with_defaults, "field replacement"

    def is_kept(name: str) -> bool:
        return name not in exclude and (not include or name in include)

    @remembering
    def new_schema(schema: Schema) -> Schema:
        kept = (field for field in fields_of(schema) if is_kept(field["field"]))
        names = ((field, str(field["field"])) for field in kept)
        return struct_of((as_field(field, renames.get(n, n)) for field, n in names), schema)

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if value is None:
            return value, schema
        if schema is None:
            members = require_map(value, purpose)
            kept = {renames.get(n, n): each for n, each in members.items() if is_kept(n)}
            return java_map(kept, buckets(len(members))), None
        members = require_struct(value, schema, purpose)
        by_name = {field["field"]: field for field in fields_of(schema)}
        updated, made = new_schema(schema), dict[str, Any]()
        for field in fields_of(updated):
            name = field["field"]
            original = by_name[originals.get(name, name)]
            made[name] = field_value(members, original, with_default=with_default)
        return made, updated

    return change


def _renames(properties: Properties) -> dict[str, str]:
    found = dict[str, str]()
    for mapping in properties.names("renames"):
        old, _, new = mapping.partition(":")
        if not old or not new or ":" in new:
            raise properties.invalid("renames", mapping, f"Invalid rename mapping: {mapping}")
        found[old] = new
    return found


def extract_field(properties: Properties) -> Change:
    """``ExtractField``: one field in place of all."""
    name = properties.required("field")
    steps = field_path(properties, name)
    with_default, purpose = properties.with_defaults, "field extraction"

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if schema is None:
            return None if value is None else value_at(steps, require_map(value, purpose)), None
        if value is not None:
            require_struct(value, schema, purpose)
        found = schema_at(steps, schema)
        if found is None:
            raise DataError(f"Unknown field: {name}")
        extracted = value_at(steps, value, schema, with_default=with_default)
        return extracted, plain(found)

    return change


def hoist_field(properties: Properties) -> Change:
    """``HoistField``: all as the only field of a map or struct."""
    name = properties.required("field")

    @remembering
    def new_schema(schema: Schema) -> Schema:
        return struct_of([as_field(schema, name)])

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        return {name: value}, None if schema is None else new_schema(schema)

    return change


def value_to_key(properties: Properties) -> Callable[[Any], Any]:
    """``ValueToKey``: fields of the value as the key."""
    names = properties.names("fields", required=True)
    with_default, purpose = properties.with_defaults, "copying fields from value to key"

    @remembering
    def key_schema(schema: Schema) -> Schema:
        by_name = {field["field"]: field for field in fields_of(schema)}
        if missing := [name for name in names if name not in by_name]:
            raise DataError(f"Field does not exist: {missing[0]}")
        return struct_of(by_name[name] for name in names)

    def apply(record: Any) -> Any:
        if record.value_schema is None:
            members = require_map(record.value, purpose)
            key = {name: members.get(name) for name in names}
            record.key, record.key_schema = java_map(key, buckets(len(names))), None
            return record
        members = require_struct(record.value, record.value_schema, purpose)
        record.key_schema = key_schema(record.value_schema)
        record.key = {
            field["field"]: field_value(members, field, with_default=with_default)
            for field in fields_of(record.key_schema)
        }
        return record

    return apply


def set_schema_metadata(properties: Properties) -> Change:
    """``SetSchemaMetadata``: name and version of the schema."""
    name, version = properties.text("schema.name"), properties.text("schema.version")
    with_default = properties.with_defaults
    if name is None and version is None:
        raise BadInput(
            f"Neither schema name nor version configured ({properties.prefix.rstrip('.')})"
        )
    if version is not None and not version.strip().lstrip("+-").isdecimal():
        raise properties.invalid("schema.version", version, "use a number")
    changed: dict[str, Any] = {} if name is None else {"name": name}
    changed |= {} if version is None else {"version": int(version)}

    @remembering
    def new_schema(schema: Schema) -> Schema:
        return ordered({**schema, **changed})

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if schema is None:
            if value is None:
                return None, None
            raise DataError("Schema required for [updating schema metadata]")
        fields = fields_of(schema)  # as Kafka's, which fails for another schema than a struct's
        if value is not None:
            value = {
                field["field"]: field_value(value, field, with_default=with_default)
                for field in fields
            }
        return value, new_schema(schema)

    return change
