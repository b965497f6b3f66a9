"""The file stream: what is a line, where it goes on, and that it is Kafka's own in partition,
offset and value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors import filestream
from connectctl.ops.task_runtime.connectors.filestream import FileStreamSource, FileStreamTask
from connectctl.ops.task_runtime.spi.connector import ExactlyOnceSupport, TaskContext
from connectctl.ops.task_runtime.spi.converters import converters
from hypothesis import given
from hypothesis import strategies as st


class Stored:
    def __init__(self, position: int | None):
        self._position = position

    def offset(self, partition: Any) -> Any:
        return None if self._position is None else {"position": self._position}

    def offsets(self) -> Any:
        return []


def task(
    path: Path, position: int | None = None, configs: Mapping[str, str] = MappingProxyType({})
) -> FileStreamTask:
    made = FileStreamTask()
    whole = {"file": str(path), "topic": "t", **configs}
    made.context = TaskContext(Stored(position), whole)
    made.start(whole)
    return made


def read(
    path: Path, position: int | None = None, configs: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[bytes, int]]:
    """Each line with its end, of a task that gives one at a time."""
    return [
        (value, end) for (value,), end in batches(path, position, {"batch.size": "1", **configs})
    ]


def batches(
    path: Path, position: int | None = None, configs: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[list[bytes], int]]:
    """The values of each poll, with the offset that stands for them."""
    made = task(path, position, configs)
    found = []
    while records := made.poll():
        found.append((list(records.values), records.source_offset["position"]))
    made.stop()
    return found


def given_by(made: FileStreamTask) -> list[bytes]:
    """The values of the next poll."""
    records = made.poll()
    return [] if records is None else list(records.values)


def test_a_line_is_a_string_in_json_as_kafkas_own_task_has_it(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes("größe\n".encode() + b"\xff\n")
    config = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    values = [
        converters(config).of_value("t", None, value) for value, _ in read(path, configs=config)
    ]
    said = '{"schema":{"type":"string","optional":false},"payload":"%s"}'
    assert values == [(said % "größe").encode(), (said % "\ufffd").encode()]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", [(b"one", 4), (b"two", 8)]),
        (b"one\r\ntwo\r\n", [(b"one", 5), (b"two", 10)]),
        (b"one\rtwo\rx", [(b"one", 4), (b"two", 8)]),
        (b"one\n\n\ntwo", [(b"one", 4), (b"", 5), (b"", 6)]),
        (b"half", []),
        (b"wait\r", []),
        ("größe\n".encode(), [("größe".encode(), 8)]),
    ],
)
def test_what_is_a_line(tmp_path: Path, content: bytes, lines: list[tuple[bytes, int]]) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    assert read(path) == lines


@given(st.lists(st.text("ab\u00e9", max_size=5), max_size=20), st.integers(1, 5))
def test_it_goes_on_at_any_position_that_it_gave(
    tmp_path_factory: Any, lines: list[str], batch: int
) -> None:
    path = tmp_path_factory.mktemp("f") / "f"
    path.write_text("".join(line + "\n" for line in lines))
    whole = read(path)
    assert [value.decode() for value, _ in whole] == lines
    polls = batches(path, configs={"batch.size": str(batch)})
    assert [value.decode() for values, _ in polls for value in values] == lines
    assert all(len(values) == batch for values, _ in polls[:-1])
    for values, position in polls:
        assert (values[-1], position) in whole
    for n, (_, position) in enumerate(whole):
        assert read(path, position) == whole[n + 1 :]


def test_a_file_that_grows_goes_on_and_one_that_is_not_there_yet_is_waited_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "f"
    made = task(path)
    assert made.poll() is None
    path.write_text("one\ntw")
    assert given_by(made) == [b"one"]
    with path.open("a") as file:
        file.write("o\n")
    assert given_by(made) == [b"two"]
    assert not made.finished
    made.stop()


def test_a_bounded_one_is_finished_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    made = task(path, configs={"until.end": "true", "batch.size": "1"})
    seen = []
    while not made.finished:
        seen += given_by(made)
    assert seen == [b"one", b"two"]
    made.stop()


def test_a_poll_of_long_lines_ends_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789\n" * 10)
    monkeypatch.setattr(filestream, "CHUNK", 30)
    monkeypatch.setattr(filestream, "MOST_BYTES", 40)
    assert [len(values) for values, _ in batches(path)] == [5, 5]


def test_a_file_that_is_shorter_than_its_offset_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    made = task(path, 400)
    with pytest.raises(ConnectctlError, match="has 4 bytes but the committed offset is 400"):
        made.poll()
    made.stop()


def test_what_the_connector_says_of_itself() -> None:
    connector = FileStreamSource()
    configs = {"file": "f", "topic": "t"}
    connector.start(configs)
    assert connector.task_configs(5) == [configs]
    assert connector.validate({"file": "f"}) == {
        "topic": ['Missing required configuration "topic" which has no default value.']
    }
    assert connector.exactly_once_support(configs) is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({}) is ExactlyOnceSupport.UNSUPPORTED


@given(
    st.lists(st.sampled_from([b"a", b"\xc3\xa9", b"\r", b"\n", b"\r\n"]), max_size=30),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_where_a_read_ends_changes_no_line(
    tmp_path_factory: Any, parts: list[bytes], chunk: int, batch: int
) -> None:
    path = tmp_path_factory.mktemp("f") / "f"
    path.write_bytes(b"".join(parts))
    whole = read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filestream, "CHUNK", chunk)
        polls = batches(path, configs={"batch.size": str(batch)})
        assert [value for values, _ in polls for value in values] == [value for value, _ in whole]
        assert {position for _, position in polls} <= {position for _, position in whole}
        for n, (_, position) in enumerate(whole):
            # Between the two halves of an end there is no position that was ever given.
            assert read(path, position) == whole[n + 1 :]
