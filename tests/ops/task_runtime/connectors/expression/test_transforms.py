"""``Filter``, ``Map`` and ``Route`` by what they are given and what they write."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors.expression.transforms import Filter, Map, Route
from connectctl.ops.task_runtime.spi.plugins import connector_class, path_of
from connectctl.ops.task_runtime.spi.transform import Record, Records, TransformConnector

JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
ENVELOPE = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}


class Message:
    def __init__(
        self, offset: int, value: bytes | None, key: bytes | None = b"k", partition: int = 0
    ):
        self._parts = ("in", partition, offset, key, value)

    def topic(self) -> str:
        return self._parts[0]

    def partition(self) -> int:
        return self._parts[1]

    def offset(self) -> int:
        return self._parts[2]

    def key(self) -> bytes | None:
        return self._parts[3]

    def value(self) -> bytes | None:
        return self._parts[4]

    def headers(self) -> list[tuple[str, bytes]]:
        return [("trace", b"1")]

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_700_000_000_000


def made(
    kind: type[TransformConnector], configs: dict[str, str], *values: bytes | None, **more: Any
) -> list[Record]:
    assert problems(kind, configs) == []
    task = kind.task()
    task.start(configs)
    return list(
        task.process(Records([Message(n, value, **more) for n, value in enumerate(values)]))
    )


def problems(kind: type[TransformConnector], configs: dict[str, str]) -> list[str]:
    topics = {"topics": "in"} | ({} if kind is Route else {"topic": "out"})
    return [each for messages in kind().validate(topics | configs).values() for each in messages]


@pytest.mark.parametrize("name", ["Filter", "Map", "Route"])
def test_each_is_found_by_its_name(name: str) -> None:
    assert connector_class(path_of(name)).__name__ == name


def test_filter_keeps_records_as_they_are_in_their_order() -> None:
    configs = JSON | {"condition": "amount > 5 and shop == 'a'"}
    values = [
        b'{"amount": 6,  "shop": "a"}',
        b'{"amount": 5, "shop": "a"}',
        b'{"shop": "a", "amount": 7.5}',
        None,
    ]
    found = made(Filter, configs, *values)
    assert [(r.offset, r.value) for r in found] == [(0, values[0]), (2, values[2])]
    assert {(r.key, r.timestamp, tuple(r.headers)) for r in found} == {
        (b"k", 1_700_000_000_000, (("trace", b"1"),))
    }


def test_filter_of_text_has_the_columns_of_the_record() -> None:
    found = made(
        Filter,
        {"condition": "value.str.startswith('b') or offset == 2 and key == 'k'"},
        b"a",
        b"b",
        b"c",
    )
    assert [r.value for r in found] == [b"b", b"c"]


def test_an_empty_poll_gives_nothing() -> None:
    assert made(Filter, {"condition": "offset > 1"}) == []
    assert made(Map, {"value": "value.str.upper()"}) == []
    assert made(Route, {"route": "value"}) == []


def test_a_value_with_a_schema_has_the_fields_of_its_payload() -> None:
    schema = b'{"type":"struct","fields":[{"field":"n","type":"int32"}]}'
    values = [b'{"schema":%s,"payload":{"n":%d}}' % (schema, n) for n in range(3)]
    assert [r.offset for r in made(Filter, ENVELOPE | {"condition": "n >= 1"}, *values)] == [1, 2]


@pytest.mark.parametrize(
    ("condition", "values", "message"),
    [
        (
            "amount > 5",
            [b'{"amount": 6}', b'{"amount": "x"}'],
            "The expression condition failed for the record in-0@1",
        ),
        (
            "amount > 5",
            [b'{"amount": 6}', b'{"amout": 6}'],
            "The record in-0@1 has no field amount",
        ),
        ("amount > 5", [b'{"amount": 6}', b"6"], "The record in-0@1 has no field amount"),
        ("amount > 5", [b'{"amount": 6}', b"{"], "Could not read the value of in-0@1"),
        (
            "amount",
            [b'{"amount": 6}'],
            "The expression condition failed for the record in-0@0: it gives 6",
        ),
    ],
)
def test_a_record_that_cannot_be_evaluated_fails_the_task_in_one_line(
    condition: str, values: list[bytes], message: str
) -> None:
    with pytest.raises(ConnectctlError) as e:
        made(Filter, JSON | {"condition": condition}, *values)
    assert message in str(e.value)
    assert "\n" not in str(e.value)


def test_a_field_that_is_missing_is_null_where_that_is_asked_for() -> None:
    values = [b'{"amount": 6}', b"{}", b'{"amount": null}', b"[]"]
    configs = JSON | {"missing.fields": "null"}
    assert [r.offset for r in made(Filter, configs | {"condition": "amount > 5"}, *values)] == [0]
    assert [r.offset for r in made(Filter, configs | {"condition": "amount.isna()"}, *values)] == [
        1,
        2,
        3,
    ]


def test_a_field_with_the_name_of_a_column_has_the_prefix_value() -> None:
    values = [b'{"key": 1, "offset": 9}', b'{"key": 2, "offset": 9}']
    assert [
        r.offset
        for r in made(Filter, JSON | {"condition": "`value.key` == 2 and offset == 1"}, *values)
    ] == [1]


def test_map_writes_new_values_and_keys() -> None:
    (found,) = made(Map, {"value": "key + ':' + value.str.upper()", "key": "offset"}, b"a")
    assert (found.value, found.key, found.timestamp, list(found.headers)) == (
        b"k:A", b"0", 1_700_000_000_000, [("trace", b"1")],
    )  # fmt: skip
    assert [r.value for r in made(Map, {"value": "value.str.upper()"}, b"a", None)] == [b"A", None]


def test_map_writes_text_in_the_encoding_of_its_converter() -> None:
    configs = {"value": "value + '!'", "key": "value"}
    configs |= {"value.converter.converter.encoding": "ISO-8859-1"}
    (found,) = made(Map, configs, b"\xe9")
    assert (found.value, found.key) == (b"\xe9!", "é".encode())


def test_map_sets_fields_of_a_json_object_and_keeps_the_others() -> None:
    configs = JSON | {
        "field.total": "price * count",
        "field.shop": "shop.str.upper()",
        "key": "shop",
    }
    values = [b'{"price": 2, "count": 3, "shop": "a"}', None]
    assert [(r.key, r.value) for r in made(Map, configs, *values)] == [
        (b"a", b'{"price":2,"count":3,"shop":"A","total":6}'),
        (None, None),
    ]


def test_what_json_does_not_have_is_not_written() -> None:
    with pytest.raises(
        ConnectctlError, match=r"field.ratio failed for the record in-0@0: it gives inf"
    ):
        made(Map, JSON | {"field.ratio": "a / b"}, b'{"a": 1, "b": 0}')


def test_route_sends_records_to_the_topic_that_an_expression_names() -> None:
    found = made(
        Route, JSON | {"route": "'orders-' + shop"}, b'{"shop": "a"}', b'{"shop": "b"}', partition=3
    )
    assert [(r.topic, r.partition, r.value) for r in found] == [
        ("orders-a", None, b'{"shop": "a"}'),
        ("orders-b", None, b'{"shop": "b"}'),
    ]


def test_the_first_rule_that_is_true_counts() -> None:
    configs = JSON | {"rules": "big: amount > 100\nmiddle: amount > 10\n", "otherwise": "small"}
    values = [b'{"amount": %s}' % n for n in (b"5", b"50", b"500", b"null")]
    assert [r.topic for r in made(Route, configs, *values)] == ["small", "middle", "big", "small"]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"rules": "big: offset > 5"},
            "rules failed for the record in-0@0: none is true, and otherwise is not set",
        ),
        (
            {"route": "value"},
            "route failed for the record in-0@0: it gives 'a b', which is not the name of a topic",
        ),
    ],
)
def test_a_record_without_a_topic_fails_the_task(configs: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectctlError, match=message):
        made(Route, configs, b"a b")


@pytest.mark.parametrize(
    ("kind", "configs", "message"),
    [
        (Filter, {}, 'Missing required configuration "condition" which has no default value.'),
        (
            Filter,
            {"condition": "amount > 5"},
            "unknown column amount; columns are topic, partition, offset",
        ),
        (
            Filter,
            {"condition": "value.to_csv('x')"},
            "configuration condition: not supported: value.to_csv('x')",
        ),
        (Filter, {"condition": "offset >"}, "configuration condition: invalid syntax"),
        (Filter, {"condition": "value.str.contains('[')"}, "invalid regular expression"),
        (Filter, JSON | {"condition": "name.str.contains('[')"}, "invalid regular expression"),
        (Filter, {"condition": "offset > 'x'"}, "configuration condition: "),
        (
            Filter,
            {"condition": "offset > 1", "missing.fields": "x"},
            "Invalid value x for configuration missing.fields",
        ),
        (
            Filter,
            {"condition": "offset > 1", "value.converter": "ByteArrayConverter"},
            "need StringConverter or Json",
        ),
        (Map, {}, "Must configure value, key or field.NAME"),
        (
            Map,
            JSON | {"value": "a", "field.a": "b"},
            "Must configure only one of value and field.a",
        ),
        (Map, ENVELOPE | {"field.a": "b"}, "field.a needs value.converter=JsonConverter and"),
        (Route, {}, "Must configure only one of route and rules"),
        (
            Route,
            {"route": "value", "rules": "a: offset > 1"},
            "Must configure only one of route and rules",
        ),
        (Route, {"route": "value", "topic": "x"}, "remove topic, or use otherwise"),
        (Route, {"rules": "in: offset > 1"}, "The output topic in is an input topic, too"),
        (Route, {"rules": "a: offset > 1\na: offset > 2"}, "The topic a has several rules"),
        (Route, {"rules": "offset > 1"}, "rules are lines TOPIC: CONDITION"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_in_one_line(
    kind: type[TransformConnector], configs: dict[str, str], message: str
) -> None:
    found = problems(kind, configs)
    assert any(message in each for each in found), found
    assert not any("\n" in each for each in found)


@pytest.mark.parametrize(
    ("configs", "part", "sent"),
    [
        ({"value": "value.str.strip()"}, "value", {"value": b"\xff "}),
        ({"key": "value.str.slice(0, 2)"}, "value", {"value": b"\xff "}),
        ({"key": "key.str.upper()"}, "key", {"value": b"v", "key": b"k\xff"}),
        (JSON | {"field.k": "key"}, "key", {"value": b"{}", "key": b"k\xff"}),
        (JSON | {"key": "a"}, "value", {"value": b'{"a": "\xff"}'}),
    ],
)
def test_map_fails_for_bytes_that_are_not_text_instead_of_changing_them(
    configs: dict[str, str], part: str, sent: dict[str, Any]
) -> None:
    value = sent.pop("value")
    with pytest.raises(ConnectctlError, match=f"Could not read the {part} of in-0@0"):
        made(Map, configs, value, **sent)


def test_bytes_that_are_not_text_stay_where_no_expression_reads_or_writes_them() -> None:
    (found,) = made(Map, {"key": "topic"}, b"\xff")
    assert (found.value, found.key) == (b"\xff", b"in")
    (kept,) = made(Filter, {"condition": "value.str.len() == 2"}, b"\xffa", key=b"\xfe")
    assert (kept.value, kept.key) == (b"\xffa", b"\xfe")
    (routed,) = made(Route, {"route": "'out-' + value.str.slice(0, 1)"}, b"a\xff")
    assert (routed.value, routed.topic) == (b"a\xff", "out-a")
