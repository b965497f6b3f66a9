"""Columns of any type of Spark as keys and values, by the converters of workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.connectors.dataframe import DataFrameSource, columns_of
from connectctl.ops.task_runtime.dataframe.api import Target
from connectctl.ops.task_runtime.dataframe.column_conversion import ColumnConverter, with_schemas
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.validate import check_columns
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from fakes.schemaregistry import FakeRegistry, schema_registry
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_type

KINDS = ("AvroConverter", "JsonSchemaConverter", "JsonConverter")
ORDER = spark.StructType(
    [
        spark.StructField("tiny", spark.ByteType(), nullable=False),
        spark.StructField("small", spark.ShortType()),
        spark.StructField("number", spark.IntegerType()),
        spark.StructField("id", spark.LongType(), nullable=False),
        spark.StructField("single", spark.FloatType()),
        spark.StructField("ratio", spark.DoubleType()),
        spark.StructField("paid", spark.BooleanType()),
        spark.StructField("note", spark.StringType()),
        spark.StructField("raw", spark.BinaryType()),
        spark.StructField("price", spark.DecimalType(10, 2)),
        spark.StructField("day", spark.DateType()),
        spark.StructField("at", spark.TimestampType()),
        spark.StructField("tags", spark.ArrayType(spark.StringType(), containsNull=False)),
        spark.StructField("counts", spark.MapType(spark.StringType(), spark.IntegerType())),
        spark.StructField("by", spark.MapType(spark.IntegerType(), spark.StringType())),
        spark.StructField("also", spark.MapType(spark.IntegerType(), spark.StringType())),
        spark.StructField(
            "lines",
            spark.ArrayType(
                spark.StructType(
                    [
                        spark.StructField("sku", spark.StringType()),
                        spark.StructField(
                            "of", spark.MapType(spark.StringType(), spark.LongType())
                        ),
                    ]
                )
            ),
        ),
        spark.StructField("to", spark.StructType([spark.StructField("city", spark.StringType())])),
    ]
)
FULL = {
    "tiny": 7,
    "small": -300,
    "number": 70000,
    "id": 1 << 40,
    "single": 0.5,
    "ratio": 0.1,
    "paid": True,
    "note": "é",
    "raw": b"\x00\xff",
    "price": Decimal("9.50"),
    "day": date(2024, 2, 29),
    "at": datetime(2024, 2, 29, 12, 0, 0, 123000, UTC),
    "tags": ["a", "b"],
    "counts": {"x": 1, "y": None},
    "by": {1: "one"},
    "also": {2: None},
    "lines": [{"sku": "s", "of": {"z": 3}}, {"sku": None, "of": None}, None],
    "to": {"city": "Łódź"},
}
EMPTY: dict[str, Any] = {**dict.fromkeys(FULL), "tiny": 0, "id": 1}


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with schema_registry() as made:
        yield made


def columns(kind: str, registry: FakeRegistry | None = None, **more: str) -> FrameColumns:
    own = {name.replace("_", "."): value for name, value in more.items()}
    if registry is not None:
        own |= {"schema.registry.url": registry.url, "max.retries": "0"}
    return Target(
        {},
        "g",
        "c",
        "t",
        "o",
        "shop",
        "n",
        value="order",
        value_converter=kind,
        converter_configs={f"value.converter.{name}": value for name, value in own.items()},
    ).columns


def arrow(kind: spark.DataType, *values: Any) -> pa.Array:
    return pa.array(values, to_arrow_type(kind))


def written(made: FrameColumns, kind: spark.DataType, *values: Any) -> list[bytes | None]:
    ready = with_schemas(made, [spark.StructField("order", kind)])
    found = ColumnConverter("t", ready).bytes_of("value", arrow(kind, *values), "row {}".format)
    return list(found.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_struct_of_all_types_is_read_back_as_a_worker_reads_it(
    kind: str, registry: FakeRegistry
) -> None:
    made = columns(kind, registry)
    full, empty, tombstone = written(made, ORDER, FULL, EMPTY, None)
    reads = reading_converters(made.converters).value.read
    schema, value = reads("t", full)
    assert value == FULL
    assert schema is not None
    assert reads("t", empty)[1] == EMPTY
    assert tombstone is None
    types = {field["field"]: (field["type"], field["optional"]) for field in schema["fields"]}
    assert types["tiny"] == ("int8", False)
    assert types["small"] == ("int16", True)
    assert types["single"] == ("float", True)
    price = next(field for field in schema["fields"] if field["field"] == "price")
    assert price["parameters"] == {"scale": "2", "connect.decimal.precision": "10"}


def test_json_with_and_without_its_schema() -> None:
    kind = spark.StructType([spark.StructField("id", spark.LongType(), nullable=False)])
    assert written(columns("JsonConverter", schemas_enable="false"), kind, {"id": 1}, None) == [
        b'{"id":1}',
        None,
    ]
    (enveloped,) = written(columns("JsonConverter"), kind, {"id": 1})
    assert enveloped is not None
    fields = [{"type": "int64", "optional": False, "field": "id"}]
    assert json.loads(enveloped) == {
        "schema": {"type": "struct", "fields": fields, "optional": False},
        "payload": {"id": 1},
    }


def test_a_column_need_not_be_a_struct_and_microseconds_are_cut_off() -> None:
    made = columns("JsonConverter", schemas_enable="false")
    at = datetime(1970, 1, 1, 0, 0, 1, 999, UTC)
    assert written(made, spark.TimestampType(), at) == [b"1000"]
    assert written(made, spark.ArrayType(spark.IntegerType()), [1, None]) == [b"[1,null]"]
    latin = columns("StringConverter", converter_encoding="latin-1")
    assert written(latin, spark.StringType(), "é") == [b"\xe9"]
    assert written(columns("ByteArrayConverter"), spark.BinaryType(), b"1") == [b"1"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (spark.TimestampNTZType(), r"order\.x is a timestamp_ntz.*Cast it to timestamp"),
        (spark.DayTimeIntervalType(), r"order\.x is a interval day to second.*Cast it"),
        (spark.NullType(), r"order\.x is a void.*Cast it to string"),
        (spark.ArrayType(spark.VariantType()), r"order\.x\.element is a variant.*to_json"),
        (
            spark.MapType(spark.ArrayType(spark.LongType()), spark.LongType()),
            r"order\.x\.key is a array<bigint>.*keys of numbers or text",
        ),
        (
            spark.StructType([spark.StructField("a", spark.LongType())] * 2),
            r"order\.x has two fields a",
        ),
    ],
)
def test_a_type_that_connect_does_not_have_is_named_with_its_column(
    kind: spark.DataType, said: str
) -> None:
    whole = spark.StructType([spark.StructField("x", kind)])
    with pytest.raises(BadInput, match=said):
        with_schemas(columns("JsonConverter"), [spark.StructField("order", whole)])


def test_what_a_converter_does_not_take_is_said_before_anything_is_written() -> None:
    fields = [spark.StructField("order", ORDER)]
    for made, said in (
        (columns("StringConverter", converter_encoding="latin-1"), "takes string or binary"),
        (columns("AvroConverter"), "schema.registry.url"),
        (columns("nothing:There"), "nothing"),
        (columns("ProtobufReader"), "Unsupported converter"),
    ):
        with pytest.raises(BadInput, match=said):
            with_schemas(made, fields)
    with pytest.raises(
        BadInput, match=r"url in converter_configs is not a property of a converter"
    ):
        _ = replace(
            Target({}, "g", "c", "t", "o"), converter_configs={"value.converter.url": "u"}
        ).columns


def test_columns_with_a_converter_are_of_any_type_and_others_of_text_or_bytes() -> None:
    types = {"shop": "string", "n": "bigint", "order": "struct<a:int>", "id": "struct<b:int>"}
    made = columns("JsonConverter")
    check_columns(types.items(), made)
    with pytest.raises(BadInput, match=r"id is a struct.*set a converter for the key"):
        check_columns(types.items(), replace(made, key="id"))
    check_columns(
        types.items(),
        replace(made, key="id", converters={**made.converters, "key.converter": "JsonConverter"}),
    )


def test_an_error_names_the_column_the_field_and_the_row(registry: FakeRegistry) -> None:
    kind = spark.StructType([spark.StructField("id", spark.LongType(), nullable=False)])
    with pytest.raises(ConnectctlError) as e:
        written(columns("JsonConverter"), kind, {"id": 1}, {"id": None})
    assert str(e.value).startswith("JsonConverter cannot write the column order: id: null for a ")
    assert str(e.value).endswith("(row 1)")
    registry.failing = [(500, b"{}")]
    with pytest.raises(ConnectctlError, match="Schema Registry") as gone:
        written(columns("AvroConverter", registry), kind, {"id": 1})
    assert "row" not in str(gone.value)


def test_a_job_of_run_names_its_converters_as_a_worker_does() -> None:
    config = {"topic": "t", "format": "json", "partition.columns": "shop", "offset.column": "n"}
    own = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    assert not DataFrameSource().validate({**config, **own, "name": "c"})
    assert columns_of({**config, **own}).converters == own
