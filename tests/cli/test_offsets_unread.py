"""Offsets of which a part could not be read: every command has the exit code of the cause, and names it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.records import UnreadTail
from fakes.offsetworld import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


COMMANDS = {
    "diff of one": ["offsets", "diff", "moved"],
    "diff of all": ["offsets", "diff"],
    "diff with a file": ["offsets", "diff", "-f", "{file}"],
    "backup of one": ["offsets", "backup", "moved"],
    "backup of all": ["offsets", "backup"],
    "copy": ["offsets", "copy", "moved", "plain", "--stop", "--yes"],
}


def args_of(world: World, command: str) -> list[str]:
    file = world.journal.parent / "saved.jsonl"
    file.write_text(world.run("offsets", "backup", "plain").stdout)
    return [word.format(file=file) for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dedicated_topic_that_may_not_be_read_is_a_missing_right(world: World, command: str) -> None:
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
    assert (result.exit_code, "The brokers do not respond" in result.stderr) == (5, True), result.output


@pytest.mark.parametrize("command", ["diff of one", "backup of one", "backup of all", "copy"])
def test_an_open_transaction_is_neither(world: World, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, real = args_of(world, command), world.kafka.image

    def image(topics: list[str], **given: object) -> object:
        found = real(topics, **given)  # type: ignore[arg-type]
        held = (UnreadTail(0, 1, 2),)
        return {name: each if name != "own" else replace(each, held_back=held) for name, each in found.items()}

    monkeypatch.setattr(world.kafka, "image", image)
    result = world.run(*args)
    assert (result.exit_code, "open transaction" in result.stderr) == (1, True), result.output
    assert "connectctl transactions hanging" in result.stderr
