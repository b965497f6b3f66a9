"""Changes of a sink's offsets beside what its tasks commit meanwhile: what was given stands, the
rest is kept or refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import apply
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.journal import Journal
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.memory import directory_in_memory
from fakes.offsetworld import resume_line
from fakes.sinkworld import GROUP, WAS, SinkWorld
from typer.testing import Result

ZERO, ONE = sorted(WAS)
GIVEN = json.dumps(
    {
        "offsets": [
            {
                "partition": {"kafka_topic": "lines", "kafka_partition": 0},
                "offset": {"kafka_offset": 2},
            }
        ]
    }
)
SET = ("offsets", "set", "archive", "-f", "-", "--stop", "--via", "kafka")


@pytest.fixture
def world() -> Iterator[SinkWorld]:
    with directory_in_memory() as path:
        yield SinkWorld(Path(path) / "journal", stopped=False)


def commit(world: SinkWorld) -> None:
    """Its tasks commit one record more of each partition."""
    offsets = world.groups.offsets[GROUP]
    offsets |= {place: offset + 1 for place, offset in offsets.items()}


def change(world: SinkWorld, *args: str) -> Result:
    return world.run(*args, "--yes", stdin=GIVEN)


def last_run(world: SinkWorld) -> str:
    return Journal(world.journal).runs()[0].id


def run_again(world: SinkWorld) -> None:
    """The sink is running, as a resume has made it."""
    world.state()
    world.groups.leaving.pop(GROUP, None)
    world.groups.members[GROUP] = ["connector-consumer-archive-0"]


def committed_while_answering(world: SinkWorld, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply, "confirm", lambda *args, **more: commit(world))


def committed_while_stopping(world: SinkWorld, patch: pytest.MonkeyPatch) -> None:
    real = world.workers.commanded

    def command(name: str, verb: str) -> None:
        if verb == "stop":
            commit(world)
        real(name, verb)

    patch.setattr(world.workers, "commanded", command)


@pytest.mark.parametrize("meanwhile", [committed_while_answering, committed_while_stopping])
def test_what_was_given_stands_and_the_backup_and_other_partitions_have_what_was_committed_last(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch, meanwhile: Any
) -> None:
    meanwhile(world, monkeypatch)
    done = change(world, *SET)
    assert done.exit_code == 0, done.stderr
    assert world.offsets == {ZERO: 2, ONE: WAS[ONE] + 1}
    monkeypatch.undo()
    run_again(world)
    undone = change(world, "offsets", "undo", last_run(world), "--stop")
    assert undone.exit_code == 0, undone.stderr
    assert world.offsets == {place: offset + 1 for place, offset in WAS.items()}


def test_offsets_that_a_running_sink_has_at_the_moment_are_set_once_it_is_stopped(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.groups.offsets[GROUP][ZERO] = 2
    refused = world.run(*(word for word in SET if word != "--stop"), "--yes", stdin=GIVEN)
    assert "stop it first" in refused.stderr
    committed_while_stopping(world, monkeypatch)  # what it had delivered before
    done = change(world, *SET)
    assert done.exit_code == 0, done.stderr
    assert world.offsets == {ZERO: 2, ONE: WAS[ONE] + 1}


def test_an_undo_after_the_sink_went_on_is_refused_with_the_number(world: SinkWorld) -> None:
    assert change(world, *SET).exit_code == 0
    run_again(world)
    commit(world)
    left = dict(world.offsets)
    refused = change(world, "offsets", "undo", last_run(world), "--stop")
    assert refused.exit_code == 4
    assert f"2 partitions of the group {GROUP} moved since the run" in refused.stderr
    assert world.offsets == left


def test_an_undo_that_is_answered_late_is_refused_and_the_sink_is_resumed(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert change(world, *SET).exit_code == 0
    run_again(world)
    committed_while_answering(world, monkeypatch)
    refused = change(world, "offsets", "undo", last_run(world), "--stop")
    assert "moved since the run" in refused.stderr
    assert "archive was stopped, and is resumed again" in refused.stderr
    world.state()
    assert world.workers.connectors["archive"].own == "RUNNING"
    assert world.offsets == {ZERO: 3, ONE: WAS[ONE] + 1}


def test_a_backup_from_before_an_interruption_gets_what_was_committed_since(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise Unreachable("broken off")

    monkeypatch.setattr(world.groups, "commit", broken)
    run = resume_line(change(world, *SET))
    assert run
    monkeypatch.undo()
    commit(world)  # somebody resumed it meanwhile
    assert change(world, "runs", "resume", run).exit_code == 0
    assert world.offsets == {ZERO: 2, ONE: WAS[ONE] + 1}
    run_again(world)
    assert change(world, "offsets", "undo", run, "--stop").exit_code == 0
    assert world.offsets == {
        TopicPartition("lines", n): WAS[TopicPartition("lines", n)] + 1 for n in (0, 1)
    }
