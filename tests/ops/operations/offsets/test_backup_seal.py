"""A backup that was cut or changed, by one byte or one line, is refused before anything is
changed.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets import backup_seal, dump_lines
from fakes.anyjson import encodings
from fakes.offsetworld import World
from hypothesis import given

PARTS = [
    {"topic": "t", "partition": 0, "offset": n, "timestamp": None, "key": f"k{n}", "value": "v"}
    for n in range(3)
]
LINES = [json.dumps(part) + "\n" for part in PARTS]


def sealed(tmp_path: Path, name: str = "backup.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(backup_seal.sealed(iter(LINES))))
    return path


def read(path: Path) -> int:
    return sum(1 for _ in dump_lines.read_records(dump_lines.blocks_of(path), str(path)))


def test_a_backup_is_read_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sealed(tmp_path)
    assert read(path) == 3
    for size in (1, 50, 100, 200):
        monkeypatch.setattr(dump_lines, "BLOCK", size)
        assert read(path) == 3


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    raw, path = sealed(tmp_path).read_bytes(), tmp_path / "changed"
    for at in range(len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(BadInput):
            read(path)


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    raw, path = sealed(tmp_path).read_bytes(), tmp_path / "cut"
    for size in range(1, len(raw)):
        path.write_bytes(raw[:size])
        with pytest.raises(BadInput):
            read(path)


def test_lines_that_were_chosen_and_dumps_of_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "chosen"
    path.write_text(
        "".join(
            line
            for line in sealed(tmp_path).read_text().splitlines(keepends=True)
            if '"key"' in line
        )
    )
    assert read(path) == 3


def test_part_files_are_those_that_were_sealed(tmp_path: Path) -> None:
    directory = tmp_path / "parts"
    directory.mkdir()
    for n, line in enumerate(LINES):
        (directory / f"part-{n}").write_text(line)
    assert read(directory) == 3
    backup_seal.seal_directory(directory)
    assert read(directory) == 3
    changed = shutil.copytree(directory, tmp_path / "changed")
    (changed / "part-1").write_text(LINES[1].replace("v", "w"))
    with pytest.raises(BadInput, match=r"part-1 was changed after it was made.*_sha256\.json"):
        read(changed)
    (changed / "part-1").unlink()
    with pytest.raises(BadInput, match="part-1 is missing"):
        read(changed)
    (changed / backup_seal.SUMS).write_text("[")
    with pytest.raises(BadInput, match="was changed"):
        read(changed)


@given(raw=encodings(json.loads(LINES[0])))
def test_lines_of_any_kind_are_read_or_bad_input(raw: bytes) -> None:
    for whole in (True, False):
        with suppress(BadInput):
            list(dump_lines.read_records([raw + b"\n"], "dump", complete=whole))


def test_a_backup_that_was_changed_by_one_byte_is_not_restored(tmp_path: Path) -> None:
    world, file = World(tmp_path / "journal"), tmp_path / "backup.jsonl"
    assert world.run("offsets", "backup", "--out", str(file)).exit_code == 0
    raw = file.read_text()
    file.write_text(raw.replace("lsn", "lsm", 1))
    before = world.state()
    for args in (
        ("restore", "plain", "-f", str(file), "--stop", "--yes"),
        ("diff", "-f", str(file)),
    ):
        refused = world.run("offsets", *args)
        assert refused.exit_code == 2, refused.output
        assert f"The backup {file} was changed after it was made" in refused.stderr
        assert "Use another copy" in refused.stderr
    assert world.state() == before
