"""The archive's sink: whatever attempt crashes where, the files that the manifest names have each
record once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.connector import (
    ParquetArchive,
    ParquetArchiveTask,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.files import Row
from connectctl.ops.task_runtime.spi.transform import Record
from connectctl.ops.task_runtime.task.transactional_producer import Fenced, Rebalancing
from connectctl.ops.task_runtime.testing.sink import run_sink
from depth import deep, strided
from fakes.archiveworld import Archive, Attempt, Calls, Crash

LONG = {p: [f"{p}:{n}".encode() for n in range(24)] for p in (0, 1)}
LOG = {p: [f"{p}:{n}".encode() for n in range(13)] for p in (0, 1)}


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)


class NamedByFirst(ParquetArchiveTask):
    """The mutant: a file's name is its first offset, as any attempt would have it."""

    def file_name(self, place: TopicPartition, rows: Sequence[Row]) -> str:
        return f"{place.topic}/{place.partition}/{rows[0][0]}.parquet"


def eventful(attempt: Attempt) -> None:
    """A life with all that happens to partitions, each of it between two commits."""
    attempt.start().rounds(2, most=3).due(most=5)
    attempt.rounds(1, most=5, lost=[0]).rounds(2, most=7, assigned=[0]).due(most=5)
    attempt.rounds(1, most=8, revoked=[0]).rounds(2, most=5, assigned=[0]).due(most=8)
    attempt.rounds(1, most=3, revoked=[0, 1]).rounds(2, most=6, assigned=[0, 1]).due(most=6)
    attempt.rounds(2).ends()


def finishes(archive: Archive) -> None:
    archive.attempt().start().rounds(3).ends()
    archive.each_once()


def test_each_record_is_archived_once(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    archive.attempt().start().rounds(2).ends()
    archive.each_once()
    assert archive.named == archive.on_disk
    # At four rows a file ends; the last row is written at the close.
    assert [(each.partition, each.first, each.last, each.rows) for each in archive.files] == [
        (p, first, last, last + 1 - first)
        for p in (0, 1)
        for first, last in ((0, 3), (4, 7), (8, 11), (12, 12))
    ]


def test_a_life_with_every_kind_of_rebalance_archives_each_record_once(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LONG)
    eventful(archive.attempt())
    archive.each_once()


@pytest.mark.parametrize(
    "error", [Crash, lambda: OSError(28, "No space left on device")], ids=["killed", "failed"]
)
def test_an_attempt_that_dies_at_any_call_costs_no_record_and_gives_none_twice(
    tmp_path: Path, error: Callable[[], BaseException]
) -> None:
    whole = Calls()
    eventful(Archive(tmp_path / "whole", LONG).attempt(whole))
    assert whole.count > 80
    for fail_at in strided(range(whole.count), deep(1, 4)):
        archive = Archive(tmp_path / str(fail_at), LONG)
        attempt = archive.attempt(Calls(fail_at, error))
        try:
            eventful(attempt)
        except Crash:
            pass
        except (OSError, ConnectctlError):
            attempt.task.close()  # as a run does it, whatever the failure
        finishes(archive)


def test_two_attempts_may_die_one_behind_the_other(tmp_path: Path) -> None:
    for seed in range(deep(30, 10)):
        dice, archive = random.Random(seed), Archive(tmp_path / str(seed), LONG)
        for _ in range(3):
            attempt = archive.attempt(Calls(dice.randrange(1, 130)))
            try:
                eventful(attempt)
            except Crash:
                continue
        finishes(archive)


def a_zombie_resumes(archive: Archive, kind: type[ParquetArchiveTask]) -> None:
    """It holds three rows while the next attempt archives all, and writes them before it finds
    itself fenced.
    """
    zombie = archive.attempt(kind=kind).start().rounds(most=3)
    archive.attempt(kind=kind).start().rounds(3).ends()
    with pytest.raises(Fenced):
        zombie.due()


def test_a_zombie_that_resumes_changes_nothing(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    a_zombie_resumes(archive, ParquetArchiveTask)
    archive.each_once()
    assert len(archive.on_disk - archive.named) == 1


def test_files_named_by_their_first_offset_lose_records_to_a_zombie(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    a_zombie_resumes(archive, NamedByFirst)
    with pytest.raises(AssertionError):
        archive.each_once()


def test_a_refused_commit_is_made_up_for_by_the_next_one(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    attempt = archive.attempt().start().rounds()
    attempt.consumer.refusals.append(Rebalancing("no"))
    attempt.due()
    assert (archive.files, attempt.notes) == ((), ["Commit of offsets failed: no"])
    attempt.due()
    archive.each_once()
    assert archive.named == archive.on_disk


def test_what_is_committed_is_not_named_again(tmp_path: Path) -> None:
    archive = Archive(tmp_path, {0: LOG[0]})
    attempt = archive.attempt().start().rounds(most=5).due()
    before = len(archive.files)
    attempt.rounds().due()
    assert attempt.sink.transaction_records(archive.group) == []
    assert len(archive.files) > before


def test_partitions_without_records_have_no_file(tmp_path: Path) -> None:
    archive = Archive(tmp_path, {0: [], 1: []})
    archive.attempt().start().rounds().due().ends()
    assert (archive.on_disk, archive.manifest) == (set(), {})


def test_a_file_ends_at_max_bytes(tmp_path: Path) -> None:
    archive = Archive(tmp_path, {0: [b"x" * 1000] * 3})
    attempt = archive.attempt()
    attempt.start()
    attempt.sink._most_bytes = 1500
    attempt.rounds().ends()
    assert [(each.first, each.last) for each in archive.files] == [(0, 1), (2, 2)]


def test_what_the_connector_says_of_itself() -> None:
    connector = ParquetArchive()
    configs = {"name": "a", "directory": "/archive", "topics": "t"}
    assert connector.validate(configs) == {}
    connector.start(configs)
    assert connector.task_configs(2) == [configs] * 2
    assert ParquetArchive.exactly_once
    assert ParquetArchive.internal_topics("a") == {"a-archive": {"cleanup.policy": "compact"}}


@pytest.mark.parametrize(
    ("configs", "name", "message"),
    [
        ({}, "directory", 'Missing required configuration "directory"'),
        ({"directory": "archive"}, "directory", "it must be an absolute path or a URI"),
        ({"directory": "s3://b/a", "max.rows": "0"}, "max.rows", "it must be a number above 0"),
        ({"directory": "/a", "max.bytes": "1k"}, "max.bytes", "it must be a number above 0"),
    ],
)
def test_what_will_not_do_is_named(configs: dict[str, str], name: str, message: str) -> None:
    found = ParquetArchive().validate(configs)
    assert list(found) == [name]
    assert message in found[name][0]


NOT_TEXT = [(b"\xc3", b"\xff\x00"), (b"1e3", b"1.50"), (b'{"a":  1}', b'"quoted"'), (None, None)]
"""Keys and values, and headers' values, that a converter of text or JSON would change."""


def _archived(
    tmp_path: Path, **config: str
) -> tuple[list[tuple[bytes | None, bytes | None, bytes | None]], list[str]]:
    given = [Record(value, key, headers=[("h", value)]) for key, value in NOT_TEXT]
    run = run_sink(ParquetArchive, {"directory": str(tmp_path), **config}, {"in": given})
    rows = [row for file in tmp_path.rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
    return [(row["key"], row["value"], row["headers"][0]["value"]) for row in rows], run.notes


def test_keys_values_and_headers_are_archived_byte_for_byte_without_converters(
    tmp_path: Path,
) -> None:
    assert _archived(tmp_path) == ([(key, value, value) for key, value in NOT_TEXT], [])


def test_a_converter_that_replaces_bytes_says_so(tmp_path: Path) -> None:
    rows, notes = _archived(tmp_path, **{"header.converter": "SimpleHeaderConverter"})
    assert rows[0] == (b"\xc3", b"\xff\x00", "\ufffd\x00".encode())
    assert notes == [
        "warning: 1 header value was not valid text and was changed by SimpleHeaderConverter: "
        "U+FFFD replaces bytes. header.converter=ByteArrayConverter keeps them."
    ]


def test_a_plan_names_converters_that_do_not_keep_the_bytes() -> None:
    config = {
        "directory": "/d",
        "value.converter": "JsonConverter",
        "key.converter": "ByteArrayConverter",
    }
    assert ParquetArchive().outlook(config).notes == [
        "value.converter=JsonConverter: the archive has what it converts to, not the bytes of the "
        "topics. Leave it out to keep them."
    ]
