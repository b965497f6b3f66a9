"""A converter of one's own has the calls of Connect's, for sources and sinks, keys and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.converters import converter_modules, converters
from connectctl.schema import STRING, Converter, DataError, Schema, SchemaAndValue
from connectctl.sink import SinkConnector, SinkTask
from connectctl.source import SourceConnector, SourceRecord, SourceTask
from connectctl.testing import Record, run_sink, run_source

OWN = f"{__name__}:Reversed"


class Reversed(Converter):
    """Text backwards, after the name of its topic, with a sign of its configuration between."""

    def configure(self, configs: Mapping[str, str], *, is_key: bool) -> None:
        if len(self_sign := configs.get("sign", "-")) != 1:
            raise ValueError("sign has to be one character")
        self.sign = "k" if is_key else self_sign

    def from_connect_data(self, topic: str, schema: Schema | None, value: object) -> bytes | None:
        kind = "" if schema is None else schema["type"]
        return None if value is None else f"{topic}{self.sign}{kind}{value}"[::-1].encode()

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return None, None
        found, _, text = data.decode()[::-1].partition(self.sign)
        if found != topic:
            raise DataError(f"{found} is not {topic}")
        return STRING, text


class Refusing(Reversed):
    def configure(self, configs: Mapping[str, str], *, is_key: bool) -> None:
        raise BadInput("not like this")


class Once(SourceTask):
    def start(self, configs: Mapping[str, str]) -> None:
        self.left = [
            SourceRecord({}, {"n": 1}, "t", "ab", key="c", headers=[("h", "d")]),
            SourceRecord({}, {"n": 2}, "t", "ab", value_schema=STRING),
            SourceRecord({}, {"n": 3}, "t", None),
        ]

    def poll(self) -> Any:
        found, self.left = self.left, []
        return found


class OnceSource(SourceConnector):
    task = Once

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{}]


TAKEN: list[Any] = []


class Taking(SinkTask):
    def start(self, configs: Mapping[str, str]) -> None:
        TAKEN.clear()

    def put(self, records: Any) -> None:
        TAKEN.extend((r.key, r.value, r.value_schema, list(r.headers)) for r in records)


class TakingSink(SinkConnector):
    task = Taking

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{}]


ALL = {f"{part}.converter": OWN for part in ("key", "value", "header")}


def test_a_source_and_a_sink_convert_by_it_with_its_own_properties() -> None:
    written = run_source(OnceSource, {**ALL, "value.converter.sign": "/"}).records
    assert [(r.key, r.value, list(r.headers)) for r in written] == [
        (b"ckt", b"ba/t", [("h", b"d-t")]),
        (None, b"bagnirts/t", []),
        (None, None, []),
    ]
    run = run_sink(
        TakingSink,
        {**ALL, "value.converter.sign": "/"},
        {"t": [Record(b"ba/t", b"ckt", headers=[("h", b"d-t")]), Record(None)]},
    )
    assert run.state != "FAILED"
    assert TAKEN == [("c", "ab", STRING, [("h", "d")]), (None, None, None, [])]


def test_what_it_cannot_convert_is_handled_by_errors() -> None:
    config = {"value.converter": OWN, "errors.tolerance": "all"}
    dead = {"errors.deadletterqueue.topic.name": "dead"}
    run = run_sink(TakingSink, config | dead, {"t": [Record(b"x-u"), Record(b"x-t")]})
    assert ([value for _, value, _, _ in TAKEN], len(run.dead_letters)) == (["x"], 1)


@pytest.mark.parametrize(
    ("name", "configs", "why"),
    [
        (f"{__name__}:Absent", {}, "Class not found: Absent"),
        ("absent_module:Any", {}, "Cannot import absent_module:Any"),
        (f"{__name__}:Once", {}, "is not a converter .value.converter."),
        (OWN, {"value.converter.sign": "ab"}, "refuses its configuration.*one character"),
        (f"{__name__}:Refusing", {}, "not like this"),
        ("AvroConverters", {}, "Unsupported converter AvroConverters.*or MODULE:CLASS"),
    ],
)
def test_what_is_no_converter_is_named(name: str, configs: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        converters({"value.converter": name, **configs})


def test_its_module_is_sent_to_executors() -> None:
    assert converter_modules({**ALL, "key.converter": "StringConverter"}) == [__name__, __name__]
