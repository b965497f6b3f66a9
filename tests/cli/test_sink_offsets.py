"""Offsets of sinks and of groups: shown, set, reset, backed up and given back, beside those of
sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from connectctl.cli.session import Session
from connectctl.ops.clients.spark import session as spark_session
from connectctl.ops.jobs.offsets_engine import Spark
from connectctl.ops.kafka.topic_partition import TopicPartition
from depth import deep, strided
from fakes.kafkawrites import Faults
from fakes.offsetworld import resume_line
from fakes.sinkworld import ALONE, GROUP, WAS, SinkWorld
from typer.testing import Result

SCHEMAS = Path(__file__).parents[2] / "docs/schema"
UNDO = re.compile(r"connectctl offsets undo (\S+)")


def entries(**offsets: int | None) -> str:
    """The offsets of partitions of ``lines``, ``p0=7``, in KIP-875's shape."""
    return json.dumps(
        {
            "offsets": [
                {
                    "partition": {"kafka_topic": "lines", "kafka_partition": int(name[1:])},
                    "offset": None if offset is None else {"kafka_offset": offset},
                }
                for name, offset in offsets.items()
            ]
        }
    )


def good(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    return result


def parsed(result: Result, schema: str) -> Any:
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads((SCHEMAS / schema).read_text()))
    return data


def undo_line(result: Result) -> str:
    found = UNDO.search(result.output)
    assert found, result.output
    return found[1]


def test_a_sink_is_shown_with_its_lag_and_with_what_it_never_committed(tmp_path: Path) -> None:
    shown = good(SinkWorld(tmp_path).run("offsets", "show", "archive")).stdout.splitlines()
    assert [line.split() for line in shown[1:]] == [
        ["archive", '{"kafka_topic":"lines","kafka_partition":0}', '{"kafka_offset":5}', "10", "5"],
        ["archive", '{"kafka_topic":"lines","kafka_partition":1}', '{"kafka_offset":3}', "10", "7"],
        ["archive", '{"kafka_topic":"lines","kafka_partition":2}', "-", "10", "-"],
    ]


def test_what_scripts_get_of_a_sink_is_what_set_takes(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    shown = good(world.run("offsets", "show", "archive", "-o", "json"))
    (found,) = parsed(shown, "sink-offsets.json")["connectors"]
    assert (found["group"], found["state"], found["members"]) == (GROUP, "Empty", [])
    assert found["uncommitted"] == [{"kafka_topic": "lines", "kafka_partition": 2}]
    world.groups.offsets[GROUP] = {}
    good(world.run("offsets", "set", "archive", "-f", "-", "--yes", stdin=shown.stdout))
    assert world.offsets == WAS


def test_a_group_without_a_connector_is_shown_without_workers(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    world.workers.errors["/"] = AssertionError("no worker is asked")  # type: ignore[assignment]
    data = parsed(
        good(world.run("offsets", "show", "--group", ALONE, "-o", "json")), "sink-offsets.json"
    )
    assert [(c["name"], c["connector"], len(c["offsets"])) for c in data["connectors"]] == [
        (ALONE, False, 2)
    ]


def test_a_group_that_has_nothing_is_told_from_one_that_may_not_be_seen(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    assert (
        "No committed offsets: nothing"
        in good(world.run("offsets", "show", "--group", "nothing")).output
    )
    world.groups.hidden.add(GROUP)
    refused = world.run("offsets", "show", "archive")
    assert refused.exit_code == 5
    assert f"Describe on Group {GROUP}" in refused.stderr


def test_what_is_committed_of_a_topic_that_may_not_be_seen_is_unknown_and_not_nothing(
    tmp_path: Path,
) -> None:
    world = SinkWorld(tmp_path)
    world.kafka.hidden.add("lines")
    world.groups.offsets[GROUP] = {}  # as Kafka answers then
    shown = world.run("offsets", "show", "archive")
    assert shown.exit_code == 1
    assert f"No committed offsets could be read: {GROUP}." in shown.output
    assert "Describe on Topic lines" in shown.stderr
    world.groups.offsets[GROUP] = {TopicPartition("gone", 0): 4}
    refused = world.run("offsets", "reset", "archive", "--yes")
    assert refused.exit_code == 4
    assert "what is committed of the topic lines is unknown" in refused.stderr


def test_a_topic_that_is_gone_has_an_unknown_end(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    world.groups.offsets[GROUP] = {TopicPartition("gone", 0): 4}
    shown = good(world.run("offsets", "show", "archive"))
    assert shown.stdout.splitlines()[1].split()[-2:] == ["?", "?"]


@pytest.mark.parametrize(
    ("via", "how"), [((), "PATCH"), (("--via", "kafka"), None), (("--via", "rest"), "PATCH")]
)
def test_a_stopped_sink_is_set_and_given_back(
    tmp_path: Path, via: tuple[str, ...], how: str | None
) -> None:
    world = SinkWorld(tmp_path)
    done = good(
        world.run(
            "offsets",
            "set",
            "archive",
            "-f",
            "-",
            "--yes",
            *via,
            stdin=entries(p0=2, p1=None, p2=4),
        )
    )
    assert world.offsets == {("lines", 0): 2, ("lines", 2): 4}
    assert world.workers.sent == ([f"{how} /connectors/archive/offsets"] if how else [])
    good(world.run("offsets", "undo", undo_line(done), "--yes"))
    assert world.offsets == WAS
    assert "UNDONE" in good(world.run("offsets", "history", "-o", "json")).output.upper()


def test_workers_before_they_change_offsets_are_not_asked_to(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    world.workers.version = "3.5.2"
    refused = world.run(
        "offsets", "set", "archive", "-f", "-", "--yes", "--via", "rest", stdin=entries(p0=2)
    )
    assert refused.exit_code == 4
    assert "the workers are 3.5.2, and changing offsets requires 3.6" in refused.stderr
    good(world.run("offsets", "set", "archive", "-f", "-", "--yes", stdin=entries(p0=2)))
    assert (world.offsets[TopicPartition("lines", 0)], world.workers.sent) == (2, [])


def test_a_sink_is_reset_and_given_back(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    done = good(world.run("offsets", "reset", "archive", "--yes"))
    assert (world.offsets, world.workers.sent) == ({}, ["DELETE /connectors/archive/offsets"])
    good(world.run("offsets", "undo", undo_line(done), "--yes"))
    assert world.offsets == WAS
    one = '{"kafka_topic": "lines", "kafka_partition": 1}'
    good(world.run("offsets", "reset", "archive", "--partition", one, "--yes"))
    assert world.offsets == {("lines", 0): 5}


def test_a_group_without_a_connector_is_changed_by_its_brokers(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    done = good(
        world.run("offsets", "set", "--group", ALONE, "-f", "-", "--yes", stdin=entries(p0=1))
    )
    assert world.groups.offsets[ALONE] == WAS | {("lines", 0): 1}
    good(world.run("offsets", "undo", undo_line(done), "--stop", "--yes"))
    assert world.groups.offsets[ALONE] == WAS
    gone = good(world.run("offsets", "reset", "--group", ALONE, "--yes"))
    assert (world.groups.offsets[ALONE], world.offsets, world.workers.sent) == ({}, WAS, [])
    good(world.run("offsets", "undo", undo_line(gone), "--yes"))
    assert world.groups.offsets[ALONE] == WAS


def test_a_running_sink_is_refused_or_stopped_and_brought_back(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path, stopped=False)
    refused = world.run("offsets", "set", "archive", "-f", "-", "--yes", stdin=entries(p0=2))
    assert refused.exit_code == 4
    assert "archive is RUNNING: stop it first" in refused.stderr
    assert world.offsets == WAS
    good(world.run("offsets", "set", "archive", "-f", "-", "--stop", "--yes", stdin=entries(p0=2)))
    assert world.offsets == WAS | {("lines", 0): 2}
    verbs = [line.rpartition("/")[2] for line in world.workers.sent]
    assert verbs == ["stop", "offsets", "resume"]


@pytest.mark.parametrize("newer", [False, True])
def test_a_group_with_members_is_refused_and_they_are_named(tmp_path: Path, newer: bool) -> None:
    world = SinkWorld(tmp_path)
    world.groups.members = {ALONE: ["mine"], GROUP: ["other-reader"]}
    world.groups.newer = {ALONE, GROUP} if newer else set()
    for target in (("archive",), ("--group", ALONE)):
        refused = world.run("offsets", "reset", *target, "--yes")
        assert refused.exit_code == 4
        assert ("state Stable" if newer else "at 10.0.0.1") in refused.stderr
    assert world.groups.offsets == {GROUP: WAS, ALONE: WAS}


def test_a_group_with_members_that_has_committed_nothing_yet_is_refused_too(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    world.groups.members = {ALONE: ["mine"]}
    world.groups.offsets[ALONE] = {}
    refused = world.run("offsets", "reset", "--group", ALONE, "--yes")
    assert (refused.exit_code, "has members" in refused.stderr) == (4, True)


def test_members_that_come_after_the_plan_are_waited_for_and_then_refused(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path, stopped=False)
    command = world.workers.commanded

    def stays(name: str, verb: str) -> None:
        command(name, verb)
        world.groups.leaving.clear()

    world.workers.commanded = stays
    failed = world.run(
        "offsets", "set", "archive", "-f", "-", "--stop", "--yes", stdin=entries(p0=2)
    )
    assert failed.exit_code == 7
    assert f"The group {GROUP} has members" in failed.stderr
    assert (world.offsets, world.clock >= 10) == (WAS, True)


def test_offsets_in_an_open_transaction_are_not_replaced(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    world.groups.pending_groups.add(GROUP)
    refused = world.run("offsets", "reset", "archive", "--yes")
    assert refused.exit_code == 4
    assert "An open transaction holds offsets" in refused.stderr


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        ({"p7": 2}, "partition not found: lines-7"),
        ({"p0": 11}, "lines-0 ends at 10, and a task that begins at 11 would not find that offset"),
    ],
)
def test_what_no_task_could_begin_at_is_refused(
    tmp_path: Path, offsets: dict[str, int], why: str
) -> None:
    refused = SinkWorld(tmp_path).run(
        "offsets", "set", "archive", "-f", "-", "--yes", stdin=entries(**offsets)
    )
    assert refused.exit_code == 4
    assert why in refused.stderr


def test_a_sources_shape_is_no_sinks(tmp_path: Path) -> None:
    wrong = '{"offsets": [{"partition": {"table": "t"}, "offset": {"lsn": 7}}]}'
    refused = SinkWorld(tmp_path).run("offsets", "set", "archive", "-f", "-", "--yes", stdin=wrong)
    assert refused.exit_code == 2
    assert (
        "a sink's partition has kafka_topic and kafka_partition, and nothing else" in refused.stderr
    )


def test_a_connector_and_a_group_are_not_named_together(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    for args in (
        ("reset", "archive", "--group", ALONE),
        ("reset",),
        ("show", "archive", "--group", ALONE),
    ):
        assert world.run("offsets", *args).exit_code == 2
    assert world.run("offsets", "reset", "--group", ALONE, "--stop", "--yes").exit_code == 2
    assert world.run("offsets", "show", "archive", "plain").exit_code == 2


def test_a_dry_run_changes_nothing_and_its_plan_is_carried_out_until_it_is_stale(
    tmp_path: Path,
) -> None:
    world = SinkWorld(tmp_path / "journal")
    planned = good(
        world.run(
            "offsets", "set", "archive", "-f", "-", "--dry-run", "-o", "json", stdin=entries(p0=2)
        )
    )
    data = parsed(planned, "plan.json")
    assert [(w["before"], w["after"]) for w in data["preview"]] == [
        ({"kafka_offset": 5}, {"kafka_offset": 2})
    ]
    assert world.offsets == WAS
    file = tmp_path / "plan.json"
    file.write_text(planned.stdout)
    good(world.run("runs", "apply", str(file), "--yes"))
    assert world.offsets == WAS | {("lines", 0): 2}
    world.offsets[TopicPartition("lines", 0)] = 4
    stale = world.run("runs", "apply", str(file), "--yes")
    assert (stale.exit_code, "stale" in stale.stderr) == (4, True)


def test_offsets_that_move_before_the_answer_are_refused_with_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = SinkWorld(tmp_path / "journal")

    def confirm(*_: object, **__: object) -> None:
        world.offsets.update({TopicPartition("lines", 0): 7, TopicPartition("lines", 1): 8})

    monkeypatch.setattr("connectctl.cli.apply.confirm", confirm)
    refused = world.run("offsets", "set", "archive", "-f", "-", stdin=entries(p0=2, p1=2))
    assert refused.exit_code == 4
    assert "nothing was written: 2 partitions moved. Make a new plan." in refused.stderr
    assert [world.offsets[TopicPartition("lines", partition)] for partition in (0, 1)] == [7, 8]


def test_a_group_that_has_what_was_asked_for_is_left_alone(tmp_path: Path) -> None:
    done = good(
        SinkWorld(tmp_path).run(
            "offsets", "set", "archive", "-f", "-", "--yes", stdin=entries(p0=5)
        )
    )
    assert "Nothing to do." in done.stdout


def test_a_consumer_on_another_cluster_is_not_taken_for_one_here(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path, more={"consumer.override.bootstrap.servers": "far:9092"})
    refused = world.run("offsets", "show", "archive")
    assert refused.exit_code == 2
    assert "--group GROUP" in refused.stderr


def test_the_group_of_an_override_is_the_sinks(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path, more={"consumer.override.group.id": ALONE})
    good(world.run("offsets", "reset", "archive", "--yes", "--via", "kafka"))
    assert (world.groups.offsets[ALONE], world.offsets) == ({}, WAS)


def test_a_backup_has_sources_and_sinks_and_restores_both(tmp_path: Path) -> None:
    world, file = SinkWorld(tmp_path / "journal"), tmp_path / "all.jsonl"
    good(world.run("offsets", "backup", "--out", str(file)))
    assert sum('"group"' in line for line in file.read_text().splitlines()) == 1
    world.groups.offsets[GROUP] = {TopicPartition("lines", 2): 1}
    good(world.run("offsets", "restore", "archive", "-f", str(file), "--yes"))
    assert world.offsets == WAS
    assert "No differences." in good(world.run("offsets", "diff", "plain", "-f", str(file))).output
    good(world.run("offsets", "backup", "archive", "--out", str(file)))
    assert [json.loads(line)["group"] for line in file.read_text().splitlines()[1:-1]] == [GROUP]
    good(world.run("offsets", "restore", "archive", "-f", str(file), "--yes"))
    file.write_text("")
    refused = world.run("offsets", "restore", "archive", "-f", str(file), "--yes")
    assert "has no committed offsets of archive" in refused.stderr


def test_a_group_that_may_not_be_seen_is_named_by_a_backup_of_everything(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path / "journal")
    world.groups.hidden.add(GROUP)
    everything = good(world.run("offsets", "backup", "--out", str(tmp_path / "all")))
    assert (
        f"warning: not in the backup: Not authorized to see the group {GROUP}" in everything.stderr
    )
    assert world.run("offsets", "backup", "archive", "--out", str(tmp_path / "one")).exit_code == 5


class SavedBySpark(Spark):
    """Stands in for Spark: it has read no offsets of sources."""

    def __init__(self) -> None:
        self.written: list[str] = []

    @contextmanager
    def backup(self, sources: Any, connectors: Any) -> Iterator[Any]:
        text = SimpleNamespace(text=self.written.append)
        write = SimpleNamespace(mode=lambda mode: text)
        yield SimpleNamespace(write=write, toLocalIterator=lambda **given: iter(()))


@pytest.mark.parametrize("parts", [False, True], ids=["a file", "part files"])
def test_a_backup_by_spark_has_sinks_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: bool
) -> None:
    monkeypatch.setattr(Session, "spark", SavedBySpark())
    monkeypatch.setattr(spark_session, "require", lambda: None)
    world, out = SinkWorld(tmp_path / "journal"), tmp_path / "out"
    if parts:
        out.mkdir()
    good(world.run("offsets", "backup", "--engine", "spark", "--out", str(out)))
    world.groups.offsets[GROUP] = {}
    good(world.run("offsets", "restore", "archive", "-f", str(out), "--engine", "local", "--yes"))
    assert world.offsets == WAS


@pytest.mark.parametrize("via", ["rest", "kafka"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whatever_call_breaks_the_change_is_whole_once_the_run_is_resumed(
    tmp_path: Path, via: str, after: bool
) -> None:
    args = ("offsets", "set", "archive", "-f", "-", "--yes", "--via", via)
    for at in strided(range(60), deep(1, 2)):
        world = SinkWorld(tmp_path / str(at), faults=Faults(at, after))
        result = world.run(*args, stdin=entries(p0=2, p1=None))
        if world.faults.fired is None:
            break
        world.faults = Faults()
        if run := resume_line(result):
            was, sent = dict(world.offsets), list(world.workers.sent)
            left = good(world.run("runs", "resume", run, "--dry-run", "-o", "json"))
            assert json.loads(left.stdout)["operation"] == "resume offsets set"
            assert (world.offsets, world.workers.sent) == (was, sent)
            good(world.run("runs", "resume", run, "--yes"))
        else:
            good(world.run(*args, stdin=entries(p0=2, p1=None)))
        assert world.offsets == {("lines", 0): 2}, f"broken at {at}: {world.faults.fired}"
    else:
        pytest.fail("more calls than were tried")


def test_pending_offsets_are_marked_with_the_transaction_that_holds_them(tmp_path: Path) -> None:
    world = SinkWorld(tmp_path)
    assert "pending" not in good(world.run("offsets", "show", "--group", GROUP)).stdout
    world.groups.pending_groups.add(GROUP)
    (shown,) = parsed(
        good(world.run("offsets", "show", "--group", GROUP, "-o", "json")), "sink-offsets.json"
    )["connectors"]
    assert all(each["pending"] for each in shown["offsets"])
    assert shown["pending"]
    assert shown["waitsFor"] == "the transaction of app-0"
    table = good(world.run("offsets", "show", "--group", GROUP)).stdout
    assert " (pending)" in table
    assert "are pending (KIP-447), and wait for the transaction of app-0" in table.replace(
        "\n", " "
    )
