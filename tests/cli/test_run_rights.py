"""A right that brokers report as missing refuses a take-over before the connector is stopped."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.operations.cluster.denied_rights import denied
from connectctl.ops.task_runtime.job.task_rights import task_rights
from fakes.acls import allow
from fakes.changingworld import World
from fakes.endedtasks import without_spark
from fakes.rights import ME, FakeRights

KINDS = (Resource.TOPIC, Resource.TRANSACTIONAL_ID, Resource.GROUP)


def without(operation: Operation, resource: Resource, name: str) -> FakeRights:
    """The rights of a principal that lacks one right."""
    every = [allow(ME, Operation.ALL, kind, "*") for kind in KINDS]
    there = frozenset(("off", "t", "cfg", "in"))
    return FakeRights((*every, allow(ME, operation, resource, name, deny=True)), there)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    without_spark(monkeypatch)
    return World(tmp_path)


@pytest.mark.parametrize(
    ("lacks", "named"),
    [
        ((Operation.WRITE, Resource.TOPIC, "off"), "Write on Topic off"),
        ((Operation.WRITE, Resource.TOPIC, "t"), "Write on Topic t"),
        # Who may not write with a transactional id shows that only where it may not describe it.
        (
            (Operation.ALL, Resource.TRANSACTIONAL_ID, "connect-orders-0"),
            "Write on TransactionalId connect-orders-0",
        ),
    ],
)
def test_a_take_over_without_a_right_is_refused_before_anything_is_stopped(
    world: World, lacks: tuple[Operation, Resource, str], named: str
) -> None:
    world.session.__dict__["own_rights"] = without(*lacks)
    refused = world.change("run", "--yes")
    assert (refused.exit_code, named in refused.stderr) == (5, True), refused.output
    assert world.changed == []
    assert [run["state"] for run in world.runs()] == ["refused"]


def test_the_group_of_a_sink_is_asked_for_read() -> None:
    kafka = object()
    scene: Any = SimpleNamespace(kafka=kafka, target=kafka)
    ready: Any = SimpleNamespace(
        take_over=True,
        subscription=SimpleNamespace(
            consumer=SimpleNamespace(group="connect-sink"), topics=("in",)
        ),
        own_topics={},
        config={},
        delivery=SimpleNamespace(exactly_once=False),
    )
    needed = list(task_rights(scene, ready))
    group = Right(Operation.READ, Resource.GROUP, "connect-sink")
    assert needed == [group, Right(Operation.READ, Resource.TOPIC, "in")]
    lacking = without(Operation.READ, Resource.GROUP, "connect-sink")
    assert denied(lacking, needed) == group
    assert denied(without(Operation.WRITE, Resource.TOPIC, "t"), needed) is None
    ready.take_over = False
    assert list(task_rights(scene, ready)) == []
