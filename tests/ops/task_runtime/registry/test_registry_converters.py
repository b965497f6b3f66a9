"""Converters of a Schema Registry, on a registry in memory: what is asked, and what errors say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from connectctl import schema as of
from connectctl.ops.config.masking import value_of
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.schema import DataError, Schema
from fakes.schemaregistry import FakeRegistry, schema_registry
from fakes.schemavalues import everything, typed_values
from hypothesis import HealthCheck, given, settings

KINDS = ("AvroConverter", "JsonSchemaConverter")
SIMPLE = of.struct("shop.Order", a=of.INT32)
URL = "schema.registry.url"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with schema_registry() as made:
        yield made


def properties(registry: FakeRegistry, kind: str = KINDS[0], **more: str) -> dict[str, str]:
    own = {URL: registry.url, "max.retries": "0"}
    own |= {name.replace("_", "."): value for name, value in more.items()}
    return {"value.converter": kind} | {f"value.converter.{n}": v for n, v in own.items()}


def written(configs: dict[str, str], schema: Schema | None, value: Any) -> bytes | None:
    return converters(configs).of_value("t", schema, value)


def read(configs: dict[str, str], data: bytes | None) -> Any:
    return reading_converters(configs).value.read("t", data)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_with_its_schema(kind: str, registry: FakeRegistry) -> None:
    configs = properties(registry, kind)
    of_value, reads = converters(configs).of_value, reading_converters(configs).value.read

    @settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
    @given(typed_values())
    def drawn(typed: tuple[Schema, Any]) -> None:
        assert reads("t", of_value("t", *typed)) == typed

    drawn()
    assert reads("t", of_value("t", *everything())) == everything()
    pairs = of.struct("shop.Pairs", by=of.map_of(of.INT32, of.decimal(1)))
    assert reads("t", of_value("t", pairs, {"by": {7: Decimal("1.5")}})) == (
        pairs,
        {"by": {7: Decimal("1.5")}},
    )
    assert (of_value("t", SIMPLE, None), reads("t", None)) == (None, (None, None))
    assert reads("t", of_value("t", None, "plain"))[1] == "plain"


@pytest.mark.parametrize("kind", [*KINDS, "ProtobufConverter"])
def test_a_registry_is_asked_once_for_each_schema(kind: str, registry: FakeRegistry) -> None:
    configs = properties(registry, kind)
    of_value, reads = converters(configs).of_value, reading_converters(configs).value.read
    data = [of_value("t", SIMPLE, {"a": n}) for n in range(3)]
    assert [reads("t", each)[1] for each in data] == [{"a": 0}, {"a": 1}, {"a": 2}]
    assert [method for method, _ in registry.requests] == ["POST", "GET"]
    assert list(registry.subjects) == ["t-value"]


def test_structs_without_a_name_are_numbered_and_types_that_are_used_twice_defined_once(
    registry: FakeRegistry,
) -> None:
    city, pairs = of.struct(city=of.STRING), of.map_of(of.INT32, of.STRING)
    named = of.struct("shop.Money", cents=of.INT64)
    schema = of.struct(
        to=of.optional(city), other=of.struct(n=of.INT32), via=of.array(city), was=named, due=named,
        one=pairs, two=pairs,
    )  # fmt: skip
    value = {
        "to": None, "other": {"n": 1}, "via": [{"city": "Łódź"}], "was": {"cents": 1},
        "due": {"cents": 2}, "one": {1: "a"}, "two": {},
    }  # fmt: skip
    configs = properties(registry)
    assert read(configs, written(configs, schema, value))[1] == value
    (text,) = (each["schema"] for each in registry.schemas)
    assert [n for n in ("ConnectDefault2", "ConnectDefault3", "ConnectDefault4") if n in text] == [
        "ConnectDefault2",
        "ConnectDefault3",
    ]


def test_types_of_avro_that_connect_does_not_have(registry: FakeRegistry) -> None:
    fields = """[
      {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
      {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}},
      {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
      {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
      {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
      {"name": "any", "type": ["null", "string", "int", {"type": "record", "name": "P",
        "fields": [{"name": "x", "type": "int"}]}], "default": null},
      {"name": "again", "type": ["null", "P"], "default": null}]"""
    text = f'{{"type": "record", "name": "T", "namespace": "n", "fields": {fields}}}'
    registry.answer("POST", "/subjects/t-value/versions", {"schema": text})
    configs = properties(registry, use_latest_version="true")
    value = {
        "kind": "B", "raw": b"ab", "id": "x", "us": 5, "ms": datetime(2024, 1, 1, tzinfo=UTC),
        "any": {"string": None, "int": None, "P": {"x": 1}}, "again": {"x": 2},
    }  # fmt: skip
    schema, found = read(configs, written(configs, None, value))
    assert found == value
    assert schema["fields"][0]["parameters"]["io.confluent.connect.avro.Enum"] == "n.Kind"
    assert [f.get("name") for f in schema["fields"][2:4]] == [None, None]
    for other in ({"string": "s"}, {"int": 3}):
        data = written(configs, None, {**value, "any": other})
        assert {k: v for k, v in read(configs, data)[1]["any"].items() if v is not None} == other


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": "x"}, "does not match|int32"),
        ({"b": 1}, "b is not a field"),
        ({"a": None}, "a: null"),
    ],
)
@pytest.mark.parametrize("kind", [*KINDS, "ProtobufConverter"])
def test_a_value_that_does_not_match_is_named(
    kind: str, registry: FakeRegistry, value: Any, why: str
) -> None:
    with pytest.raises(DataError, match=why):
        written(properties(registry, kind), SIMPLE, value)


@pytest.mark.parametrize("data", [b"", b"text", b"\x01\x00\x00\x00\x01a"])
def test_bytes_without_the_magic_byte_are_named(registry: FakeRegistry, data: bytes) -> None:
    with pytest.raises(DataError, match="Unknown magic byte"):
        read(properties(registry), data)


@pytest.mark.parametrize(
    ("status", "body", "kind", "why"),
    [
        (401, b'{"error_code": 401, "message": "Unauthorized"}', NotAuthorized, "does not allow"),
        (403, b"no", NotAuthorized, "does not allow"),
        (404, b"<html>no\npage</html>", Unreachable, "does not answer as a Schema Registry"),
        (200, b"<html>hello</html>", Unreachable, "does not answer as a Schema Registry"),
        (200, b'"text"', Unreachable, "does not answer as a Schema Registry"),
        (503, b'{"error_code": 50302, "message": "no leader"}', Unreachable, "failed .503"),
        (409, b'{"error_code": 409, "message": "incompatible"}', ConnectctlError, "incompatible"),
    ],
)
def test_a_registry_that_fails_is_one_line(
    registry: FakeRegistry, status: int, body: bytes, kind: type[ConnectctlError], why: str
) -> None:
    registry.failing = [(status, body)]
    with pytest.raises(kind, match=why) as error:
        written(properties(registry), SIMPLE, {"a": 1})
    assert "\n" not in str(error.value)


def test_a_failure_that_passes_is_retried(registry: FakeRegistry) -> None:
    registry.failing = [(503, b"{}"), (503, b"{}")]
    configs = properties(registry, max_retries="2", retries_wait_ms="1")
    assert written(configs, SIMPLE, {"a": 1}) == b"\x00\x00\x00\x00\x01\x02"


def test_a_registry_that_is_down_is_one_line() -> None:
    gone = FakeRegistry()
    gone.url = "http://127.0.0.1:1"
    with pytest.raises(Unreachable, match=r"Cannot reach the Schema Registry http://127.0.0.1:1"):
        written(properties(gone), SIMPLE, {"a": 1})


def test_logins_go_to_the_registry_and_into_no_error(registry: FakeRegistry) -> None:
    login = {"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "me:hunter22"}
    written(properties(registry, **login), SIMPLE, {"a": 1})
    token = {"bearer_auth_credentials_source": "STATIC_TOKEN", "bearer_auth_token": "tok-en-22"}
    written(properties(registry, **token), SIMPLE, {"a": 1})
    assert registry.logins == ["Basic bWU6aHVudGVyMjI=", "Bearer tok-en-22"]
    registry.url = registry.url.replace("//", "//me:hunter22@")
    registry.failing = [(401, b"{}")]
    with pytest.raises(NotAuthorized) as error:
        written(properties(registry), SIMPLE, {"a": 1})
    assert "hunter22" not in str(error.value)
    for name in ("basic.auth.user.info", "bearer.auth.token", "bearer.auth.client.secret"):
        assert "hunter22" not in value_of(f"value.converter.{name}", "me:hunter22")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({URL: ""}, "Missing required configuration .value.converter.schema.registry.url"),
        ({URL: "ftp://x"}, "Invalid url"),
        (
            {"auto.register.schemas": "maybe"},
            "Invalid value maybe for configuration value.converter.auto.register",
        ),
        (
            {"max.retries": "many"},
            "Invalid value many for configuration value.converter.max.retries",
        ),
        (
            {"basic.auth.credentials.source": "SASL_INHERIT"},
            "Unsupported value.converter.basic.auth",
        ),
        ({"bearer.auth.credentials.source": "CUSTOM"}, "Unsupported value.converter.bearer.auth"),
        (
            {"value.subject.name.strategy": "my.Own"},
            "Unsupported value.converter.value.subject.name.strategy my.Own",
        ),
        (
            {"schema.registry.ssl.truststore.location": "/x.jks"},
            "value.converter.schema.registry.ssl.truststore.location is of type JKS",
        ),
    ],
)
def test_properties_that_are_wrong_are_named(
    registry: FakeRegistry, more: dict[str, str], why: str
) -> None:
    configs = properties(registry) | {f"value.converter.{n}": v for n, v in more.items()}
    with pytest.raises(BadInput, match=why):
        written(configs, SIMPLE, {"a": 1})
