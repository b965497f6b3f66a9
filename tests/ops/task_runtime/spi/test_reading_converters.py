"""Converters read what Connect's own read, and refuse what those refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.schema import DataError, SchemaAndValue
from hypothesis import given
from hypothesis import strategies as st

JSON = "org.apache.kafka.connect.json.JsonConverter"
DATA = "org.apache.kafka.connect.data."


def of_value(kind: str, **more: str) -> Callable[[bytes | None], SchemaAndValue]:
    properties = {
        f"value.converter.{name.replace('_', '.')}": value for name, value in more.items()
    }
    return partial(reading_converters({"value.converter": kind, **properties}).value.read, "t")


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("StringConverter", b"gr\xc3\xb6\xc3\x9fe", "größe"),
        ("StringConverter", b"\xff", "\ufffd"),
        ("StringConverter", b"", ""),
        ("StringConverter", None, None),
        ("ByteArrayConverter", b"\xff\x00", b"\xff\x00"),
        ("ByteArrayConverter", None, None),
        ("SimpleHeaderConverter", b"7", 7),
        ("SimpleHeaderConverter", b"true", True),
        ("SimpleHeaderConverter", b"a: b", "a: b"),
        ("SimpleHeaderConverter", b"NaN", "NaN"),
        ("SimpleHeaderConverter", b"", ""),
        ("SimpleHeaderConverter", b'"quoted"', '"quoted"'),
        ("SimpleHeaderConverter", b'[1,"a"]', [1, "a"]),
        ("SimpleHeaderConverter", None, None),
    ],
)
def test_what_is_no_json(kind: str, data: bytes | None, value: Any) -> None:
    assert of_value(kind)(data)[1] == value


def test_text_in_another_encoding_is_read_and_written() -> None:
    assert of_value("StringConverter", converter_encoding="ISO-8859-1")(b"\xe9")[1] == "é"
    name = "value.converter"
    written = converters({name: "StringConverter", f"{name}.converter.encoding": "ISO-8859-1"})
    assert [written.of_value("t", None, value) for value in ("é", 1.5, True, b"\xc3", None)] == [
        b"\xe9", b"1.5", b"true", b"\xc3", None,
    ]  # fmt: skip
    assert (written.of_key("t", None, "é"), written.values("t", None, ["é", None])) == (
        b"\xc3\xa9",
        [b"\xe9", None],
    )
    with pytest.raises(ConnectctlError, match="cannot write '€' in iso8859-1"):
        written.of_value("t", None, "10 €")
    with pytest.raises(BadInput, match="Unknown encoding x"):
        of_value("StringConverter", converter_encoding="x")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, 2.5, null, "x"]}', {"a": [1, 2.5, None, "x"]}),
        (b"1 and more", 1),
        (b'"x"y', "x"),
        (b"\xef\xbb\xbf1", 1),
        (b"null", None),
        (b"", None),
        (b" ", None),
        (None, None),
        (b'{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_json_without_schemas(data: bytes | None, value: Any) -> None:
    assert of_value(JSON, schemas_enable="false")(data) == (None, value)


@pytest.mark.parametrize(
    "data", [b"{", b"NaN", b"0x1", b"5.", b"01", b"'a'", b"\xff", b"[" * 100_000]
)
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="invalid JSON"):
        of_value(JSON, schemas_enable="false")(data)


@pytest.mark.parametrize(
    "data", [b"1", b"{}", b'{"schema":null,"payload":1,"more":2}', b'{"payload":1}', b"[1,2]"]
)
def test_json_with_schemas_is_an_envelope_and_nothing_else(data: bytes) -> None:
    with pytest.raises(
        DataError, match=r'requires "schema" and "payload" fields.*Set schemas.enable=false'
    ):
        of_value(JSON)(data)


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "optional": False}


@pytest.mark.parametrize(
    ("schema", "payload", "value"),
    [
        (None, {"a": 1}, {"a": 1}),
        ({"type": "int32"}, 5, 5),
        ({"type": "double"}, 5, 5.0),
        ({"type": "float"}, 1.1, 1.100000023841858),
        ({"type": "bytes"}, "/w==", b"\xff"),
        ({"type": "string", "optional": True}, None, None),
        ({"type": "string", "default": "x"}, None, "x"),
        ({"type": "array", "items": {"type": "bytes"}}, ["/w=="], [b"\xff"]),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "bytes"}},
            {"a": "/w=="},
            {"a": b"\xff"},
        ),
        (
            {"type": "map", "keys": {"type": "int8"}, "values": {"type": "boolean"}},
            [[1, True]],
            {1: True},
        ),
        (
            struct(
                {"field": "a", "type": "int8"}, {"field": "b", "type": "int8", "optional": True}
            ),
            {"a": 1},
            {"a": 1, "b": None},
        ),
        (
            {"type": "bytes", "name": f"{DATA}Decimal", "parameters": {"scale": "2"}},
            "AN4=",
            Decimal("2.22"),
        ),
        (
            {"type": "bytes", "name": f"{DATA}Decimal", "parameters": {"scale": "2"}},
            2.22,
            Decimal("2.22"),
        ),
        ({"type": "int32", "name": f"{DATA}Date"}, 1, date(1970, 1, 2)),
        ({"type": "int32", "name": f"{DATA}Time"}, 61_001, time(0, 1, 1, 1000)),
        (
            {"type": "int64", "name": f"{DATA}Timestamp"},
            1,
            datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
        ),
        ({"type": "string", "name": "my.own"}, "x", "x"),
    ],
)
def test_json_with_schemas(schema: Any, payload: Any, value: Any) -> None:
    data = json.dumps({"schema": schema, "payload": payload}).encode()
    kept, found = of_value(JSON)(data)
    assert (found, type(found), kept) == (value, type(value), schema)


def test_a_tombstone_has_neither_schema_nor_value() -> None:
    assert of_value(JSON)(None) == (None, None)


@pytest.mark.parametrize(
    ("schema", "payload", "message"),
    [
        ({"type": "string"}, None, "Invalid null value for required STRING field"),
        (struct({"field": "a", "type": "int8"}), {}, "Invalid null value for required INT8 field"),
        (struct({"field": "a", "type": "int8"}), 1, "Invalid type for struct: int"),
        ({"type": "other"}, 1, "Unknown schema type: other"),
        ({}, 1, "Schema must contain 'type' field"),
        ([1], 1, "Schema must contain 'type' field"),
        ({"type": "int8"}, 128, "out of range"),
        ({"type": "int8"}, "1", "Invalid type for int8: str"),
        ({"type": "int8"}, True, "Invalid type for int8: bool"),
        ({"type": "boolean"}, 1, "Invalid type for boolean: int"),
        ({"type": "bytes"}, "?", "invalid base64"),
        ({"type": "array"}, [1], "Invalid type for array: list"),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}},
            [1],
            "Invalid type for map",
        ),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}},
            [["a", 1]],
            "Invalid type for map",
        ),
        (
            {"type": "map", "keys": {"type": "int8"}, "values": {"type": "int8"}},
            {"1": 1},
            "Invalid type for map",
        ),
        ({"type": "struct", "fields": {}}, {}, "Invalid type for struct"),
        ({"type": "int8", "optional": "true"}, None, "Invalid null value"),
        ({"type": "bytes", "name": f"{DATA}Decimal", "parameters": {"scale": "2"}}, "", "no bytes"),
        ({"type": "int32", "name": f"{DATA}Time"}, 86_400_000, "not a time of a day"),
        ({"type": "int64", "name": f"{DATA}Timestamp"}, 1.5, "Invalid type for .*Timestamp"),
        ({"type": "bytes", "name": f"{DATA}Decimal"}, "AN4=", "Invalid type for .*Decimal"),
        ({"type": "int64", "name": f"{DATA}Timestamp"}, 1 << 62, "Invalid type for .*Timestamp"),
    ],
)
def test_a_payload_that_is_not_what_its_schema_says(
    schema: Any, payload: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        of_value(JSON)(json.dumps({"schema": schema, "payload": payload}).encode())


def test_strings_are_read_and_headers_as_simple_ones_where_no_converter_is_named() -> None:
    found = reading_converters({})
    names = [each.name.rpartition(".")[2] for each in (found.key, found.value, found.header)]
    assert names == ["StringConverter", "StringConverter", "SimpleHeaderConverter"]
    with pytest.raises(
        BadInput,
        match=r"Unsupported converter Avro \(key.converter\). Use one of AvroConverter, ByteArrayConverter",
    ):
        reading_converters({"key.converter": "Avro"})


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.text(st.characters(codec="utf-8"))
)


@given(
    st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
    st.booleans(),
)
def test_what_a_source_writes_a_sink_reads(value: Any, with_schemas: bool) -> None:
    configs = {"value.converter": JSON, "value.converter.schemas.enable": str(with_schemas).lower()}
    written = converters(configs).of_value("t", None, value)
    assert reading_converters(configs).value.read("t", written)[1] == value


SCHEMAS = ('{"type":"int64"}', '{"type":"string"}', "null", '{"type":"double","optional":true}')
PAYLOADS = (
    "1",
    '"x"',
    "null",
    '{"a":1}',
    '1,"more":2',
    '1,"payload":2',
    "1} and more",
    "1e400",
    "NaN",
    "[",
    "1.5 ",
    "\xe9",
)


@given(
    st.lists(
        st.tuples(st.sampled_from(SCHEMAS), st.sampled_from(PAYLOADS), st.booleans()), max_size=8
    )
)
def test_what_the_record_before_was_changes_nothing(records: list[tuple[str, str, bool]]) -> None:
    def outcome(read: Callable[[bytes], Any], data: bytes) -> Any:
        try:
            return read(data)
        except DataError as e:
            return str(e)

    read = of_value(JSON)
    for schema, payload, as_connect in records:
        space = "" if as_connect else " "
        data = f'{{"schema":{space}{schema},"payload":{payload}}}'.encode()
        assert outcome(read, data) == outcome(of_value(JSON), data)
