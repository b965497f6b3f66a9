"""A worker's properties file is edited as a whole or not at all, and what it was is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from connectctl.ops.clients.drivers import atomic_file
from connectctl.ops.clients.drivers.command import ShellLines
from connectctl.ops.clients.drivers.command_runner import Commands
from connectctl.ops.clients.drivers.properties_file import PropertiesFile
from connectctl.ops.core.errors import ConnectctlError

KEY = "exactly.once.source.support"
TEXT = b"# the worker\r\ngroup.id = connect\r\nexactly.once.source.support : disabled\r\nsasl = \xfc\r\n"
AFTER = TEXT.replace(b"disabled", b"preparing")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "connect-worker-1.properties"
    file.write_bytes(TEXT)
    return file


def driver(file: Path, restart: str = "echo restarted {host}") -> PropertiesFile:
    return PropertiesFile(str(file), ShellLines({"restart": restart}, Commands(60.0)))


def backups(file: Path) -> list[Path]:
    return sorted(p for p in file.parent.iterdir() if p.name.startswith(f"{file.name}.connectctl-"))


def test_the_path_is_filled_in_for_the_worker(file: Path) -> None:
    found = driver(file.with_name("connect-{host}.properties"))
    assert found.check("worker-1:8083") is None
    assert "file not found" in str(found.check("worker-2:8083"))
    told = found.configured("worker-1:8083", KEY)
    assert told is not None
    assert (told.value, told.source) == ("disabled", f"file {file}")


def test_only_the_value_changes_and_what_it_was_lies_beside_it(file: Path) -> None:
    said = driver(file).change("worker-1:8083", KEY, "preparing")
    assert file.read_bytes() == AFTER
    (backup,) = backups(file)
    assert backup.read_bytes() == TEXT
    assert str(backup) in str(said)


def test_there_is_one_backup_for_all_changes_of_a_run_and_none_is_ever_overwritten(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "connectctl.ops.clients.drivers.atomic_file.time.strftime", lambda *_: "20260101T000000Z"
    )
    first = driver(file)
    for value in ("preparing", "preparing", "enabled"):
        first.change("worker-1:8083", KEY, value)
    assert [b.read_bytes() for b in backups(file)] == [TEXT]
    driver(file).change("worker-1:8083", KEY, "disabled")
    assert [b.read_bytes() for b in backups(file)] == [TEXT, TEXT.replace(b"disabled", b"enabled")]


def test_a_change_to_what_is_so_already_writes_nothing(file: Path) -> None:
    def seen() -> tuple[bytes, int, int]:  # not st_atime, which reading moves
        return file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns

    os.utime(file, ns=(0, 1))
    before = seen()
    assert "already" in str(driver(file).change("worker-1:8083", KEY, "disabled"))
    assert seen() == before
    assert backups(file) == []


def test_a_link_is_followed_and_stays_a_link(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "link.properties"
    link.symlink_to(file)
    driver(link).change("worker-1:8083", KEY, "preparing")
    assert link.is_symlink()
    assert file.read_bytes() == AFTER
    assert len(backups(file)) == 1


def test_the_mode_stays_also_of_the_backup(file: Path) -> None:
    file.chmod(0o640)
    driver(file).change("worker-1:8083", KEY, "preparing")
    assert [p.stat().st_mode & 0o7777 for p in (file, *backups(file))] == [0o640, 0o640]


@root_only
def test_the_owner_stays_also_of_the_backup(file: Path) -> None:
    os.chown(file, 1234, 2345)
    driver(file).change("worker-1:8083", KEY, "preparing")
    assert {(p.stat().st_uid, p.stat().st_gid) for p in (file, *backups(file))} == {(1234, 2345)}


def test_what_a_killed_run_left_is_cleared(file: Path) -> None:
    left = file.with_name(f"{file.name}.connectctl-new")
    left.write_text("half")
    driver(file).change("worker-1:8083", KEY, "preparing")
    assert file.read_bytes() == AFTER
    assert not left.exists()


@pytest.mark.parametrize("broken", ["write", "rename", "fsync"])
def test_a_change_that_fails_leaves_the_file_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    found = driver(file)
    with monkeypatch.context() as patch:
        if broken == "rename":
            patch.setattr(Path, "rename", fail)
        elif broken == "fsync":
            patch.setattr(os, "fsync", fail)
        else:
            patch.setattr("connectctl.ops.clients.drivers.atomic_file._write_new", fail)
        with pytest.raises(ConnectctlError, match="No space left"):
            found.change("worker-1:8083", KEY, "preparing")
    assert file.read_bytes() == TEXT
    assert not file.with_name(f"{file.name}.connectctl-new").exists()


def test_somebody_elses_change_is_not_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = atomic_file._write_new

    def meanwhile(path: Path, content: bytes, *, like: Path) -> None:
        write(path, content, like=like)
        if path.name.endswith("-new"):
            file.write_bytes(TEXT + b"more=1\n")

    monkeypatch.setattr(atomic_file, "_write_new", meanwhile)
    with pytest.raises(ConnectctlError, match="changed by another process"):
        driver(file).change("worker-1:8083", KEY, "preparing")
    assert file.read_bytes() == TEXT + b"more=1\n"


def test_what_cannot_be_edited_is_told_before_anything_is_done(tmp_path: Path, file: Path) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bad").write_text("a=1\nb=\\u00zz\n")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    expected = {
        "none": "file not found",
        "directory": "is a directory",
        "pipe": "not a regular file",
        "bad": "line 2 has a \\u that is not followed by four hexadecimal digits, and no worker "
        "starts with it",
        "dangling": "a link to",
    }
    for name, why in expected.items():
        assert why in str(driver(tmp_path / name).check("w:1")), name
        with pytest.raises(ConnectctlError, match="cannot be changed"):
            driver(tmp_path / name).change("w:1", KEY, "preparing")


def test_what_may_not_be_written_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write anything, so the answers of the system are made up.
    refused = {file: os.W_OK}
    monkeypatch.setattr(os, "access", lambda path, mode: not refused.get(Path(path), 0) & mode)
    assert str(driver(file).check("w:1")).endswith("cannot be written")
    refused = {file: os.R_OK}
    assert str(driver(file).check("w:1")).endswith("cannot be read")
    refused = {file.parent: os.W_OK}
    assert "is not writable" in str(driver(file).check("w:1"))
    refused = {}
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert "belongs to user" in str(driver(file).check("w:1"))


def test_the_restart_is_the_operators_command(file: Path) -> None:
    assert driver(file).restart("worker-1:8083") == "restarted worker-1"
    with pytest.raises(ConnectctlError, match="The restart of worker-1:8083 failed"):
        driver(file, restart="exit 3").restart("worker-1:8083")


def test_the_plan_says_file_and_command(file: Path) -> None:
    said = driver(file, restart="curl -u a:hunter2 {url}").describe("w:1", KEY, "preparing")
    assert said == f"set {KEY}=preparing in {file}, then run: curl -u a:****** http://w:1"
