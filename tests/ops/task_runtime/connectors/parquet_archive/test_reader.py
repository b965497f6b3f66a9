"""Orphans: what is removed, and what never is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from connectctl.ops.task_runtime.connectors.parquet_archive.reader import sweep
from fakes.archiveworld import Archive, Calls, Crash

LOG = {0: [b"%d" % n for n in range(9)]}
HOUR = 3600.0


def crashed(archive: Archive, fail_at: int) -> None:
    try:
        archive.attempt(Calls(fail_at)).start().rounds().ends()
    except Crash:
        return


def test_files_of_aborted_attempts_are_found_and_removed(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    for fail_at in range(1, 40):
        crashed(archive, fail_at)
    archive.attempt().start().rounds(2).ends()
    orphans = archive.on_disk - archive.named
    assert any(name.endswith(".tmp") for name in orphans)
    later = time.time() + 2 * HOUR
    found = sweep(str(tmp_path), archive.files, now=later)
    assert {each.name for each in found} == orphans
    assert all(each.age > HOUR and each.bytes >= 0 for each in found)
    assert archive.on_disk - archive.named == orphans  # they were listed only
    assert sweep(str(tmp_path), archive.files, now=later, remove=True) == found
    assert archive.on_disk == archive.named
    archive.each_once()


def test_young_files_and_those_of_others_are_kept(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    crashed(archive, 12)
    archive.attempt().start().rounds(2).ends()
    (tmp_path / "t/0/notes.txt").write_text("mine")
    (tmp_path / "0-1.parquet").write_text("mine")
    assert sweep(str(tmp_path), archive.files) == ()
    found = sweep(str(tmp_path), archive.files, now=time.time() + 2 * HOUR)
    assert {each.name for each in found} == archive.on_disk - archive.named - {
        "t/0/notes.txt",
        "0-1.parquet",
    }
    assert sweep(str(tmp_path), (), now=time.time() + 2 * HOUR) == ()


def test_files_of_a_live_attempt_are_kept_whatever_their_age(tmp_path: Path) -> None:
    archive = Archive(tmp_path, LOG)
    live = archive.attempt().start().rounds(most=4).due().rounds()
    waiting = archive.on_disk - archive.named
    assert len(waiting) == 1
    for each in waiting:
        os.utime(tmp_path / each, (0, 0))
    assert sweep(str(tmp_path), archive.files, remove=True) == ()
    live.ends()
    archive.each_once()
