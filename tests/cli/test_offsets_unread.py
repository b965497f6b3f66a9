"""Offsets of which a part could not be read: every command has the exit code of the cause, and
names it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.records import UnreadTail
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from fakes.coordinators import FakeCoordinators
from fakes.offsetworld import World
from fakes.session import FakeSession

OWN, ID = TopicPartition("own", 0), "connect-moved-5"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


COMMANDS = {
    "diff of one": ["offsets", "diff", "moved"],
    "diff of all": ["offsets", "diff"],
    "diff with a file": ["offsets", "diff", "-f", "{file}"],
    "backup of one": ["offsets", "backup", "moved"],
    "backup of all": ["offsets", "backup"],
}
CHANGES = {
    "copy": ["offsets", "copy", "moved", "plain", "--stop", "--yes"],
    "copy to it": ["offsets", "copy", "plain", "moved", "--stop", "--yes"],
    "merge": ["offsets", "merge", "moved", "--into", "global", "--stop", "--yes"],
    "merge of a running one": ["offsets", "merge", "moved", "--into", "dedicated", "--yes"],
    "reset": ["offsets", "reset", "moved", "--stop", "--yes"],
    "set through the workers": [
        "offsets",
        "set",
        "moved",
        "-f",
        "{offsets}",
        "--stop",
        "--via",
        "rest",
        "--yes",
    ],
}
COMMANDS |= CHANGES


def args_of(world: World, command: str) -> list[str]:
    file = world.journal.parent / "saved.jsonl"
    file.write_text(world.run("offsets", "backup", "plain").stdout)
    offsets = world.journal.parent / "offsets.json"
    offsets.write_text('{"offsets": [{"partition": {"table": "a"}, "offset": {"lsn": 9}}]}')
    return [word.format(file=file, offsets=offsets) for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dedicated_topic_that_may_not_be_read_is_a_missing_right(
    world: World, command: str
) -> None:
    args = args_of(world, command)
    world.kafka.forbidden = {"own"}
    result = world.run(*args)
    assert result.exit_code == 5, result.output
    assert "Could not read all offsets" in result.stderr
    assert "Read on Topic own is missing" in result.stderr
    assert result.stderr.count("kafka-acls --add") == 1
    error = json.loads(world.run(*args, "-o", "json").stderr)["error"] if "diff" in command else {}
    assert error.get("code", "not-authorized") == "not-authorized"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dedicated_topic_that_does_not_answer_is_no_answer(
    world: World, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    args, real = args_of(world, command), world.kafka.image

    def image(topics: list[str], **given: object) -> object:
        if "own" in topics:
            raise Unreachable("The brokers do not respond", why="timed out")
        return real(topics, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(world.kafka, "image", image)
    result = world.run(*args)
    assert (result.exit_code, "The brokers do not respond" in result.stderr) == (5, True), (
        result.output
    )


@pytest.mark.parametrize("command", ["diff of one", "backup of one", "backup of all", *CHANGES])
def test_an_open_transaction_is_neither_and_the_next_step_names_it(
    world: World, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    args, real = args_of(world, command), world.kafka.image

    def image(topics: list[str], **given: object) -> object:
        found = real(topics, **given)  # type: ignore[arg-type]
        held = (UnreadTail(0, 1, 2),)
        return {
            name: each if name != "own" else replace(each, held_back=held)
            for name, each in found.items()
        }

    coordinators = FakeCoordinators(
        {ID: Transaction(ID, "Ongoing", 7, 3, 60_000, 0, (OWN,))},
        partitions={OWN: (PartitionProducer(7, 3, 0, 0, 1),)},
    )
    monkeypatch.setattr(world.kafka, "image", image)
    monkeypatch.setattr(FakeSession, "transactions", property(lambda session: coordinators))
    result = world.run(*args)
    assert result.exit_code == (4 if command in CHANGES else 1), result.output
    assert "an open transaction blocks reading own-0 to its end" in result.stderr.lower()
    assert (
        result.stderr.count("connectctl transactions lag --topic own names its transactional id")
        == 1
    )
    assert ID in world.run("transactions", "lag", "--topic", "own").stdout
    ends = world.run("transactions", "abort", ID, "--dry-run")
    assert (ends.exit_code, f"abort the transaction of {ID}" in ends.stdout) == (0, True), (
        ends.output
    )
