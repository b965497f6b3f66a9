"""Connect's schemas, in the form in which ``JsonConverter`` writes them, and the values they have.

========================  ==================================================================
type, or logical type     value
========================  ==================================================================
int8 int16 int32 int64    int
float double              float
boolean, string, bytes    bool, str, bytes
array                     list; ``items`` is the schema of its elements
map                       dict; ``keys`` and ``values`` are schemas
struct                    dict; each of ``fields`` is a schema with its name in ``field``
Decimal                   ``decimal.Decimal``, of the scale in ``parameters``
Date, Time, Timestamp     ``date``, ``time``, and ``datetime`` with a time zone; in milliseconds
========================  ==================================================================

A value is None only where ``optional`` is true or where there is a ``default``. ``default`` has the
form of the payload that ``JsonConverter`` writes: base64 for bytes, days for a Date.
Source: ``org.apache.kafka.connect.data``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from connectctl.ops.core.errors import ConnectctlError

Schema = Mapping[str, Any]
"""A schema as ``JsonConverter`` writes it:
``{"type": "struct", "fields": […], "optional": false}``. Do not modify one: make a new one.
"""
SchemaAndValue = tuple[Schema | None, Any]
_LOGICAL = "org.apache.kafka.connect.data."
DECIMAL_NAME, DATE_NAME = f"{_LOGICAL}Decimal", f"{_LOGICAL}Date"
TIME_NAME, TIMESTAMP_NAME = f"{_LOGICAL}Time", f"{_LOGICAL}Timestamp"


class DataError(ConnectctlError):
    """``DataException``: bytes that are not in the format of their converter, or a value that does
    not match its schema.
    """

    code = "bad-record"


def _primitive(kind: str, name: str | None = None) -> Schema:
    logical = {} if name is None else {"name": name, "version": 1}
    return {"type": kind, "optional": False, **logical}


INT8, INT16 = _primitive("int8"), _primitive("int16")
INT32, INT64 = _primitive("int32"), _primitive("int64")
FLOAT32, FLOAT64 = _primitive("float"), _primitive("double")
BOOLEAN, STRING, BYTES = _primitive("boolean"), _primitive("string"), _primitive("bytes")
DATE, TIME = _primitive("int32", DATE_NAME), _primitive("int32", TIME_NAME)
TIMESTAMP = _primitive("int64", TIMESTAMP_NAME)


def decimal(scale: int) -> Schema:
    """Return the schema of decimals with ``scale`` digits after the point."""
    return {**_primitive("bytes", DECIMAL_NAME), "parameters": {"scale": str(scale)}}


def plain(field: Schema) -> Schema:
    """Return the schema of a field without its name."""
    return {name: each for name, each in field.items() if name != "field"}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items, "optional": False}


def map_of(keys: Schema, values: Schema) -> Schema:
    return {"type": "map", "keys": keys, "values": values, "optional": False}


def struct(name: str | None = None, /, **fields: Schema) -> Schema:
    """Return the schema of a struct with these fields, in their order."""
    named = {} if name is None else {"name": name}
    members = [{**schema, "field": field} for field, schema in fields.items()]
    return {"type": "struct", "fields": members, "optional": False, **named}


def optional(schema: Schema) -> Schema:
    return {**schema, "optional": True}


_OF_TYPES: tuple[tuple[type, Schema], ...] = (
    (bool, BOOLEAN),
    (int, INT64),
    (float, FLOAT64),
    (str, STRING),
    (bytes, BYTES),
    (datetime, TIMESTAMP),
    (date, DATE),
    (time, TIME),
)


def schema_of(value: Any) -> Schema | None:
    """Return the schema of a plain value without one; None for a dict, a list and None, which have
    none in Connect either.
    """
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return decimal(-exponent) if isinstance(exponent, int) else None
    return next((schema for of, schema in _OF_TYPES if isinstance(value, of)), None)
