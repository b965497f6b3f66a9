"""Commands say of a dump that is too big for memory what they say of one that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.ops.kafka import spill
from fakes.offsetworld import World

COMMANDS = (
    ["diff", "-f", "FILE"],
    ["diff", "-f", "FILE", "plain", "moved"],
    ["diff", "-f", "FILE", "old"],
    ["diff", "-f", "FILE", "nobody"],
    ["restore", "plain", "-f", "FILE", "--dry-run", "--stop"],
    ["restore", "moved", "-f", "FILE", "--dry-run", "--stop"],
    ["restore", "nobody", "-f", "FILE", "--dry-run"],
)


def dump(world: World, file: Path, *, partitions: bool) -> None:
    """What there was, without some of it, and with something else."""
    assert world.run("offsets", "backup", "--out", str(file)).exit_code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()[1:-1]]
    rows[1]["value"] = '{"lsn":77}'
    rows += [rows[0] | {"key": '["plain",{"table":"z"}]'}, rows[0] | {"offset": 99, "value": '{"lsn":99}'}]
    for row in rows if not partitions else ():
        del row["partition"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:2] + rows[3:]))


@pytest.mark.parametrize("partitions", [True, False])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command[0]} {command[-1]}")
def test_what_a_big_dump_is_compared_with(
    tmp_path: Path, command: list[str], partitions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, file = World(tmp_path / "journal"), tmp_path / "dump.jsonl"
    dump(world, file, partitions=partitions)
    row = ["offsets", *(str(file) if word == "FILE" else word for word in command), "-o", "json"]
    small = world.run(*row)
    monkeypatch.setattr(spill, "MOST", 2)
    big = world.run(*row)
    assert small.exit_code in (0, 2, 4)
    assert (big.exit_code, big.stdout, big.stderr) == (small.exit_code, small.stdout, small.stderr)


@pytest.mark.parametrize("partitions", [True, False])
def test_a_big_dump_is_shown(tmp_path: Path, partitions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world, file = World(tmp_path / "journal"), tmp_path / "dump.jsonl"
    dump(world, file, partitions=partitions)
    file.write_text("".join(line for line in file.read_text().splitlines(True) if '"topic": "off"' in line))
    row = ["offsets", "show", "-f", str(file), "-o", "json"]
    shown = []
    for most in (spill.MOST, 2):
        monkeypatch.setattr(spill, "MOST", most)
        shown.append(json.loads(world.run(*row).stdout) | {"readAt": ""})
        for connector in shown[-1]["connectors"]:
            for entry in connector["offsets"]:
                entry.pop("earlier", None)  # of a big dump only with --all-generations
    assert shown[0] == shown[1]


def test_a_restore_from_a_big_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, file = World(tmp_path / "journal"), tmp_path / "dump.jsonl"
    assert world.run("offsets", "backup", "--out", str(file)).exit_code == 0
    before = world.state()
    world.put("off", '["plain",{"table":"a"}]', '{"lsn":5}')
    world.put("off", '["plain",{"table":"new"}]', '{"lsn":6}')
    monkeypatch.setattr(spill, "MOST", 2)
    done = world.run("offsets", "restore", "plain", "-f", str(file), "--stop", "--yes")
    assert done.exit_code == 0, done.output
    assert world.state() == before
