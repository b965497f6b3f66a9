"""Files that options name: pipes, devices and links stay what they are, and no draft is left."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from connectctl.cli import html_file
from connectctl.cli.commands.offsets import spark_backup
from connectctl.cli.output.prometheus import MetricsFile
from connectctl.ops.core.errors import ConnectctlError

WRITERS: dict[str, Callable[[Path, str], object]] = {
    "--html": html_file.write,
    "--prometheus": lambda path, text: MetricsFile(path, "--prometheus").replace(text),
    "--out": lambda path, text: spark_backup.save([text], path),
}


@pytest.mark.parametrize("option", WRITERS)
def test_a_pipe_is_written_to_and_stays_a_pipe(option: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    WRITERS[option](pipe, "text\n")
    assert pipe.is_fifo()
    reader.join()
    assert got == ["text\n"]


@pytest.mark.parametrize("option", WRITERS)
def test_a_link_stays_a_link_and_its_file_keeps_its_mode_but_a_backup_is_the_users_alone(
    option: str, tmp_path: Path
) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    WRITERS[option](link, "new\n")
    assert (link.is_symlink(), file.read_text()) == (True, "new\n")
    assert file.stat().st_mode & 0o777 == (0o600 if option == "--out" else 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="the system has no /dev/full")
@pytest.mark.parametrize("option", WRITERS)
def test_a_full_device_is_an_error_in_one_line_with_its_cause(option: str, tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")  # a rename would replace this link, not the device
    with pytest.raises(ConnectctlError, match="cannot be written") as raised:
        WRITERS[option](link, "text\n")
    assert raised.value.why == "No space left on device"
    assert link.is_symlink()


def test_a_backup_that_fails_leaves_the_old_one_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "backup.jsonl"
    file.write_text("old")

    def lines() -> object:
        yield "first\n"
        raise ConnectctlError("The topic cannot be read further")

    with pytest.raises(ConnectctlError, match="read further"):
        spark_backup.save(lines(), file)  # type: ignore[arg-type]
    assert ([path.name for path in tmp_path.iterdir()], file.read_text()) == (
        ["backup.jsonl"],
        "old",
    )


def test_a_directory_is_no_file_for_metrics_and_said_before_anything_is_read(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConnectctlError, match="it is a directory"):
        MetricsFile(tmp_path, "--prometheus")
