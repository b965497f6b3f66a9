"""A right that brokers report as missing refuses a change of offsets before its first step, and no
other does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.rights import Allowed
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.operations.cluster.denied_rights import denied
from fakes.acls import allow
from fakes.offsetworld import World, resume_line
from fakes.rights import ME, FakeRights
from fakes.session import FakeSession

SET = '{"offsets": [{"partition": {"table": "a"}, "offset": {"lsn": 9}}]}'
CHANGES = {
    "set plain -f - --stop": "Write on Topic off",
    "reset plain --stop": "Write on Topic off",
    "reset other": "Write on Topic off",
    "copy moved plain --stop": "Write on Topic off",
    "merge moved --into global --unset-topic --stop": "Write on Topic off",
    "reset moved --stop": "Write on Topic own",
    "merge plain --into dedicated --topic fresh --stop": "Create on Topic fresh",
    "merge moved --into dedicated --stop": "Write on TransactionalId connectctl-offsets-connect",
}


def everything_but(right: str) -> FakeRights:
    """The rights of a principal that lacks ``right`` alone."""
    operation, kind, name = right.replace(" on ", " ").split(" ")
    resource = Resource.TOPIC if kind == "Topic" else Resource.TRANSACTIONAL_ID
    every = [
        allow(ME, Operation.ALL, each, "*") for each in (Resource.TOPIC, Resource.TRANSACTIONAL_ID)
    ]
    # Who may not write with a transactional id shows that only where it may not describe it,
    # either.
    lacks = Operation[operation.upper()] if resource is Resource.TOPIC else Operation.ALL
    return FakeRights(
        (*every, allow(ME, lacks, resource, name, deny=True)), frozenset(("off", "own", "cfg"))
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


def principal(monkeypatch: pytest.MonkeyPatch, rights: Any) -> None:
    monkeypatch.setattr(FakeSession, "own_rights", property(lambda session: rights))


@pytest.mark.parametrize("words", CHANGES)
def test_a_right_that_is_missing_refuses_the_change_before_its_first_step(
    world: World, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.state()
    principal(monkeypatch, everything_but(CHANGES[words]))
    result = world.run("offsets", *words.split(), "--yes", stdin=SET)
    assert result.exit_code == 5, result.output
    assert f"nothing was changed: {CHANGES[words]} is missing" in result.stderr
    assert world.state() == before
    assert world.workers.sent == []
    assert [run.state for run in Journal(world.journal).runs()] == [RunState.REFUSED]


@pytest.mark.parametrize("words", CHANGES)
def test_brokers_that_do_not_report_rights_refuse_nothing(
    world: World, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass
    class Silent(FakeRights):
        def on_topics(self, names: Sequence[str]) -> dict[str, Allowed]:
            return dict.fromkeys(names, Allowed(None, "the broker does not report it"))

        def creates(self, names: Sequence[str]) -> dict[str, bool | None]:
            return dict.fromkeys(names)

        def describes(self, ids: Sequence[str]) -> dict[str, bool | None]:
            return dict.fromkeys(ids)

    principal(monkeypatch, Silent())
    assert world.run("offsets", *words.split(), "--yes", stdin=SET).exit_code == 0


def test_a_right_that_was_taken_away_refuses_a_resumed_run_and_it_can_be_resumed_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(*given: Any) -> int:
        raise Unreachable("broken off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.kafka, "transact", broken_off)
        broken = world.run("offsets", "reset", "plain", "--stop", "--yes")
    run = resume_line(broken)
    assert run is not None, broken.output
    before = world.state()
    principal(monkeypatch, everything_but("Write on Topic off"))
    refused = world.run("runs", "resume", run, "--yes")
    assert (refused.exit_code, "Write on Topic off is missing" in refused.stderr) == (7, True), (
        refused.output
    )
    assert world.state() == before
    monkeypatch.undo()
    assert world.run("runs", "resume", run, "--yes").exit_code == 0


def test_a_saved_plan_has_the_topics_and_they_are_no_part_of_what_is_confirmed(
    world: World, tmp_path: Path
) -> None:
    saved = json.loads(
        world.run("offsets", "reset", "moved", "--stop", "--dry-run", "-o", "json").stdout
    )
    (change,) = [step for step in saved["steps"] if step["step"] == "Change"]
    assert change["topics"] == ["off", "own"]
    assert world.run("runs", "apply", "-", "--yes", stdin=json.dumps(saved)).exit_code == 0


def test_each_right_is_asked_for_by_what_brokers_report_of_it() -> None:
    reads = FakeRights((allow(ME, Operation.WRITE, Resource.TOPIC, "a"),), frozenset("ab"))
    write = Right(Operation.WRITE, Resource.TOPIC, "a")
    assert denied(reads, [write]) is None
    assert denied(reads, [write, replace(write, name="b")]) == replace(write, name="b")
    assert denied(reads, [replace(write, name="unborn")]) == replace(write, name="unborn")
    assert denied(replace(reads, secured=False), [replace(write, name="unborn")]) is None
