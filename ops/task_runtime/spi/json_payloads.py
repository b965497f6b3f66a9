"""A value with its schema as a payload of JSON, as ``JsonConverter.convertToJson`` writes it.

The opposite of ``json_schemas.py``. A value that its schema does not allow is an error, as of
``ConnectSchema.validateValue``; a decimal of fewer digits after the point than its schema's is none.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from connectctl.ops.task_runtime.spi.json_schemas import BITS, EPOCH, EXACT
from connectctl.ops.task_runtime.spi.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataError,
    Schema,
)

_MILLISECOND = timedelta(milliseconds=1)
_ORDER = ("name", "version", "doc", "parameters", "default", "field")


def schema_json(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` with its members in the order in which ``JsonConverter`` writes them. Raises
    ``DataError`` for one that is none.
    """
    kind = schema.get("type")
    found: dict[str, Any] = {"type": kind}
    try:
        if kind == "struct":
            found["fields"] = [schema_json(each) for each in schema["fields"]]
        elif kind == "array":
            found["items"] = schema_json(schema["items"])
        elif kind == "map":
            found |= {name: schema_json(schema[name]) for name in ("keys", "values")}
        elif kind not in _WRITERS:
            raise DataError(f"Unknown schema type: {kind}")
    except KeyError as e:
        raise DataError(f"The schema of type {kind} has no {e}") from e
    found["optional"] = bool(schema.get("optional"))
    return found | {name: schema[name] for name in _ORDER if schema.get(name) is not None}


def payload_of(schema: Schema, value: Any) -> Any:
    """Return the payload of ``value``. Raises ``DataError`` that names the field of a value that does
    not match.
    """
    return payload_with(payload_of, schema, value)


def payload_with(write: Payload, schema: Schema, value: Any) -> Any:
    """Return the payload of ``value``; ``write`` is used for elements, values and fields."""
    if value is None:
        if schema.get("default") is not None:
            return schema["default"]
        if schema.get("optional"):
            return None
        raise DataError("null for a field that is required and has no default value")
    name = schema.get("name")
    kind = str(schema.get("type"))
    writer = _LOGICAL_WRITERS.get(str(name)) or _WRITERS.get(kind)
    if writer is None:
        raise DataError(f"Unknown schema type: {kind}")
    try:
        return writer(write, schema, value)
    except (KeyError, TypeError, ValueError, OverflowError, ArithmeticError) as e:
        found = type(value).__name__
        raise DataError(f"Invalid type for {name or kind}: {found}", why=str(e) or None) from e


Payload = Callable[[Schema, Any], Any]
_Writer = Callable[[Payload, Schema, Any], Any]


def _of(*types: type) -> _Writer:
    def write(write: Payload, schema: Schema, value: Any) -> Any:
        return expect(value, *types)

    return write


def expect(value: Any, *types: type) -> Any:
    """Return ``value`` of one of these types; a bool is not an int, and a datetime no date."""
    if not isinstance(value, types) or type(value) in {bool, datetime} - set(types):
        raise TypeError(f"expected {types[0].__name__}")
    return value


def _integer(write: Payload, schema: Schema, value: Any) -> int:
    limit = 1 << (BITS[schema["type"]] - 1)
    if not -limit <= expect(value, int) < limit:
        raise ValueError(f"{value} is out of range")
    return int(value)


def _single(write: Payload, schema: Schema, value: Any) -> float:
    """Return the number with the fewest digits that is the same Java float."""
    packed = struct.pack("f", expect(value, float, int))
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next((float(t) for t in texts if struct.pack("f", float(t)) == packed), float(value))


def _bytes(write: Payload, schema: Schema, value: Any) -> str:
    return base64.b64encode(expect(value, bytes, bytearray)).decode()


def _array(write: Payload, schema: Schema, value: Any) -> list[Any]:
    return [write(schema["items"], each) for each in expect(value, list, tuple)]


def _map(write: Payload, schema: Schema, value: Any) -> Any:
    keys, values = schema["keys"], schema["values"]
    pairs = [
        [write(keys, key), write(values, each)] for key, each in expect(value, Mapping).items()
    ]
    return dict(pairs) if keys["type"] == "string" and not keys.get("optional") else pairs


def _struct(write: Payload, schema: Schema, value: Any) -> dict[str, Any]:
    return {name: write_field(write, field, v) for name, field, v in members_of(schema, value)}


def members_of(schema: Schema, value: Any) -> Iterable[tuple[str, Schema, Any]]:
    """Return the fields of a struct with their schemas and values, None for a missing one. Raises
    ``ValueError`` for a member that is not a field.
    """
    names = {field["field"] for field in schema["fields"]}
    if unknown := sorted(set(expect(value, Mapping)) - names, key=str):
        raise ValueError(f"{unknown[0]} is not a field of the schema")
    return [(field["field"], field, value.get(field["field"])) for field in schema["fields"]]


def write_field(write: Payload, schema: Schema, value: Any) -> Any:
    """Return the payload of a field. Raises ``DataError`` that names it."""
    try:
        return write(schema, value)
    except DataError as e:
        raise DataError(f"{schema['field']}: {e.what}", why=e.why) from e


def unscaled(schema: Schema, value: Any) -> int:
    """Return the digits of a decimal as an integer. Raises ``Inexact`` for more than the
    scale allows.
    """
    scale = int(schema["parameters"]["scale"])
    return int(expect(value, Decimal).scaleb(scale, EXACT).to_integral_exact(None, EXACT))


def _decimal(write: Payload, schema: Schema, value: Any) -> str:
    number = unscaled(schema, value)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def _date(write: Payload, schema: Schema, value: Any) -> int:
    return int(expect(value, date).toordinal()) - EPOCH.toordinal()


def _time(write: Payload, schema: Schema, value: Any) -> int:
    of_day = datetime.combine(EPOCH, expect(value, time).replace(tzinfo=UTC))
    return (of_day - EPOCH) // _MILLISECOND


def _timestamp(write: Payload, schema: Schema, value: Any) -> int:
    if expect(value, datetime).tzinfo is None:
        raise ValueError("a datetime needs a time zone")
    return int((value - EPOCH) // _MILLISECOND)


_WRITERS: dict[str, _Writer] = dict.fromkeys(BITS, _integer) | {
    "float": _single,
    "double": lambda write, schema, value: float(expect(value, float, int)),
    "boolean": _of(bool),
    "string": _of(str),
    "bytes": _bytes,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
_LOGICAL_WRITERS: dict[str, _Writer] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}
