"""Paths of fields (KIP-821): ``field.syntax.version`` V1 names one field, V2 fields of fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.schema import Schema
from connectctl.ops.task_runtime.transforms.properties import Properties
from connectctl.ops.task_runtime.transforms.structs import (
    field_value,
    fields_of,
    require_map,
    require_struct,
)

NESTED = "nested field access"
_STEP = re.compile(r"`((?:[^`\\]|\\`|\\|`(?!\.|$))*)`(?:\.|$)|([^`.][^.]*|)(?:\.|$)")
"""A step, in backticks if it has dots; within, a backtick before a dot is escaped."""


def field_path(properties: Properties, path: str) -> list[str]:
    """Return the steps of ``path``. Raises ``BadInput`` for an unknown version or an open backtick."""
    version = str(properties.text("field.syntax.version", "V1")).upper()
    if version not in ("V1", "V2"):
        raise properties.invalid("field.syntax.version", version, "use V1 or V2")
    if version == "V1":
        return [path]
    steps, at = list[str](), 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise BadInput(
                f"Incomplete backtick pair in path: [{path}]",
                next_step=f"Add a backslash before the backtick at position {at}.",
            )
        steps.append(found[2] if found[1] is None else found[1].replace("\\`.", "`."))
        at = found.end()
    return [*steps, ""] if path.endswith(".") or not path else steps


def value_at(
    steps: Sequence[str], value: Any, schema: Schema | None = None, *, with_default: bool = True
) -> Any:
    """Return the value at the end of the path; None where a step is missing. Raises ``DataError``
    for a step into a value that has no fields.
    """
    for number, step in enumerate(steps):
        if value is None:
            return None
        if schema is None:
            value = require_map(value, NESTED).get(step)
            continue
        members, field = require_struct(value, schema, NESTED), _field(schema, step)
        if field is None:
            return None
        is_last = number == len(steps) - 1
        value, schema = (
            field_value(members, field, with_default=with_default or not is_last),
            field,
        )
    return value


def schema_at(steps: Sequence[str], schema: Schema) -> Schema | None:
    """Return the schema of the field at the end of the path; None where a step is missing."""
    found: Schema | None = schema
    for step in steps:
        found = None if found is None else _field(found, step)
    return found


def _field(schema: Schema, name: str) -> Schema | None:
    return next((field for field in fields_of(schema) if field["field"] == name), None)
