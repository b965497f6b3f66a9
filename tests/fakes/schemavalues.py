"""Schemas of all of Connect's types, with values that they allow, for Hypothesis."""

from __future__ import annotations

import struct as binary
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from connectctl import schema as of
from connectctl.schema import Schema
from hypothesis import strategies as st

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def _single(number: float) -> float:
    return float(binary.unpack("f", binary.pack("f", number))[0])


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


_PRIMITIVE: list[tuple[Schema, st.SearchStrategy[Any]]] = [
    (of.INT8, _integers(8)),
    (of.INT16, _integers(16)),
    (of.INT32, _integers(32)),
    (of.INT64, _integers(64)),
    (of.FLOAT32, st.floats(-(2.0**100), 2.0**100, width=32).map(_single)),
    (of.FLOAT64, st.floats(-1e300, 1e300)),
    (of.BOOLEAN, st.booleans()),
    (of.STRING, _TEXT),
    (of.BYTES, st.binary(max_size=8)),
    (of.decimal(3), _integers(60).map(lambda n: Decimal(n).scaleb(-3))),
    (of.DATE, st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    (
        of.TIME,
        st.integers(0, 86_399_999).map(lambda n: (_EPOCH + timedelta(milliseconds=n)).time()),
    ),
    (
        of.TIMESTAMP,
        st.integers(-(10**12), 4 * 10**12).map(lambda n: _EPOCH + timedelta(milliseconds=n)),
    ),
]
Typed = tuple[Schema, st.SearchStrategy[Any]]


def _optional(typed: Typed) -> Typed:
    return of.optional(typed[0]), st.none() | typed[1]


def _array(typed: Typed) -> Typed:
    schema, values = typed
    if schema["type"] == "double":
        # Avro 1.12.0, the one of workers' converters, rounds doubles in arrays (AVRO-4108).
        values = values.map(lambda number: number if number is None else _rounded(number))
    return of.array(schema), st.lists(values, max_size=3)


def _rounded(number: float) -> float:
    return _single(max(-(2.0**100), min(2.0**100, number)))


def _map(typed: Typed) -> Typed:
    return of.map_of(of.STRING, typed[0]), st.dictionaries(_TEXT, typed[1], max_size=3)


@st.composite
def _structs(draw: st.DrawFn, types: st.SearchStrategy[Typed]) -> Typed:
    fields = draw(st.dictionaries(_NAMES, types, min_size=1, max_size=4))
    # Apicurio's converter keeps what it knows of a record by its name.
    name = f"shop.Drawn{next(_NUMBERS)}"
    schema = of.struct(name, **{field: each for field, (each, _) in fields.items()})
    return schema, st.fixed_dictionaries({field: values for field, (_, values) in fields.items()})


_NUMBERS = count()
_TYPES = st.recursive(
    st.sampled_from(_PRIMITIVE),
    lambda inner: st.one_of(
        inner.map(_optional), inner.map(_array), inner.map(_map), _structs(inner)
    ),
    max_leaves=6,
)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Schema, Any]:
    """A struct's schema, and a value of it."""
    schema, values = draw(_structs(_TYPES))
    return schema, draw(values)


_PLAIN = st.sampled_from(_PRIMITIVE)
_FLAT = st.recursive(
    st.one_of(_PLAIN, _PLAIN.map(_optional), _PLAIN.map(_array), _PLAIN.map(_map)),
    lambda inner: _structs(inner).flatmap(
        lambda made: st.sampled_from([made, _optional(made), _array(made), _map(made)])
    ),
    max_leaves=4,
)


@st.composite
def flat_values(draw: st.DrawFn) -> tuple[Schema, Any]:
    """As ``typed_values``, without lists and maps in lists and maps, and without null in them."""
    schema, values = draw(_structs(_FLAT))
    return schema, draw(values)


_ALL: Schema = of.struct(
    "shop.All",
    i8=of.INT8,
    i16=of.INT16,
    i32=of.INT32,
    i64=of.INT64,
    f32=of.FLOAT32,
    f64=of.FLOAT64,
    yes=of.BOOLEAN,
    text=of.STRING,
    raw=of.BYTES,
    price=of.decimal(2),
    day=of.DATE,
    at=of.TIME,
    when=of.TIMESTAMP,
    tags=of.array(of.STRING),
    counts=of.map_of(of.STRING, of.INT32),
    inner=of.optional(of.struct("shop.Inner", x=of.optional(of.decimal(4)))),
    note=of.optional(of.STRING),
    lines=of.array(of.struct("shop.Line", sku=of.STRING, n=of.INT16)),
)


def everything() -> tuple[Schema, dict[str, Any]]:
    """A struct with a field of each type, and a value."""
    return _ALL, {
        "i8": -128,
        "i16": 32767,
        "i32": -5,
        "i64": 2**62,
        "f32": _single(1.1),
        "f64": 1e-9,
        "yes": True,
        "text": "größe €",
        "raw": b"\x00\xff",
        "price": Decimal("-12.50"),
        "day": date(1969, 12, 31),
        "at": time(23, 59, 59, 999000),
        "when": datetime(2024, 2, 29, 12, 0, 0, 5000, UTC),
        "tags": ["a", ""],
        "counts": {"a": 1},
        "inner": {"x": Decimal("0.0001")},
        "note": None,
        "lines": [{"sku": "s", "n": 3}],
    }
