"""Polled records that are transformed or fail: what is written, counted, and committed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import (
    RetriableError,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from connectctl.ops.task_runtime.spi.converters import Converters
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.task.source_conversion import (
    SourceConversion,
    source_conversion,
)
from connectctl.ops.task_runtime.testing.prepare import OFFSETS_TOPIC
from connectctl.ops.task_runtime.testing.results import SourceRun
from connectctl.ops.task_runtime.testing.source import run_source

JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
LETTERS = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
    "errors.deadletterqueue.context.headers.enable": "true",
}
CAST = {"transforms": "c", "transforms.c.type": "Cast$Value", "transforms.c.spec": "n:int8"}


class Values(SourceTask):
    """Polls two values at a time."""

    def start(self, configs: Any) -> None:
        self._values = json.loads(configs["values"])
        self._next = (self.context.offsets.offset({"p": 1}) or {"n": 0})["n"]

    def poll(self) -> Sequence[SourceRecord]:
        some = self._values[self._next : self._next + 2]
        self._next += 2
        first = self._next - 1
        return [
            SourceRecord({"p": 1}, {"n": first + n}, "out", value, headers=[("h", n)])
            for n, value in enumerate(some)
        ]


class ValuesSource(SourceConnector):
    task = Values

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.configs)]


def run_with(*values: Any, fails: bool = False, configs: dict[str, str]) -> SourceRun:
    config = JSON | {"values": json.dumps(values)} | configs
    return run_source(ValuesSource, config, expect_failure=fails)


def test_a_dead_letter_of_a_source_is_in_the_transaction_of_its_offset() -> None:
    run = run_with({"n": "1"}, {"n": "x"}, {"n": "3"}, configs=CAST | LETTERS)
    first, second = run.commits
    assert [(r.topic, r.value) for r in first.records] == [
        ("out", b'{"n":1}'),
        ("dead", b'{"n":"x"}'),
    ]
    assert [offset for _, offset in first.offsets] == [{"n": 2}]
    assert [r.value for r in second.records] == [b'{"n":3}']
    headers = {name.removeprefix("__connect.errors."): v for name, v in first.records[1].headers}
    assert headers.pop("exception.stacktrace")
    assert headers == {
        "h": b"1",
        "topic": b"out",
        "source.partition": b'{"p":1}',
        "source.offset": b'{"n":2}',
        "connector.name": b"connector",
        "task.id": b"0",
        "stage": b"TRANSFORMATION",
        "class.name": b"org.apache.kafka.connect.transforms.Cast$Value",
        "exception.class.name": b"connectctl.ops.task_runtime.spi.schema.DataError",
        "exception.message": b"Value (x) was out of range for requested data type",
    }


def test_records_that_are_all_left_out_advance_the_offsets() -> None:
    run = run_with(1, 2, configs={"transforms": "f", "transforms.f.type": "Filter"})
    assert (run.records, run.offsets) == ([], [({"p": 1}, {"n": 2})])


def test_without_tolerance_a_record_fails_the_task_by_its_source_partition_and_offset() -> None:
    run = run_with({"n": 1}, {"n": [1]}, fails=True, configs=CAST)
    assert (run.state, run.records) == ("FAILED", [])
    assert str(run.error).startswith(
        "Tolerance exceeded in error handler: TRANSFORMATION failed for the record of "
        '{"p":1} at {"n":2}: Cast transformation does not support casting from'
    )


def test_a_value_that_a_converter_refuses_is_logged_and_left_out() -> None:
    log = {"errors.tolerance": "all", "errors.log.enable": "true"}
    run = run_with(7, "a", configs=log | {"value.converter": "ByteArrayConverter"})
    assert (run.records, run.offsets) == ([], [({"p": 1}, {"n": 2})])
    assert len(run.notes) == 2
    assert run.notes[0] == (
        "Error encountered in task connector-0. Executing stage 'VALUE_CONVERTER' with class "
        "'org.apache.kafka.connect.converters.ByteArrayConverter'. "
        "ByteArrayConverter takes bytes, not int"
    )


def test_a_routed_record_is_in_its_new_topic() -> None:
    route = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": ".*"}
    run = run_with(1, configs=route | {"transforms.r.replacement": "$0-x"})
    assert run.records[0].topic == "out-x"


def test_a_record_that_is_routed_to_the_tasks_own_offsets_topic_fails_whatever_is_tolerated() -> (
    None
):
    route = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": ".*"}
    own = route | {"transforms.r.replacement": OFFSETS_TOPIC} | LETTERS
    run = run_with(1, fails=True, configs=own)
    assert (run.state, run.records) == ("FAILED", [])
    assert "their own offsets topics" in str(run.error)


class Registry:
    """A converter whose registry does not answer at first."""

    def __init__(self, failures: int):
        self.failures = failures

    def convert(self, topic: str, schema: Any, value: Any) -> bytes | None:
        if value is not None and self.failures:
            self.failures -= 1
            raise RetriableError("down")
        return None if value is None else b"v"


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> float:
        return sum(self.pauses)


def converting(registry: Registry, timeout: str, clock: Clock) -> SourceConversion:
    made = Converters(registry.convert, registry.convert, registry.convert)
    configs = {"errors.retry.timeout": timeout}
    found = source_conversion(configs, made, 0, "offsets", TaskMeter())
    found.errors.sleep, found.errors.now = clock.pauses.append, clock.now
    return found


@pytest.mark.parametrize("timeout", ["1000", "-1"])
def test_a_converter_that_fails_for_a_while_is_asked_again(timeout: str) -> None:
    clock = Clock()
    conversion = converting(Registry(failures=3), timeout, clock)
    made = conversion.of([SourceRecord({"p": 1}, {"n": 1}, "t", 1)])
    assert [r.value for r in made.records] == [b"v"]
    assert clock.pauses == [0.3, 0.6]
    assert (conversion.meter.error_retries, conversion.meter.failures) == (2, 0)


def test_a_converter_is_asked_until_the_timeout_and_then_the_record_has_failed() -> None:
    clock = Clock()
    conversion = converting(Registry(failures=99), "1000", clock)
    with pytest.raises(ConnectctlError, match=r"VALUE_CONVERTER failed .*: down"):
        conversion.of([SourceRecord({"p": 1}, {"n": 1}, "t", 1)])
    assert clock.now() == pytest.approx(1.0)
    assert conversion.meter.failures == 1
