"""JsonConverter writes values with schemas as a worker's does, and reads them as they were."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from connectctl import schema as of
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.schema import DataError, Schema
from fakes.schemavalues import everything, typed_values
from hypothesis import given

JSON = "JsonConverter"


def written(schema: Schema | None, value: Any, **more: str) -> bytes | None:
    properties = {f"value.converter.{name.replace('_', '.')}": each for name, each in more.items()}
    made = converters({"value.converter": JSON, **properties})
    return made.of_value("t", schema, value)


def payload(schema: Schema, value: Any, **more: str) -> str:
    data = written(schema, value, schemas_enable="false", **more)
    assert data is not None
    return data.decode()


@given(typed_values())
def test_what_is_written_is_read_with_its_schema(typed: tuple[Schema, Any]) -> None:
    schema, value = typed
    read = reading_converters({"value.converter": JSON}).value.read
    assert read("t", written(schema, value)) == (schema, value)


def test_a_field_of_each_type() -> None:
    schema, value = everything()
    assert reading_converters({"value.converter": JSON}).value.read(
        "t", written(schema, value)
    ) == (
        schema,
        value,
    )


def test_members_of_a_schema_have_the_order_of_a_worker() -> None:
    given = {
        "field": "a",
        "default": "AQ==",
        "parameters": {"scale": "2"},
        "doc": "why",
        "version": 1,
        "name": "org.apache.kafka.connect.data.Decimal",
        "optional": True,
        "type": "bytes",
    }
    data = written({"name": "S", "fields": [given], "type": "struct"}, {})
    assert data == (
        b'{"schema":{"type":"struct","fields":[{"type":"bytes","optional":true,"name":'
        b'"org.apache.kafka.connect.data.Decimal","version":1,"doc":"why","parameters":{"scale":"2"},'
        b'"default":"AQ==","field":"a"}],"optional":false,"name":"S"},"payload":{"a":"AQ=="}}'
    )


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (of.FLOAT32, 1.100000023841858, "1.1"),
        (of.FLOAT64, 1, "1.0"),
        (of.decimal(2), Decimal("1.5"), '"AJY="'),
        (of.decimal(2), Decimal("-1.28"), '"gA=="'),
        (of.decimal(0), Decimal(0), '"AA=="'),
        (of.DATE, date(1970, 1, 2), "1"),
        (of.TIMESTAMP, datetime(1969, 12, 31, 23, 59, 59, 999000, UTC), "-1"),
        (of.map_of(of.STRING, of.INT8), {"a": 1}, '{"a":1}'),
        (of.map_of(of.INT8, of.STRING), {1: "a"}, '[[1,"a"]]'),
        (of.optional(of.STRING), None, "null"),
        ({**of.INT32, "default": 7}, None, "7"),
        (of.array(of.BYTES), (b"a",), '["YQ=="]'),
    ],
)
def test_payloads(schema: Schema, value: Any, text: str) -> None:
    assert payload(schema, value) == text


def test_decimals_are_numbers_where_the_format_is_numeric() -> None:
    schema = of.struct(price=of.decimal(2), text=of.STRING)
    value = {"price": Decimal("123456789012345678901234567890.5"), "text": '"x'}
    assert payload(schema, value, decimal_format="NUMERIC") == (
        '{"price":123456789012345678901234567890.50,"text":"\\"x"}'
    )


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (of.INT8, 128, "int8: int: 128 is out of range"),
        (of.INT32, True, "int32: bool: expected int"),
        (of.STRING, 1, "string: int"),
        (of.BYTES, "a", "bytes: str"),
        (of.DATE, datetime(2024, 1, 1, tzinfo=UTC), "Date: datetime"),
        (of.TIMESTAMP, datetime(2024, 1, 1), "needs a time zone"),
        (of.decimal(1), Decimal("1.25"), "Decimal: Decimal"),
        (of.STRING, None, "required"),
        (of.struct(a=of.INT8), {"b": 1}, "b is not a field"),
        (of.struct(a=of.struct(b=of.INT8)), {"a": {"b": "x"}}, "a: b: Invalid type for int8: str"),
        (of.struct(a=of.INT8), {}, "a: null for a field that is required"),
        ({"type": "int128"}, 1, "Unknown schema type: int128"),
        ({"type": "array"}, [1], "array"),
    ],
)
def test_a_value_that_its_schema_does_not_allow_is_named(
    schema: Schema, value: Any, why: str
) -> None:
    with pytest.raises(DataError, match=why):
        written(schema, value)


def test_a_plain_value_has_a_schema_and_a_dict_without_one_has_none() -> None:
    assert written(None, "a") == b'{"schema":{"type":"string","optional":false},"payload":"a"}'
    assert written(None, {"a": 1}) == b'{"schema":null,"payload":{"a":1}}'
    assert json.loads(written(None, Decimal("1.50")) or b"")["schema"] == of.decimal(2)
    assert written(None, None) is None


def test_the_schema_of_each_record_is_its_own() -> None:
    write = converters({"value.converter": JSON}).of_value
    kinds = [
        json.loads(write("t", s, 1) or b"")["schema"]["type"] for s in (of.INT8, of.INT16, None)
    ]
    assert kinds == ["int8", "int16", "int64"]
