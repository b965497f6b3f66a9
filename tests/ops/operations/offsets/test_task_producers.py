"""Offsets are written behind a fence: what still runs cannot commit over them, and what runs on is
seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.connect.run_presence import Holder, client_id, holder, presence_group
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from fakes import offsetworld
from fakes.coordinators import FakeCoordinators
from fakes.offsetworld import World
from fakes.session import FakeSession

IDS = ["connect-plain-0", "connect-plain-1"]
RESET = ("offsets", "reset", "plain", "--yes", "-o", "json")


@dataclass
class WithTransactions(FakeSession):
    """A session with coordinators of its own."""

    coordinators: FakeCoordinators = field(default_factory=FakeCoordinators)

    @property
    def transactions(self) -> Any:
        return self.coordinators


@pytest.fixture
def coordinators(monkeypatch: pytest.MonkeyPatch) -> FakeCoordinators:
    """The coordinators of the session that the world runs in, which know the ids of two tasks."""
    found = FakeCoordinators(
        {id_: Transaction(id_, "Empty", 7 + n, 3) for n, id_ in enumerate(IDS)}
    )
    monkeypatch.setattr(
        offsetworld, "FakeSession", lambda **told: WithTransactions(coordinators=found, **told)
    )
    return found


@pytest.fixture
def world(tmp_path: Path, coordinators: FakeCoordinators) -> World:
    """A world without workers, in which exactly-once tasks of ``plain`` were at work."""
    world = World(tmp_path / "journal")
    world.kafka.groups.clear()
    world.kafka.append("cfg", b"tasks-fencing-plain", json.dumps({"task-count": 2}).encode())
    return world


def lsn(world: World) -> list[bytes]:
    return [
        value
        for (topic, _, key), value in world.kafka.live().items()
        if topic == "off" and b'"plain"' in (key or b"")
    ]


def test_the_tasks_ids_are_fenced_before_anything_is_written_and_the_plan_says_so(
    world: World, coordinators: FakeCoordinators
) -> None:
    plan = json.loads(world.run("offsets", "reset", "plain", "--dry-run", "-o", "json").stdout)
    assert plan["steps"][0]["description"].startswith("fence 2 transactional ids of tasks of plain")
    assert coordinators.asked == []
    result = world.run(*RESET)
    assert result.exit_code == 0, result.stderr
    assert coordinators.asked == IDS
    assert lsn(world) == []


def test_a_task_that_begins_again_before_the_write_is_seen_and_nothing_is_written(
    world: World, coordinators: FakeCoordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lsn(world)
    initialise_at(coordinators, monkeypatch, 3)
    result = world.run(*RESET)
    assert result.exit_code != 0
    assert "started after it was fenced" in result.stderr
    assert lsn(world) == before


def test_a_task_that_begins_while_it_is_written_is_told(
    world: World, coordinators: FakeCoordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    transact = world.kafka.transact

    def and_a_task_begins(*args: Any) -> int:
        again(coordinators)
        return transact(*args)

    monkeypatch.setattr(world.kafka, "transact", and_a_task_begins)
    result = world.run(*RESET)
    assert result.exit_code != 0
    assert "started while its offsets were written" in result.stderr


@pytest.mark.parametrize(
    ("answer", "exit_code", "told"),
    [
        (Code.INVALID_TXN_STATE, 1, "the id in an invalid state"),
        (
            Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            5,
            f"Write on TransactionalId {IDS[1]} is missing",
        ),
    ],
)
def test_what_cannot_be_fenced_is_not_written(
    world: World, coordinators: FakeCoordinators, answer: Code, exit_code: int, told: str
) -> None:
    coordinators.script[IDS[1]] = [answer]
    before = lsn(world)
    result = world.run(*RESET)
    assert result.exit_code == exit_code
    assert told in result.stderr
    assert "1 of 2 transactional ids of plain could not be fenced" in result.stderr
    assert lsn(world) == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_offsets_are_not_written_where_their_tasks_cannot_be_seen_and_the_right_is_named(
    world: World, coordinators: FakeCoordinators, dry_run: bool
) -> None:
    coordinators.denied[IDS[1]] = Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    before = lsn(world)
    result = world.run("offsets", "reset", "plain", "--dry-run" if dry_run else "--yes")
    assert result.exit_code == 5
    assert f"Describe on TransactionalId {IDS[1]} is missing" in result.stderr
    assert (coordinators.asked, lsn(world)) == ([], before)


def test_tasks_that_are_hidden_after_the_plan_are_not_taken_for_gone(
    world: World, coordinators: FakeCoordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    describe = coordinators.describe

    def hidden_later(ids: Any) -> Any:
        looks.append(1)
        return (
            describe(ids)
            if len(looks) == 1
            else dict.fromkeys(ids, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        )

    monkeypatch.setattr(coordinators, "describe", hidden_later)
    before = lsn(world)
    result = world.run(*RESET)
    assert result.exit_code == 5
    assert "were not fenced" in result.stderr
    assert f"Describe on TransactionalId {IDS[0]} is missing" in result.stderr
    assert (coordinators.asked, lsn(world)) == ([], before)


def test_a_run_that_has_the_connector_is_named_and_nothing_is_done(
    world: World, coordinators: FakeCoordinators
) -> None:
    client = client_id("ops-1", 4711, 1_790_000_000, "x")
    world.kafka.runs["connect", "plain"] = (holder(client, "10.0.0.1"),)
    result = world.run(*RESET)
    assert result.exit_code == 4
    assert (
        "a connectctl run is running plain (process 4711 on ops-1, since 2026-09-21T14:13:20Z)"
        in result.stderr
    )
    assert coordinators.asked == []


def test_a_run_that_comes_after_the_plan_is_seen_before_it_is_fenced(
    world: World, coordinators: FakeCoordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def holders(group_id: str, connector: str) -> tuple[Holder, ...]:
        looks.append(1)
        return () if len(looks) == 1 else (Holder("other", "10.0.0.9"),)

    monkeypatch.setattr(world.kafka, "holders", holders)
    result = world.run(*RESET)
    assert (result.exit_code, coordinators.asked) == (4, [])


def test_a_client_id_tells_who_has_a_connector_and_since_when() -> None:
    assert (
        str(holder(client_id("h", 1, 0, "x"), "10.0.0.1"))
        == "process 1 on h, since 1970-01-01T00:00:00Z"
    )
    assert str(holder("somebody", "10.0.0.1")) == "somebody at 10.0.0.1"
    assert presence_group("g", "c") == "connectctl-run-g-c"


def again(coordinators: FakeCoordinators) -> None:
    """What a task does that begins: its id has another epoch."""
    known = coordinators.known[IDS[0]]
    coordinators.known[IDS[0]] = replace(known, epoch=known.epoch + 1)


def initialise_at(
    coordinators: FakeCoordinators, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """A task begins before the ``look``-th description after the fence."""
    describe, looks = coordinators.describe, []

    def described(ids: Any) -> Any:
        if coordinators.asked:
            looks.append(1)
            if len(looks) == look:
                again(coordinators)
        return describe(ids)

    monkeypatch.setattr(coordinators, "describe", described)
