"""``TimestampConverter``: a field, or all of a key or value, as text, a number, or a logical type."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.schema import (
    DATE,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    DataError,
    Schema,
)
from connectctl.ops.task_runtime.transforms.date_format import DateFormat
from connectctl.ops.task_runtime.transforms.java_types import class_name, from_millis, to_millis
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

_PER_SECOND = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}
_SCHEMAS = {"string": STRING, "unix": INT64, "Date": DATE, "Time": TIME, "Timestamp": TIMESTAMP}
_LOGICAL = {str(_SCHEMAS[kind]["name"]) for kind in ("Date", "Time", "Timestamp")}
_LARGEST = (1 << 63) - 1


def timestamp_converter(properties: Properties) -> Change:
    name = properties.text("field", "")
    target = properties.one_of("target.type", tuple(_SCHEMAS))
    pattern = str(properties.text("format", "")).strip()
    precision = properties.one_of("unix.precision", tuple(_PER_SECOND), "milliseconds")
    with_default = properties.with_defaults
    if target == "string" and not pattern:
        raise BadInput(
            "TimestampConverter requires format option to be specified when using string "
            f"timestamps ({properties.prefix}format)"
        )
    convert = _Conversion(target, DateFormat(pattern) if pattern else None, _PER_SECOND[precision])

    @remembering
    def new_schema(schema: Schema) -> Schema:
        made = struct_of(
            [
                ordered({**convert.schema(field), "field": name})
                if field["field"] == name
                else field
                for field in fields_of(schema)
            ],
            schema,
        )
        return ordered({**made, "optional": schema.get("optional", False)})

    def change(value: Any, schema: Any, record: Any) -> tuple[Any, Any]:
        if schema is None:
            if value is None or not name:
                return convert.value(value), None
            members = require_map(value, "converting timestamp formats")
            return copied(members, {name: convert.value(members.get(name))}), None
        if not name:
            return convert.value(value, schema), convert.schema(schema)
        updated = new_schema(schema)
        if value is None:
            return None, updated
        members = require_struct(value, schema, "converting timestamp formats")
        made = {}
        for field in fields_of(schema):
            found = field_value(members, field, with_default=with_default)
            made[field["field"]] = convert.value(found, field) if field["field"] == name else found
        return made, updated

    return change


class _Conversion:
    """To ``target``, one of ``_SCHEMAS``; ``per_second`` is the unit of numbers."""

    def __init__(self, target: str, pattern: DateFormat | None, per_second: int):
        self._target, self._pattern, self._per_second = target, pattern, per_second

    def schema(self, before: Schema) -> Schema:
        return {**_SCHEMAS[self._target], "optional": before.get("optional", False)}

    def value(self, value: Any, schema: Schema | None = None) -> Any:
        """Return a timestamp as ``target``. Raises ``DataError`` for one of another type than that
        of its schema, or of no type.
        """
        if schema is not None and not _is_timestamp(schema):
            kind = schema["type"]
            raise DataError(
                f"Schema of {kind} does not correspond to a known timestamp type format"
            )
        return None if value is None else self._of_millis(self._millis(value))

    def _millis(self, value: Any) -> int:
        if isinstance(value, date | time):
            return to_millis(value)
        if isinstance(value, str):
            if self._pattern is None:
                raise DataError(f"TimestampConverter has no format for the text {value!r}")
            return self._pattern.parse(value)
        if type(value) is not int:
            kind = class_name(value)
            raise DataError(
                f"TimestampConverter does not support class {kind} objects as timestamps"
            )
        if self._per_second <= 1000:
            return _saturated(value * (1000 // self._per_second))
        return _truncated(value, self._per_second // 1000)

    def _of_millis(self, millis: int) -> str | int | date | time | datetime:
        if self._target == "unix":
            if self._per_second < 1000:
                return _truncated(millis, 1000)
            return _saturated(millis * (self._per_second // 1000))
        if self._target == "string":
            assert self._pattern is not None
            return self._pattern.format(millis)
        at = from_millis(millis)
        if self._target == "Timestamp":
            return at
        return at.date() if self._target == "Date" else at.time()


def _is_timestamp(schema: Schema) -> bool:
    return schema.get("name") in _LOGICAL or schema["type"] in ("string", "int64")


def _saturated(number: int) -> int:
    return max(-_LARGEST - 1, min(_LARGEST, number))


def _truncated(number: int, divisor: int) -> int:
    """Return the quotient rounded to zero, as Java's."""
    return -(-number // divisor) if number < 0 else number // divisor
