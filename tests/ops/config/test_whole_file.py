"""Files that are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from connectctl.ops.config import whole_file


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_that_is_written_is_the_users_alone_whatever_it_was(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    file.chmod(0o644)
    assert whole_file.write(file, "new é") == file
    assert (file.read_bytes(), mode(file), names(tmp_path)) == ("new é".encode(), 0o600, ["f"])


def test_an_output_keeps_its_mode_and_a_new_one_has_the_umasks(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch(0o600)
    before = os.umask(0o027)
    try:
        whole_file.publish(old, b"\xff")
        whole_file.publish(new, "text")
    finally:
        os.umask(before)
    assert [mode(old), mode(new)] == [0o600, 0o640]
    assert (old.read_bytes(), names(tmp_path)) == (b"\xff", ["new", "old"])


@pytest.mark.parametrize("broken", ["the content", "fsync", "replace"])
def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_beside_it(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif broken == "replace":
        monkeypatch.setattr(Path, "replace", full)

    def write() -> None:
        with whole_file.draft(tmp_path) as draft:
            draft.write(b"half")
            if broken == "the content":
                full()
            whole_file.put(draft, file)

    with pytest.raises(OSError, match="No space left"):
        write()
    assert (file.read_text(), names(tmp_path)) == ("old", ["f"])
