"""``Flatten``: the members of maps and structs as members of one, by names with a delimiter."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from typing import Any

from connectctl.ops.task_runtime.spi.schema import DataError, Schema
from connectctl.ops.task_runtime.transforms.java_types import class_name
from connectctl.ops.task_runtime.transforms.properties import Change, Properties
from connectctl.ops.task_runtime.transforms.structs import (
    Members,
    field_value,
    fields_of,
    ordered,
    remembering,
    require_map,
    require_struct,
    struct_of,
)


def flatten(properties: Properties) -> Change:
    delimiter = str(properties.text("delimiter", "."))

    def joined(prefix: str, name: str) -> str:
        return f"{prefix}{delimiter}{name}" if prefix else name

    def members_of(value: Members, prefix: str) -> Iterator[tuple[str, Any]]:
        for key, each in value.items():
            name = joined(prefix, key)
            if isinstance(each, dict):
                yield from members_of(each, name)
            elif isinstance(each, date | time | Decimal):
                raise DataError(
                    f"Flatten transformation was passed a value of type class {class_name(each)} "
                    "which is not supported by Connect's data API"
                )
            else:
                yield name, each

    def schemas_of(
        schema: Schema, prefix: str, default: Members | None, *, optional: bool
    ) -> Iterator[Schema]:
        for field in fields_of(schema):
            name = joined(prefix, field["field"])
            is_optional = optional or field.get("optional", False)
            own = field.get("default")
            if own is None and default is not None:
                own = default.get(field["field"])
            if field["type"] == "struct":
                yield from schemas_of(field, name, own, optional=is_optional)
            elif field["type"] == "map":
                raise _unsupported(name)
            else:
                kept = {k: v for k, v in field.items() if k != "default"}
                with_default = {} if own is None else {"default": own}
                yield ordered({**kept, **with_default, "optional": is_optional, "field": name})

    def values_of(value: Members, schema: Schema, prefix: str) -> Iterator[tuple[str, Any]]:
        for field in fields_of(schema):
            name, found = joined(prefix, field["field"]), field_value(value, field)
            if field["type"] != "struct":
                yield name, found
            elif found is not None:
                yield from values_of(found, field, name)

    @remembering
    def new_schema(schema: Schema) -> Schema:
        optional = schema.get("optional", False)
        return struct_of(schemas_of(schema, "", schema.get("default"), optional=optional), schema)

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if value is None:
            return value, schema
        if schema is None:
            return dict(members_of(require_map(value, "flattening"), "")), None
        members = require_struct(value, schema, "flattening")
        return dict(values_of(members, schema, "")), new_schema(schema)

    return change


def _unsupported(name: str) -> DataError:
    return DataError(
        f"Flatten transformation does not support MAP for record with schemas (for field {name})."
    )
