"""What a row is, and that a file is whole under its name or not there."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.files import (
    NAME,
    ArchiveDirectory,
    file_name,
    row_of,
)
from connectctl.ops.task_runtime.spi.sink import SinkRecord, TimestampType

PLACE = TopicPartition("orders", 3)


def record(offset: int = 0, **more: object) -> SinkRecord:
    return SinkRecord("orders", 3, offset, **({"key": None, "value": None} | more))  # type: ignore[arg-type]


def test_a_record_is_a_row_with_all_that_kafka_has_of_it(tmp_path: Path) -> None:
    headers = [("a", b"\xff"), ("a", None), ("b", "größe")]
    full = record(7, key="größe", value=b"\xff\0", timestamp=1_700_000_000_123, headers=headers)
    full.timestamp_type = TimestampType.CREATE_TIME
    rows = [row_of(full), row_of(record(9, value={"a": [1, None]}))]
    file = ArchiveDirectory(str(tmp_path)).write(file_name(PLACE, 7, 9), PLACE, rows)
    assert (file.first, file.last, file.rows) == (7, 9, 2)
    assert pq.read_table(tmp_path / file.name).to_pylist() == [
        {
            "topic": "orders",
            "partition": 3,
            "offset": 7,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            "timestamp_type": "CreateTime",
            "key": "größe".encode(),
            "value": b"\xff\0",
            "headers": [
                {"key": "a", "value": b"\xff"},
                {"key": "a", "value": None},
                {"key": "b", "value": "größe".encode()},
            ],
        },
        {
            "topic": "orders",
            "partition": 3,
            "offset": 9,
            "timestamp": None,
            "timestamp_type": "NoTimestampType",
            "key": None,
            "value": b'{"a":[1,null]}',
            "headers": [],
        },
    ]


def test_no_name_is_given_twice_and_all_are_recognised() -> None:
    names = {file_name(PLACE, 0, 9) for _ in range(100)}
    assert len(names) == 100
    for name in names:
        found = NAME.fullmatch(name)
        assert found is not None
        assert found.group("topic", "partition", "first", "last") == ("orders", "3", "0", "9")


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    real = os.fsync

    def spy(number: int) -> None:
        seen.append({path.suffix for path in tmp_path.rglob("*") if path.is_file()})
        real(number)

    monkeypatch.setattr(os, "fsync", spy)
    ArchiveDirectory(str(tmp_path)).write(file_name(PLACE, 0, 0), PLACE, [row_of(record())])
    assert seen[-2:] == [{".tmp"}, {".parquet"}]


def test_a_directory_may_be_a_uri(tmp_path: Path) -> None:
    file = ArchiveDirectory(f"file://{tmp_path}/").write(
        file_name(PLACE, 0, 0), PLACE, [row_of(record())]
    )
    assert (tmp_path / file.name).exists()
    assert [name for name, _ in ArchiveDirectory(f"{tmp_path}/").listed()] == [file.name]
    assert ArchiveDirectory(str(tmp_path / "none")).listed() == []


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("a file")
    with pytest.raises(
        ConnectctlError, match=r"Could not write to .*: .* Check directory, its permissions"
    ):
        ArchiveDirectory(str(tmp_path)).write(file_name(PLACE, 0, 0), PLACE, [row_of(record())])
    with pytest.raises(ConnectctlError, match=r"Could not open nosuch://a: .* Check directory"):
        ArchiveDirectory("nosuch://a")
