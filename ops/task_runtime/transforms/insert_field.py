"""``InsertField``: metadata of the record, or a text, in new fields."""

from __future__ import annotations

from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.schema import TIMESTAMP_NAME, DataError, Schema
from connectctl.ops.task_runtime.transforms.java_types import Int32, from_millis
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

PURPOSE = "field insertion"
_SCHEMAS: dict[str, Schema] = {
    "topic": {"type": "string"},
    "partition": {"type": "int32"},
    "offset": {"type": "int64"},
    "timestamp": {"type": "int64", "name": TIMESTAMP_NAME, "version": 1},
    "static": {"type": "string"},
}
"""What can be inserted, in the order in which its fields are added."""


def insert_field(properties: Properties) -> Change:
    fields = dict[str, str]()
    required = set[str]()
    for what in _SCHEMAS:
        if spec := properties.text(f"{what}.field"):
            fields[what] = spec[:-1] if spec[-1] in "?!" else spec
            required |= {what} if spec.endswith("!") else set()
    static, with_default = properties.text("static.value"), properties.with_defaults
    if not fields:
        raise BadInput(f"No field insertion configured ({properties.prefix.rstrip('.')})")
    if "static" in fields and static is None:
        name = f"{properties.prefix}static.value"
        raise BadInput(f"No value specified for static field: {fields['static']} ({name})")

    @remembering
    def new_schema(schema: Schema) -> Schema:
        added = [
            ordered({**_SCHEMAS[what], "optional": what not in required, "field": name})
            for what, name in fields.items()
        ]
        return struct_of([*fields_of(schema), *added], schema)

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if value is None:
            return value, schema
        if schema is None:
            members = require_map(value, PURPOSE)
            return copied(members, _inserted(fields, record, static)), None
        members = require_struct(value, schema, PURPOSE)
        made = {
            field["field"]: field_value(members, field, with_default=with_default)
            for field in fields_of(schema)
        }
        inserted = _inserted(fields, record, static)
        if "timestamp" in fields and record.timestamp is not None:
            inserted[fields["timestamp"]] = from_millis(record.timestamp)
        return made | inserted, new_schema(schema)

    return change


def _inserted(fields: dict[str, str], record: Any, static: str | None) -> dict[str, Any]:
    """Return the new fields of ``record`` that have a value. Raises ``DataError`` for the offset of
    a source's record, which has none.
    """
    found: dict[str, Any] = {}
    for what, name in fields.items():
        if what == "offset" and not hasattr(record, "offset"):
            raise DataError(f"Only SinkRecord supported for [{PURPOSE}], found: SourceRecord")
        value = static if what == "static" else getattr(record, what)
        if value is not None:
            found[name] = Int32(value) if what == "partition" else value
    return found
