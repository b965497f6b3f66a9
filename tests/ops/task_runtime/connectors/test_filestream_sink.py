"""The file stream's sink: what a line is, and that what is committed is on the disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors.filestream_sink import (
    FileStreamSink,
    FileStreamSinkTask,
)
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkRecord
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from fakes.sinkconsumer import Attempt, Rebalance, SinkConsumer


def records(*values: Any) -> list[SinkRecord]:
    return [SinkRecord("t", 0, n, None, value) for n, value in enumerate(values)]


def started(configs: dict[str, str]) -> FileStreamSinkTask:
    task = FileStreamSinkTask()
    task.start(configs)
    return task


def test_each_value_is_a_line_behind_what_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    task = started({"file": str(path)})
    task.put(records("größe", b"\xff", None, True, 7, 1.5, {"a": [1, None]}, ""))
    task.put([])
    assert task.pre_commit({}) == {}
    assert (
        path.read_bytes()
        == "before\ngröße\n".encode() + b'\xff\nnull\ntrue\n7\n1.5\n{"a":[1,null]}\n\n'
    )
    task.stop()
    task.stop()


def test_without_a_file_lines_go_to_standard_output(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    task = started({})
    task.put(records("one", b"two"))
    task.flush({})
    task.stop()
    assert capsysbinary.readouterr().out == b"one\ntwo\n"


def test_what_is_committed_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.txt"
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(path.read_bytes()))
    consumer = SinkConsumer({0: [b"a", b"b"], 1: [b"c"]}, (0, 1))
    configs = {"file": str(path)}
    errors = RecordErrors(ErrorSettings(), "c", 0)
    task = WorkerSinkTask(FileStreamSinkTask, configs, reading_converters(configs), errors)
    attempt = Attempt(task, consumer)
    attempt.start()
    attempt.round(0)
    consumer.script.append(Rebalance(revoked=[1]))
    attempt.round(0)
    assert consumer.commits == [{1: 1}]
    attempt.end()
    assert (synced, consumer.commits) == ([b"a\nb\nc\n"] * 3, [{1: 1}, {0: 2}])


def test_a_file_that_cannot_be_opened_or_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConnectctlError, match=r"Could not open or create .*: Is a directory. Check file"
    ):
        started({"file": str(tmp_path)})
    if not Path("/dev/full").exists():
        return
    task = started({"file": "/dev/full"})
    with pytest.raises(
        ConnectctlError, match="Could not write to /dev/full: No space left on device"
    ):
        task.put(records("x" * 1_000_000))
    task.stop()


def test_what_the_connector_says_of_itself() -> None:
    connector = FileStreamSink()
    configs = {"file": "f", "topics": "t"}
    connector.start(configs)
    assert connector.task_configs(3) == [configs] * 3
    assert connector.validate(configs) == {}
