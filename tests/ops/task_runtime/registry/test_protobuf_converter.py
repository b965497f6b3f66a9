"""ProtobufConverter on a registry in memory: texts, bytes and values as Confluent's has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from connectctl import schema as of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.connectors.expression.records import RowReader
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.schema import DataError, Schema
from connectctl.transform import Record
from fakes.schemaregistry import FakeRegistry, schema_registry
from fakes.schemavalues import everything, flat_values
from hypothesis import HealthCheck, given, settings

TAG = "io.confluent.connect.protobuf.Tag"
ORDERS = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "units.proto";

message Other { message Inner { message Deep { string s = 1; } } map<string, int32> m = 2; }
message Order {
  enum Kind { NEW = 0; OLD = 5; }
  Kind kind = 1;
  map<string, Unit> units = 2;
  oneof paid { string by_card = 3; int64 in_cash = 4; google.protobuf.StringValue other = 9; }
  google.protobuf.Timestamp at = 5;
  google.protobuf.Int64Value limit = 6;
  uint64 count = 7;
  optional bool sent = 8;
}
"""
UNITS = 'syntax = "proto3"; package shop; message Unit { double of = 1; repeated Unit2 more = 2; } '
UNITS += "message Unit2 { sint32 n = 1; }"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with schema_registry() as made:
        yield made


def properties(registry: FakeRegistry, **more: str) -> dict[str, str]:
    own = {"schema.registry.url": registry.url}
    own |= {name.replace("_", "."): value for name, value in more.items()}
    kind = {"value.converter": "io.confluent.connect.protobuf.ProtobufConverter"}
    return kind | {f"value.converter.{n}": v for n, v in own.items()}


def written(configs: dict[str, str], schema: Schema | None, value: Any) -> bytes:
    found = converters(configs).of_value("t", schema, value)
    assert found is not None
    return found


def read(configs: dict[str, str], data: bytes | None) -> Any:
    return reading_converters(configs).value.read("t", data)


def test_values_of_all_types_are_read_as_they_were_written(registry: FakeRegistry) -> None:
    configs = properties(registry, optional_for_nullables="true")
    of_value, reads = converters(configs).of_value, reading_converters(configs).value.read

    @settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
    @given(flat_values())
    def drawn(typed: tuple[Schema, Any]) -> None:
        assert reads("t", of_value("t", *typed))[1] == typed[1]

    drawn()
    for options in ({"optional_for_nullables": "true"}, {"wrapper_for_nullables": "true"}):
        configs = properties(registry, **options)
        assert read(configs, written(configs, *everything()))[1] == everything()[1]
    for schema, value in ((of.STRING, "x"), (of.INT64, -1), (of.BYTES, b"a"), (of.BOOLEAN, True)):
        assert read(configs, written(configs, schema, value)) == (schema, value)
    assert written(configs, of.STRING, "x")[5:] == b"\x02\x0e\n\x01x"
    assert (converters(configs).of_value("t", of.STRING, None), read(configs, None)) == (
        None,
        (None, None),
    )


def test_text_and_bytes_are_those_of_confluents_converter(registry: FakeRegistry) -> None:
    price = of.decimal(2)
    line = of.struct("shop.Line", sku=of.STRING, n=of.INT16)
    order = of.struct(
        "shop.Order", id=of.STRING, price=price, lines=of.array(line),
        by=of.map_of(of.STRING, of.INT32), note=of.optional(of.STRING), line=of.optional(line),
    )  # fmt: skip
    value = {"id": "a", "price": Decimal("-12.5"), "lines": [{"sku": "s", "n": 3}], "by": {"k": 1}}
    data = written(properties(registry), order, {**value, "note": None, "line": None})
    assert (
        registry.schemas[0]["schema"]
        == """\
syntax = "proto3";
package shop;

import "confluent/type/decimal.proto";

message Order {
  string id = 1;
  confluent.type.Decimal price = 2 [(confluent.field_meta) = {
    params: [
      {
        value: "2",
        key: "scale"
      }
    ]
  }];
  repeated Line lines = 3;
  repeated ConnectDefault1Entry by = 4;
  string note = 5;
  Line line = 6;

  message Line {
    string sku = 1;
    int32 n = 2 [(confluent.field_meta) = {
      params: [
        {
          key: "connect.type",
          value: "int16"
        }
      ]
    }];
  }
  message ConnectDefault1Entry {
    string key = 1;
    int32 value = 2;
  }
}
"""
    )
    assert data[5:] == b"\x00\n\x01a\x12\x08\n\x02\xfb\x1e\x10\x04\x18\x02" + (
        b'\x1a\x05\n\x01s\x10\x03"\x05\n\x01k\x10\x01'
    )
    schema, found = read(properties(registry), data)
    assert found == value | {"note": "", "line": None}
    assert schema["name"] == "Order"
    assert schema["fields"][0] == {
        "type": "string", "optional": True, "parameters": {TAG: "1"}, "field": "id"
    }  # fmt: skip
    assert schema["fields"][3]["name"] == "connect_default1"


def test_a_schema_of_others_is_read_with_what_it_imports(registry: FakeRegistry) -> None:
    registry.answer("POST", "/subjects/units/versions", {"schema": UNITS, "schemaType": "PROTOBUF"})
    registry.answer(
        "POST", "/subjects/t-value/versions", {"schema": ORDERS, "schemaType": "PROTOBUF"}
    )
    reference = {"name": "units.proto", "subject": "units", "version": 1}
    registry.schemas[1]["references"] = [reference]
    configs = properties(registry)
    data = b"\x08\x05\x12\x0e\n\x01a\x12\t\t\x00\x00\x00\x00\x00\x00\xf8?\x20\x00"
    data += b"2\x008\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    schema, value = read(configs, b"\x00\x00\x00\x00\x02\x02\x02" + data)
    assert value == {
        "paid_0": {"by_card": None, "in_cash": 0, "other": None}, "kind": "OLD",
        "units": {"a": {"of": 1.5, "more": []}}, "at": None, "limit": 0, "count": -1, "sent": None,
    }  # fmt: skip
    assert schema["fields"][0]["name"] == "io.confluent.connect.protobuf.Union.paid"
    kind = schema["fields"][1]["parameters"]
    assert kind["io.confluent.connect.protobuf.Enum.OLD"] == "5"
    deep = read(configs, b"\x00\x00\x00\x00\x02\x06\x00\x00\x00\n\x01x")
    assert (deep[0]["name"], deep[1]) == ("Deep", {"s": "x"})
    assert [path for _, path in registry.requests if "units" in path]
    again = registry.answer("GET", "/subjects/t-value/versions/latest", {})[1]["schema"]
    assert again == ORDERS


def test_what_is_read_is_written_again_with_its_tags(registry: FakeRegistry) -> None:
    text = ORDERS.replace('import "units.proto";\n', "").replace("map<string, Unit> units = 2;", "")
    registry.answer(
        "POST", "/subjects/t-value/versions", {"schema": text, "schemaType": "PROTOBUF"}
    )
    configs = properties(registry, enhanced_protobuf_schema_support="true")
    data = b"\x00\x00\x00\x00\x01\x02\x02\x08\x05 \x07*\x0b\x08\xc0\xe3\x81\xaf\x06\x10\xc0\x96\xb1\x02"
    schema, value = read(configs, data)
    assert schema["name"] == "shop.Order"
    assert value["at"] == datetime(2024, 2, 29, 12, 0, 0, 5000, UTC)
    again = written(configs, schema, value)
    assert again[5:] == b"\x00" + data[7:]
    unset = {"limit": 0, "sent": False}  # null is not written
    assert read(configs, again) == (schema, value | unset)


def test_the_newest_schema_has_its_own_tags(registry: FakeRegistry) -> None:
    text = 'syntax = "proto3"; message O { string a = 4; int32 b = 2; }'
    registry.answer(
        "POST", "/subjects/t-value/versions", {"schema": text, "schemaType": "PROTOBUF"}
    )
    data = written(properties(registry, use_latest_version="true"), None, {"a": "x"})
    assert data == b'\x00\x00\x00\x00\x01\x00"\x01x'


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (of.struct("A", a=of.array(of.array(of.INT32))), {"a": []}, "a: Protobuf has no list of"),
        (of.struct("A", a=of.map_of(of.STRING, of.array(of.INT32))), {"a": {}}, "a: .*no map of"),
        (of.struct("A", a=of.array(of.optional(of.STRING))), {"a": [None]}, "a: null in a list"),
        (of.struct("A", a=of.INT32), {"a": 1 << 40}, "a: Invalid type for int32"),
        (of.struct("A", a=of.TIME), {"a": "now"}, "a: Invalid type for .*Time"),
        (of.struct("A", a=of.array(of.INT32)), {"a": "text"}, "a: Invalid type for array"),
        (of.struct("A", a=of.INT32), {"a": None}, "a: null for a field that is required"),
        (of.array(of.INT32), [1], "outside a struct"),
        (of.DATE, date(2024, 1, 1), "outside a struct"),
    ],
)
def test_what_protobuf_does_not_have_is_named(
    registry: FakeRegistry, schema: Schema, value: Any, why: str
) -> None:
    with pytest.raises(DataError, match=why):
        written(properties(registry), schema, value)


@pytest.mark.parametrize(
    ("text", "data", "why"),
    [
        ("message A { int3 a = 1; }", b"\x00", '"int3" is not defined'),
        ('import "absent.proto";', b"\x00", r"absent.proto: File not found"),
        ("message A {}", b"\x02\x06", r"no message of the indexes \[3\]"),
        ("message A {}", b"\x02", "does not match the schema 1"),
        ("message A { string a = 1; }", b"\x00\n\x05x", "does not match the schema 1"),
        ("message A { A a = 1; }", b"\x00", "A contains itself"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    registry: FakeRegistry, text: str, data: bytes, why: str
) -> None:
    body = {"schema": f'syntax = "proto3"; {text}', "schemaType": "PROTOBUF"}
    registry.answer("POST", "/subjects/t-value/versions", body)
    with pytest.raises(DataError, match=why) as error:
        read(properties(registry), b"\x00\x00\x00\x00\x01" + data)
    assert "\n" not in str(error.value)


def test_a_reference_writes_no_file_outside(registry: FakeRegistry) -> None:
    body = {"schema": 'syntax = "proto3"; message A {}', "schemaType": "PROTOBUF"}
    registry.answer("POST", "/subjects/t-value/versions", body)
    outside = {"name": "../../outside.proto", "subject": "t-value", "version": 1}
    registry.schemas.append({**body, "references": [outside]})
    with pytest.raises(DataError, match="leads out of its directory"):
        read(properties(registry), b"\x00\x00\x00\x00\x02\x00")


def test_an_option_that_is_not_supported_is_named(registry: FakeRegistry) -> None:
    with pytest.raises(BadInput, match=r"Unsupported value.converter.int.for.enums=true"):
        written(properties(registry, int_for_enums="true"), of.STRING, "x")


def test_times_are_those_of_a_day(registry: FakeRegistry) -> None:
    clock = of.struct("Clock", at=of.TIME, day=of.DATE)
    value = {"at": time(23, 59, 59, 999000), "day": date(1969, 12, 31)}
    configs = properties(registry)
    assert read(configs, written(configs, clock, value))[1] == value


def test_expressions_of_run_have_a_column_of_each_field(registry: FakeRegistry) -> None:
    order = of.struct("shop.Order", id=of.STRING, price=of.decimal(2), n=of.INT64)
    configs = properties(registry)
    data = written(configs, order, {"id": "a", "price": Decimal("9.50"), "n": 7})
    (row,) = RowReader(configs).rows([Record(data, topic="t")], ["id", "price", "value.n"])
    assert row == {"id": "a", "price": 9.5, "value.n": 7}
