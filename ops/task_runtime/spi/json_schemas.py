"""A payload with its schema as a plain value, as ``JsonConverter.convertToConnect`` has it.

A struct and a map are dictionaries, bytes are bytes; Connect's logical types are Python's
``Decimal``, ``date``, ``time`` and ``datetime`` in UTC. A payload of another type than its schema's
is an error here, and so is a number out of range: Java makes a 0, a null or another number of it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from connectctl.ops.task_runtime.spi.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataError,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
EXACT = Context(prec=1_000_000, traps=[Inexact, InvalidOperation])
"""Decimals keep all their digits."""
MS_OF_A_DAY = 86_400_000


def value_of(schema: Any, payload: Any) -> Any:
    """Return the value of ``payload``; without a schema, the payload itself. Raises ``DataError``."""
    if schema is None:
        return payload
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise DataError(
            f"Unknown schema type: {kind}" if kind else "Schema must contain 'type' field"
        )
    if payload is None:
        return _absent(schema, kind)
    name = schema.get("name")
    logical = _LOGICAL_READERS.get(name) if isinstance(name, str) else None
    try:
        return (logical or _READERS[kind])(schema, payload)
    except (KeyError, TypeError, ValueError, OverflowError, InvalidOperation) as e:
        found = type(payload).__name__
        raise DataError(f"Invalid type for {name or kind}: {found}", why=str(e) or None) from e


def _absent(schema: Mapping[str, Any], kind: str) -> Any:
    if schema.get("default") is not None:
        return value_of(schema, schema["default"])
    if schema.get("optional") is True:
        return None
    raise DataError(f"Invalid null value for required {kind.upper()} field")


def _expect(payload: Any, *types: type) -> Any:
    if not isinstance(payload, types) or (isinstance(payload, bool) and bool not in types):
        raise TypeError(f"expected {types[0].__name__}")
    return payload


def _integer(schema: Mapping[str, Any], payload: Any) -> int:
    number = int(_expect(payload, int, float))
    limit = 1 << (BITS[schema["type"]] - 1)
    if not -limit <= number < limit:
        raise ValueError(f"{number} is out of range")
    return number


def _real(schema: Mapping[str, Any], payload: Any) -> float:
    return float(_expect(payload, float, int))


def _single(schema: Mapping[str, Any], payload: Any) -> float:
    """Return a number with the precision of a Java float."""
    return float(struct.unpack("f", struct.pack("f", _real(schema, payload)))[0])


def _bytes(schema: Mapping[str, Any], payload: Any) -> bytes:
    try:
        return base64.b64decode(_expect(payload, str), validate=True)
    except binascii.Error as e:
        raise ValueError(f"invalid base64: {e}") from e


def _array(schema: Mapping[str, Any], payload: Any) -> list[Any]:
    items = schema["items"]
    return [value_of(items, each) for each in _expect(payload, list)]


def _map(schema: Mapping[str, Any], payload: Any) -> dict[Any, Any]:
    """Return a JSON object where keys are strings, else an array of pairs."""
    keys, values = schema["keys"], schema["values"]
    if keys["type"] == "string":
        return {key: value_of(values, each) for key, each in _expect(payload, dict).items()}
    return {value_of(keys, key): value_of(values, each) for key, each in _expect(payload, list)}


def _struct(schema: Mapping[str, Any], payload: Any) -> dict[str, Any]:
    members = _expect(payload, dict)
    return {
        each["field"]: value_of(each, members.get(each["field"]))
        for each in _expect(schema["fields"], list)
    }


def _decimal(schema: Mapping[str, Any], payload: Any) -> Decimal:
    """Bytes of an unscaled integer (``decimal.format`` BASE64), or a number (NUMERIC)."""
    if isinstance(payload, int | float) and not isinstance(payload, bool):
        return Decimal(repr(payload))
    unscaled = _bytes(schema, payload)
    if not unscaled:
        raise ValueError("no bytes")
    return Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(
        -int(schema["parameters"]["scale"]), EXACT
    )


def _time(schema: Mapping[str, Any], payload: Any) -> time:
    milliseconds = _integer(schema, _expect(payload, int))
    if not 0 <= milliseconds < MS_OF_A_DAY:
        raise ValueError(f"{milliseconds} ms are not a time of a day")
    return (EPOCH + timedelta(milliseconds=milliseconds)).time()


_Reader = Callable[[Mapping[str, Any], Any], Any]
_READERS: dict[str, _Reader] = dict.fromkeys(BITS, _integer) | {
    "float": _single,
    "double": _real,
    "boolean": lambda schema, payload: bool(_expect(payload, bool)),
    "string": lambda schema, payload: str(_expect(payload, str)),
    "bytes": _bytes,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
_LOGICAL_READERS: dict[str, _Reader] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: lambda schema, payload: (
        EPOCH + timedelta(days=_integer(schema, _expect(payload, int)))
    ).date(),
    TIME_NAME: _time,
    TIMESTAMP_NAME: lambda schema, payload: (
        EPOCH + timedelta(milliseconds=_integer(schema, _expect(payload, int)))
    ),
}
