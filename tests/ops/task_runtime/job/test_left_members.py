"""Static members that a killed run left: seen while no run is alive, and removed only then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.cli.main import app
from connectctl.ops.connect.run_presence import Holder
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.task_runtime.job.group_members import TaskMembers
from connectctl.ops.task_runtime.job.left_members import left_members
from connectctl.ops.task_runtime.job.status_topic import connector_key, value
from fakes.coordinators import FakeCoordinators
from fakes.groupmembers import Group, member
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.session import FakeSession
from typer.testing import CliRunner

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/schema/run-status.json").read_text())
CONFIG = {"connector.class": "ParquetArchive", "topics": "in"}


class World:
    """A connector of runs in the Connect group ``g``, whose driver was killed while its tasks were
    members.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, config: dict[str, str] | None = None):
        self.group: Any = Group(
            member("g-c-0", 0), member("g-c-1", 1), member("other"), member(None)
        )
        configs = records(
            ("connector-c", {"properties": config or CONFIG}), ("connector-s", {"properties": {}})
        )
        said = [
            ConsumerRecord(connector_key(name), value("RUNNING", "driver:1", 0), 0, n, 0)
            for n, name in enumerate("cs")
        ]
        self.kafka = FakeKafka(
            {"g-configs": configs, "g-status": said, "g-offsets": []}, {"g": connect_group("g")}
        )
        self.session = FakeSession(told={"group_id": "g"}, reads=self.kafka)
        self.connections = 0

        @contextmanager
        def coordinator(members: TaskMembers) -> Iterator[Any]:
            assert members.reads.consumer.group == "connect-c"
            self.connections += members.shared is None
            if isinstance(self.group, Exception):
                raise self.group
            yield self.group

        monkeypatch.setattr(TaskMembers, "_coordinator", coordinator)

    def run(self, *args: str) -> Any:
        return CliRunner().invoke(app, ["run", "status", *args], obj=self.session)

    def left(self) -> Any:
        return self.told("leftMembers")

    def pending(self) -> Any:
        return self.told("pendingOffsets")

    def told(self, member: str) -> Any:
        data = json.loads(self.run("-o", "json").stdout)
        jsonschema.validate(data, SCHEMA)
        return {each["name"]: each[member] for each in data["connectors"]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    return World(monkeypatch)


def test_status_shows_the_members_of_the_tasks_and_how_to_remove_them(world: World) -> None:
    ids = ["g-c-0", "g-c-1"]
    assert world.left() == {
        "c": {"group": "connect-c", "instanceIds": ids, "unknown": None},
        "s": None,
    }
    shown = world.run()
    assert "connectctl run status c --remove-members" in shown.stdout
    assert world.group.removed == []


def test_status_names_the_transaction_that_pending_offsets_wait_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = TopicPartition("__consumer_offsets", coordinator_partition("connect-c", 50))
    held = Transaction("app-7", "Ongoing", 1, 0, 60_000, 1_700_000_000_000, (where,))
    others = [
        Transaction(
            "other", "Ongoing", 2, 0, 60_000, 1_600_000_000_000, (TopicPartition("in", 0),)
        ),
        Transaction("over", "CompleteCommit", 3, 0, 60_000, 1_600_000_000_000, ()),
    ]
    calls = FakeCoordinators(
        {each.id: each for each in (held, *others)},
        partitions=dict.fromkeys([TopicPartition("__consumer_offsets", n) for n in range(50)], ()),
    )
    world.session.__dict__["transactions"] = calls
    world.kafka.records["in"] = []
    assert world.pending()["c"]["partitions"] == []
    world.group.pending = frozenset({TopicPartition("in", 0)})
    pending = world.pending()
    assert (pending["s"], pending["c"]["partitions"]) == (None, [{"topic": "in", "partition": 0}])
    assert pending["c"]["transactions"] == [
        {"transactionalId": "app-7", "startedMs": 1_700_000_000_000}
    ]
    shown = world.run().stdout
    assert (
        "the consumer group connect-c on in-0 are pending (KIP-447), and wait for the transaction "
        "of app-7" in shown
    )
    assert "open since 2023-11-14T22:13:20Z" in shown
    assert "connectctl transactions abort app-7" in shown
    calls.known["app-7"] = replace(held, state="CompleteCommit")
    assert "wait for the transaction of another producer" in world.run().stdout


def test_status_asks_each_group_on_one_connection(world: World) -> None:
    assert world.left()["c"]["instanceIds"]
    assert world.connections == 1


def test_members_of_a_live_run_are_not_left_and_not_removed(world: World) -> None:
    world.kafka.runs["g", "c"] = (Holder("c", "host-1", 42, 0.0),)
    assert world.left()["c"]["instanceIds"] == []
    refused = world.run("c", "--remove-members", "--yes")
    assert (refused.exit_code, "process 42 on host-1" in refused.stderr, world.group.removed) == (
        4,
        True,
        [],
    )


def test_they_are_removed_after_a_yes_and_no_others(world: World) -> None:
    assert (world.run("c", "--remove-members").exit_code, world.group.removed) == (2, [])
    planned = world.run("c", "--remove-members", "--dry-run")
    assert (
        "remove the static members g-c-0, g-c-1 from the consumer group connect-c" in planned.stdout
    )
    assert world.group.removed == []
    assert world.run("c", "--remove-members", "--yes").exit_code == 0
    assert world.group.removed == ["g-c-0", "g-c-1"]


def test_a_saved_removal_is_carried_out_and_refused_once_a_run_is_alive(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(world.run("c", "--remove-members", "--dry-run", "-o", "json").stdout)
    apply = ["runs", "apply", str(path), "--yes"]
    world.kafka.runs["g", "c"] = (Holder("c", "host-1", 42, 0.0),)
    assert (CliRunner().invoke(app, apply, obj=world.session).exit_code, world.group.removed) == (
        4,
        [],
    )
    world.kafka.runs.clear()
    done = CliRunner().invoke(app, apply, obj=world.session)
    assert (done.exit_code, world.group.removed) == (0, ["g-c-0", "g-c-1"]), done.output


@pytest.mark.parametrize("blind", ["coordinator", "config topic", "no config topic"])
def test_what_cannot_be_seen_is_unknown_and_nothing_is_removed(world: World, blind: str) -> None:
    if blind == "coordinator":
        group, world.group = world.group, Unreachable("No broker answered")
    else:
        group = world.group
        if blind == "config topic":
            world.kafka.forbidden.add("g-configs")
        else:
            del world.kafka.records["g-configs"]
    found = world.left()["c"]
    assert found["instanceIds"] == []
    assert found["unknown"]
    refused = world.run("c", "--remove-members", "--yes")
    assert (refused.exit_code, "nothing was removed" in refused.stderr, group.removed) == (
        4,
        True,
        [],
    )


def test_a_member_that_cannot_be_removed_is_an_error(world: World) -> None:
    world.group.refuses = {"g-c-1": 30}
    failed = world.run("c", "--remove-members", "--yes")
    assert (failed.exit_code, "Could not remove the member g-c-1" in failed.output) == (1, True)


def test_a_group_in_another_cluster_is_unknown() -> None:
    elsewhere = CONFIG | {"producer.override.bootstrap.servers": "other:9092"}
    left = left_members(FakeKafka(), "g", "c", elsewhere)  # type: ignore[arg-type]
    assert left is not None
    assert left.unknown == "its consumer group is in another Kafka cluster"


@pytest.mark.parametrize(
    "config",
    [
        {},
        CONFIG | {"consumer.override.group.protocol": "consumer"},
        CONFIG | {"consumer.override.ssl.x": "y"},
    ],
)
def test_without_static_members_there_are_none_to_be_left(config: dict[str, str]) -> None:
    asked: Callable[..., Any] = left_members
    assert asked(None, "g", "c", config) is None


def test_options_that_have_no_effect_are_refused(world: World) -> None:
    assert "needs the names" in world.run("--remove-members", "--yes").stderr
    assert "without --remove-members" in world.run("--yes").stderr
    assert "no static members" in world.run("s", "--remove-members", "--yes").stderr
