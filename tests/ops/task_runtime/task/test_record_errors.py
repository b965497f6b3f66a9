"""``errors.*`` of a sink: what is tolerated, logged and sent to the dead letter topic, and nothing
is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings, error_settings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkRecord, TimestampType
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_records import RecordReader
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from fakes.sinkconsumer import Attempt, Message, Rebalance, RecordingSink, SinkConsumer, place

JSON = {
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
TOLERANT = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}


class Letters:
    """A dead letter topic. ``failing``: what is flushed is not written."""

    def __init__(self) -> None:
        self.sent: list[ProducerRecord] = []
        self.flushed = 0
        self.failing = False

    def send(self, record: ProducerRecord) -> None:
        self.sent.append(record)

    def flush(self) -> None:
        if self.failing:
            raise ConnectctlError("dead letter not written")
        self.flushed = len(self.sent)

    def discard(self) -> None:
        """What is written is kept."""


class Setup:
    def __init__(self, configs: Mapping[str, str], values: list[bytes], **on: list[Any]):
        self.letters, self.lines, self.notes = Letters(), list[str](), list[str]()
        self.errors = RecordErrors(error_settings(configs), "c", 3, self.letters, self.lines.append)
        self.consumer = SinkConsumer({0: values}, (0,))
        self.sink = RecordingSink(on={name: deque(actions) for name, actions in on.items()})
        self.task = WorkerSinkTask(
            lambda: self.sink,
            {},
            reading_converters(JSON),
            self.errors,
            note=self.notes.append,
            now=self.consumer.clock,
        )
        self.attempt = Attempt(self.task, self.consumer)
        self.attempt.start()


def test_a_record_is_converted_whole() -> None:
    headers = [("a", b"1"), ("b", None)]
    messages = [
        Message(place(0), 5, b"[1]", b"k", headers, (1, 99)),
        Message(place(1), 6, None, None, None, (0, -1)),
        Message(place(1), 7, b"", None, None, (2, 98)),
    ]
    first, second, third = RecordReader(
        reading_converters(JSON), RecordErrors(ErrorSettings(), "c", 0)
    ).records(messages)
    assert (first.topic, first.partition, first.offset, first.key, first.value) == (
        "t",
        0,
        5,
        "k",
        [1],
    )
    assert (first.timestamp, first.timestamp_type) == (99, TimestampType.CREATE_TIME)
    assert first.headers == [("a", 1), ("b", None)]
    assert (first.key_schema, first.value_schema) == ({"type": "string", "optional": True}, None)
    assert first.original is messages[0]
    assert (second.key, second.value, second.timestamp, second.headers) == (None, None, None, ())
    assert second.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert third.timestamp_type is TimestampType.LOG_APPEND_TIME


def test_without_tolerance_a_record_that_cannot_be_read_ends_the_task_by_its_place() -> None:
    at = Setup({}, [b"1", b"{"])
    with pytest.raises(ConnectctlError) as failed:
        at.attempt.round()
    assert str(failed.value).startswith(
        "Tolerance exceeded in error handler: VALUE_CONVERTER failed for the record of t-0 at "
        "offset 1: Converting byte[] to Kafka Connect data failed: invalid JSON"
    )
    at.task.close()
    assert (at.consumer.commits, at.sink.batches, at.lines) == ([], [], [])


def test_a_tolerated_one_is_left_out_and_its_offset_committed_behind_its_dead_letter() -> None:
    at = Setup(TOLERANT, [b"1", b"{", b"2", b"{"])
    at.attempt.round()
    assert at.sink.batches == [[(0, 0), (0, 2)]]
    assert at.letters.flushed == 0
    at.attempt.end()
    assert (at.consumer.commits, at.letters.flushed) == ([{0: 4}], 2)
    assert at.letters.sent[0] == ProducerRecord("dead", None, b"{", headers=[], timestamp=None)
    assert (at.task.meter.failures, at.task.meter.skipped, at.task.meter.sent) == (2, 2, 2)


@pytest.mark.parametrize("how", ["round", "revoked", "close"])
def test_nothing_is_committed_where_a_dead_letter_is_not_written(how: str) -> None:
    at = Setup(TOLERANT, [b"{"])
    at.attempt.round()
    at.letters.failing = True
    if how == "revoked":
        at.consumer.script.append(Rebalance(revoked=[0]))
    elif how == "round":
        at.consumer.clock.seconds += 60
    act = at.attempt.end if how == "close" else at.attempt.round
    with pytest.raises(ConnectctlError, match="dead letter not written"):
        act()
    at.task.close()
    assert at.consumer.commits == []
    assert at.sink.calls[-2:] == [("close", [0]), ("stop",)]


def test_a_dead_letter_has_what_the_record_has_and_where_it_failed() -> None:
    configs = TOLERANT | {"errors.deadletterqueue.context.headers.enable": "true"}
    letters = Letters()
    reader = RecordReader(
        reading_converters(JSON), RecordErrors(error_settings(configs), "c", 3, letters)
    )
    assert reader.records([Message(place(0), 5, b"{", b"k", [("own", b"1")], (1, 99))]) == []
    letter = letters.sent[0]
    assert (letter.key, letter.value, letter.timestamp, letter.partition) == (b"k", b"{", 99, None)
    own, *context = letter.headers
    assert own == ("own", b"1")
    found = {
        name.removeprefix("__connect.errors."): (value or b"").decode() for name, value in context
    }
    trace = found.pop("exception.stacktrace")
    assert "Traceback" in trace
    assert found.pop("exception.message").startswith(
        "Converting byte[] to Kafka Connect data failed: invalid JSON"
    )
    assert found == {
        "topic": "t",
        "partition": "0",
        "offset": "5",
        "connector.name": "c",
        "task.id": "3",
        "stage": "VALUE_CONVERTER",
        "class.name": CONVERTER,
        "exception.class.name": "connectctl.ops.task_runtime.spi.schema.DataError",
    }


@pytest.mark.parametrize(
    ("part", "stage"), [("key", "KEY_CONVERTER"), ("header", "HEADER_CONVERTER")]
)
def test_keys_and_headers_fail_in_stages_of_their_own(part: str, stage: str) -> None:
    letters = Letters()
    configs = TOLERANT | {"errors.deadletterqueue.context.headers.enable": "true"}
    readers = reading_converters({f"{part}.converter": "JsonConverter"})
    reader = RecordReader(readers, RecordErrors(error_settings(configs), "c", 3, letters))
    assert reader.records([Message(place(0), 5, b"v", b"{", [("h", b"{")])]) == []
    assert ("__connect.errors.stage", stage.encode()) in letters.sent[0].headers


def test_the_log_has_a_line_for_each_with_its_place_where_that_is_asked_for() -> None:
    lines: list[str] = []
    for more in ({}, {"errors.log.include.messages": "true"}):
        configs = {"errors.tolerance": "all", "errors.log.enable": "true", **more}
        reader = RecordReader(
            reading_converters(JSON),
            RecordErrors(error_settings(configs), "c", 3, None, lines.append),
        )
        reader.records([Message(place(0), 5, b"'", stamp=(1, 99))])
    begin = (
        f"Error encountered in task c-3. Executing stage 'VALUE_CONVERTER' with class '{CONVERTER}'"
    )
    where = (
        ", where consumed record is {topic='t', partition=0, offset=5, timestamp=99, "
        "timestampType=CreateTime}"
    )
    assert lines[0].startswith(f"{begin}. Converting byte[]")
    assert lines[1].startswith(f"{begin}{where}. Converting byte[]")
    assert all("\n" not in line for line in lines)


def reports(sink: RecordingSink) -> None:
    assert sink.context.errant_record_reporter is not None
    first = Message(place(0), 0, b"1")
    record = SinkRecord("t", 0, 0, None, 1, original=first)
    sink.context.errant_record_reporter.report(record, ValueError("too\nlong"))


def test_a_task_reports_a_record_that_it_cannot_handle() -> None:
    at = Setup(TOLERANT | {"errors.log.enable": "true"}, [b"1"], put=[reports])
    at.attempt.round()
    assert at.lines == [
        "Error encountered in task c-3. Executing stage 'TASK_PUT' with class "
        "'org.apache.kafka.connect.sink.SinkTask'. ValueError: too long"
    ]
    at.attempt.end()
    assert (len(at.letters.sent), at.letters.flushed, at.consumer.commits) == (1, 1, [{0: 1}])


def test_a_report_without_tolerance_ends_a_task_that_ignores_it_too() -> None:
    def ignoring(sink: RecordingSink) -> None:
        with pytest.raises(ConnectctlError, match="Tolerance exceeded"):
            reports(sink)

    at = Setup({"errors.log.enable": "true"}, [b"1"], put=[ignoring])
    with pytest.raises(
        ConnectctlError,
        match="TASK_PUT failed for the record of t-0 at offset 0: ValueError: too long",
    ):
        at.attempt.round()
    at.task.close()
    assert at.consumer.commits == []


def test_there_is_a_reporter_only_where_there_is_something_to_report_to() -> None:
    assert Setup({"errors.tolerance": "all"}, []).sink.context.errant_record_reporter is None
    made = SinkRecord("t", 0, 0, None, 1)
    with pytest.raises(
        ConnectctlError, match="Cannot report a record that was not read from a topic"
    ):
        RecordErrors(ErrorSettings(), "c", 0).report(made, RetriableError("x"))
