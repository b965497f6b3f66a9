"""Offsets that the connector would refuse: no command writes them, on the plan's facts and on those
of the step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import apply
from connectctl.ops.operations.offsets.changes import (
    CopyOffsets,
    MergeOffsets,
    OffsetRequest,
    ResetOffsets,
    RestoreBackup,
    SetOffsets,
)
from connectctl.ops.operations.offsets.record_changes import RecordChange
from connectctl.ops.operations.offsets.validity import Validity, validated
from fakes.offsetcases import CASES, CONFIGS, FILE, LINES, SOURCE, Case
from fakes.offsettopics import places, record
from fakes.offsetworld import World
from typer.testing import Result

REFUSED = 4
UNKNOWN = {"connector.class": "x.y.Source"}
A = ["c", {"t": "a"}]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


def configure(world: World, name: str, config: Mapping[str, str]) -> None:
    world.workers.connectors[name].config = {"name": name, **config}
    world._configure(name, world.workers.connectors[name].config)


def given(partition: Any, offset: Any) -> str:
    return json.dumps({"offsets": [{"partition": partition, "offset": offset}]})


def refused(world: World, result: Result) -> str:
    """What a command says that has written nothing."""
    assert result.exit_code == REFUSED, result.output
    assert world.workers.sent == []
    return result.stderr


# ----------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("via", ["kafka", "rest"])
def test_set_refuses_an_offset_before_anything_is_written_and_writes_it_with_force(
    world: World, case: Case, via: str
) -> None:
    configure(world, "plain", CONFIGS[case.kind])
    before = world.state()
    args = ("offsets", "set", "plain", "-f", "-", "--stop", "--yes", "--via", via)
    stdin = given(case.partition, case.offset)
    if case.says is None:
        assert world.run(*args, stdin=stdin).exit_code == 0
        return
    said = refused(world, world.run(*args, stdin=stdin))
    assert case.says in said
    assert "--force writes them nevertheless" in said
    assert world.state() == before
    if via == "kafka":
        forced = world.run(*args, "--force", stdin=stdin)
        assert forced.exit_code == 0, forced.output
        assert "warning: Forced: the connector would refuse" in forced.stderr
        assert len(world.state()["records"]) == len(before["records"]) + 1


@pytest.mark.parametrize(
    "offset", [{"lsn": "5"}, {"lsn": 5.0}, {"position": 5}, {"lsn": 5, "more": 1}]
)
def test_set_refuses_for_other_connectors_what_is_unlike_their_stored_offsets(
    world: World, offset: Any
) -> None:
    args = ("offsets", "set", "plain", "-f", "-", "--stop", "--yes")
    assert "the stored" in refused(world, world.run(*args, stdin=given({"table": "a"}, offset)))
    assert world.run(*args, stdin=given({"table": "new"}, {"lsn": 5})).exit_code == 0


def test_copy_refuses_offsets_for_a_connector_of_another_class(world: World) -> None:
    configure(world, "plain", CONFIGS[FILE])
    assert "the partition has no filename" in refused(
        world, world.run("offsets", "copy", "moved", "plain", "--yes", "--stop")
    )
    assert (
        world.run("offsets", "copy", "moved", "plain", "--yes", "--stop", "--force").exit_code == 0
    )


def test_restore_refuses_a_backup_of_another_class_and_undo_does_not(
    world: World, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.jsonl"
    assert world.run("offsets", "backup", "plain", "--out", str(saved)).exit_code == 0
    done = json.loads(
        world.run("offsets", "reset", "plain", "--stop", "--yes", "-o", "json").stdout
    )["run"]
    configure(world, "plain", CONFIGS[SOURCE])
    world.workers.sent.clear()
    restore = ("offsets", "restore", "plain", "-f", str(saved), "--stop", "--yes")
    assert "the partition has no cluster" in refused(world, world.run(*restore))
    assert world.run("offsets", "undo", done, "--stop", "--yes").exit_code == 0


def test_a_class_that_changes_between_the_confirmation_and_the_write_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(world, "plain", CONFIGS[FILE])
    before = world.state()["records"]
    monkeypatch.setattr(
        apply, "confirm", lambda *given, **more: configure(world, "plain", CONFIGS[SOURCE])
    )
    result = world.run(
        "offsets", "set", "plain", "-f", "-", "--stop", "--yes", stdin=given(LINES, {"position": 3})
    )
    assert result.exit_code != 0
    assert "Offset change of plain refused; nothing was written" in result.stderr
    assert "the connector would refuse" in result.stderr
    assert world.state()["records"] == before


def test_a_plan_says_where_nothing_validates_and_a_worker_can(world: World) -> None:
    assert world.run("offsets", "reset", "plain", "--stop", "--yes").exit_code == 0
    args = ("offsets", "set", "plain", "-f", "-", "--stop")
    stdin = given({"table": "a"}, {"lsn": "x"})
    warning = (
        "Nothing validates the offsets of plain: it has stored none, and no rule of "
        "x.y.Source is known."
    )
    assert (
        f"warning: {warning} With --via rest" in world.run(*args, "--dry-run", stdin=stdin).stdout
    )
    planned = json.loads(world.run(*args, "--dry-run", "-o", "json", stdin=stdin).stdout)
    assert planned["warnings"] == [f"{warning} With --via rest a worker asks the connector itself."]
    planned = json.loads(
        world.run(*args, "--via", "rest", "--dry-run", "-o", "json", stdin=stdin).stdout
    )
    assert (len(planned["preview"]), "warnings" in planned) == (1, False)
    done = world.run(*args, "--yes", stdin=stdin)
    assert (done.exit_code, warning in done.stderr) == (0, True)


def test_a_saved_plan_keeps_force(world: World, tmp_path: Path) -> None:
    configure(world, "plain", CONFIGS[FILE])
    args = ("offsets", "set", "plain", "-f", "-", "--stop", "--force", "--dry-run", "-o", "json")
    (tmp_path / "plan.json").write_text(
        world.run(*args, stdin=given(LINES, {"position": -1})).stdout
    )
    applied = world.run("runs", "apply", str(tmp_path / "plan.json"), "--yes")
    assert applied.exit_code == 0, applied.output


# ----------------------------------------------------------------------------------------- requests

WRONG = (RecordChange("global", 0, b'["c",{"t":"b"}]', b'{"lsn":"x"}', None),)


@pytest.mark.parametrize(
    "request_",
    [MergeOffsets("c", "global"), ResetOffsets("c"), RestoreBackup("c", "backup-0.jsonl", "run")],
)
def test_the_connectors_own_values_are_not_validated(request_: OffsetRequest) -> None:
    assert validated(request_, CONFIGS[FILE], places([record(A, {"lsn": 1})]), WRONG) == Validity()


@pytest.mark.parametrize(
    "request_",
    [SetOffsets("c", ()), CopyOffsets("c", "d", ()), RestoreBackup("c", "/tmp/backup.jsonl")],
)
def test_values_of_another_origin_are_validated(request_: OffsetRequest) -> None:
    found = validated(request_, UNKNOWN, places([record(A, {"lsn": 1})]), WRONG).problem
    assert found == (
        'the connector would refuse {"lsn":"x"} for {"t":"b"}: lsn is the string "x", and the '
        "stored ones have an integer"
    )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (b'["c",{"t":"b"}]', b"no", "it is not JSON"),
        (b'["c",{"t":"b"}]', b'{"lsn":[1]}', "primitive values only"),
        (b'["c",{"t":"b"}]', b"null", "it is the JSON null"),
        (b'["c"]', b'{"lsn":1}', "its key has 1 elements and not 2"),
    ],
)
def test_a_backup_that_workers_cannot_read_is_refused(key: bytes, value: bytes, says: str) -> None:
    writes = (RecordChange("global", 0, key, value, None),)
    assert says in str(
        validated(RestoreBackup("c", "x"), UNKNOWN, places([record(A, {"lsn": 1})]), writes).problem
    )


def test_the_stored_offsets_are_those_of_both_topics_and_those_that_are_overwritten() -> None:
    write = RecordChange("global", 0, b'["c",{"q":"b"}]', b'{"at":2}', b'{"at":1}')
    request = RestoreBackup("c", "x")
    assert validated(request, UNKNOWN, places([], []), (write,)) == Validity()
    found = places([record(A, None)], [record(["c", {"q": "b"}], {"at": 1})])
    assert validated(request, UNKNOWN, found, (write._replace(before=None),)) == Validity()


def test_many_refused_offsets_are_counted() -> None:
    writes = [
        RecordChange("global", 0, b'["c",{"t":%d}]' % n, b'{"lsn":"x"}', None) for n in range(9)
    ]
    found = validated(SetOffsets("c", ()), CONFIGS[FILE], places([]), writes).problem
    assert found is not None
    assert "; and 6 more" in found


def test_a_connector_that_is_not_configured_has_no_rule() -> None:
    found = validated(SetOffsets("c", ()), {}, places([]), WRONG)
    assert (
        found.warning
        == "Nothing validates the offsets of c: it has stored none, and no configuration of it "
        "was found."
    )
