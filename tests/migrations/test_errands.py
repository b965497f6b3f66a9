"""Migrations that change no worker: what they refuse, and how a cluster stands to them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.migrations.operation import plan_rollback
from connectctl.migrations.registry import MigrationInput, named
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import Run, RunState, StepEvent
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.offsets.changes import MergeOffsets
from connectctl.ops.operations.offsets.planning import Changes, ConnectorState, current_states
from connectctl.ops.operations.offsets.record_changes import RecordChange
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState
from connectctl.ops.operations.tasks_max.observe import TasksSeen
from connectctl.ops.operations.tasks_max.remedies import Reconfigure, SettleTasks
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.mode import Confidence, SourceSupport, WorkerMode
from connectctl.ops.operations.upgrade.request import UpgradeRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot, RollingWorker
from connectctl.ops.operations.upgrade.steps import FirstGate, IncludedStep
from fakes.applicationworld import NAME, ApplicationWorld
from fakes.plans import loaded

UP = RollingWorker(
    "a",
    "http://a/",
    WorkerMode(SourceSupport.DISABLED, Confidence.CONFIGURED, "file"),
    leader=True,
    member="m",
)
DOWN = RollingWorker(
    "a",
    "http://a/",
    WorkerMode(SourceSupport.DISABLED, Confidence.CONFIGURED, "file"),
    problem="it is away",
)
OLD = RollingWorker(
    "a",
    "http://a/",
    WorkerMode(SourceSupport.NOT_SUPPORTED, Confidence.VERIFIED, "3.2"),
    leader=True,
    member="m",
)
MERGE = (SetTargetState("orders", "stop", now="RUNNING"),)


def cluster(worker: RollingWorker = UP, **more: Any) -> RollingSnapshot:
    return RollingSnapshot("cluster", "connect", "Stable", (worker,), **({"connectors": 2} | more))


@pytest.mark.parametrize(
    ("migration", "snapshot", "expected"),
    [
        ("own-offsets-topic", cluster(connectors=0), "not applicable"),
        ("own-offsets-topic", cluster(), "possible"),
        ("global-offsets-topic", cluster(), "converged"),
        ("global-offsets-topic", cluster(dedicated=("a",)), "possible"),
        ("stale-offsets-topics", cluster(), "converged"),
        ("stale-offsets-topics", cluster(dedicated=("a",)), "possible"),
        ("stale-offsets-topics", cluster(OLD, dedicated=("a",)), "pending"),
        ("enforce-tasks-max", cluster(), "converged"),
        ("enforce-tasks-max", cluster(exceeds_tasks_max=("a",)), "pending"),
        ("enforce-tasks-max", cluster(connectors=None), "not applicable"),
        ("group-aware-producers", cluster(), "possible"),
        ("per-partition-producers", cluster(), "possible"),
    ],
)
def test_how_a_cluster_stands(migration: str, snapshot: RollingSnapshot, expected: str) -> None:
    assert named(migration).status(snapshot).status.value == expected


@pytest.mark.parametrize(
    "name", ["own-offsets-topic", "global-offsets-topic", "stale-offsets-topics"]
)
def test_offsets_are_moved_behind_a_look_at_the_clusters_health(name: str) -> None:
    ask = MigrationInput(
        cluster(),
        before=MERGE,
        given={"connector": "orders", "stale": "merge"},
        observed=("orders: so it stands",),
    )
    made = named(name).plan(ask)
    first, moved = made.steps
    assert (isinstance(first, FirstGate), moved.inner) == (True, MERGE[0])
    assert made.warnings[0] == "orders: so it stands"
    assert named(name).plan(MigrationInput(cluster(), given={"connector": "orders"})).steps == ()


def test_without_a_worker_no_topic_is_changed() -> None:
    with pytest.raises(Refused, match="No worker of connect answers"):
        named("own-offsets-topic").plan(
            MigrationInput(cluster(DOWN), before=MERGE, given={"connector": "a"})
        )


def test_what_is_stale_is_not_decided_without_being_asked() -> None:
    migration = named("stale-offsets-topics")
    with pytest.raises(BadInput) as raised:
        migration.plan(MigrationInput(cluster(), observed=("a: looks stale",)))
    assert "--set stale=merge or --set stale=unset" in (raised.value.next_step or "")
    with pytest.raises(BadInput, match="stale=burn is neither"):
        migration.plan(
            MigrationInput(cluster(), observed=("a: looks stale",), given={"stale": "burn"})
        )


def test_names_that_a_migration_does_not_take_are_bad_input() -> None:
    with pytest.raises(BadInput, match="has no parameter conector") as raised:
        named("own-offsets-topic").check({"conector": "x"})
    assert raised.value.next_step == "Did you mean connector?"
    with pytest.raises(BadInput, match="has no parameter") as raised:
        named("soft-downgrade").check({"x": "y"})
    assert raised.value.next_step == "It has no parameters."


@pytest.mark.parametrize(
    "name", ["own-offsets-topic", "group-aware-producers", "per-partition-producers"]
)
def test_what_is_needed_and_not_given_is_asked_for(name: str) -> None:
    with pytest.raises(BadInput, match="Missing parameter"):
        named(name).plan(MigrationInput(cluster()))


def test_nothing_is_planned_for_connectors_that_keep_to_their_tasks_max() -> None:
    made = named("enforce-tasks-max").plan(
        MigrationInput(cluster(), observed=(TasksSeen("cluster", (), ()), None))
    )
    assert (made.steps, made.warnings) == ((), ())


# ------------------------------------------------------------------------------ on the command line


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--set", "application=x"), "--set requires --migration"),
        (("--migration", "group-aware-producers", "--set", "x"), "is not NAME=VALUE"),
        (("--migration", "soft-downgrade", "--set", "x=y"), "has no parameter x"),
        (
            ("--migration", "group-aware-producers", "--set", "members=2", "--set", "members=3"),
            "given twice",
        ),
        (
            (
                "--migration",
                "group-aware-producers",
                "--set",
                f"application={NAME}",
                "--set",
                "members=no",
            ),
            "members=no",
        ),
    ],
)
def test_what_cannot_be_meant_is_exit_code_2(
    tmp_path: Path, args: tuple[str, ...], told: str
) -> None:
    result = ApplicationWorld.running(tmp_path, "exactly_once").run("upgrade", "plan", *args)
    assert result.exit_code == 2, result.stdout
    assert told in result.stderr


def test_brokers_that_are_too_old_refuse_it(tmp_path: Path) -> None:
    world = ApplicationWorld.running(tmp_path, "exactly_once", apis={28: 2, 9: 6})
    which = ("--migration", "group-aware-producers", "--set", f"application={NAME}")
    result = world.run("upgrade", "plan", *which)
    assert result.exit_code == 4, result.stderr
    assert "brokers must be 2.5 or newer first" in result.stderr


def test_a_saved_plan_is_stale_when_other_steps_would_be_done(tmp_path: Path) -> None:
    world = ApplicationWorld.running(tmp_path / "journal", "exactly_once", "exactly_once")
    which = ("--migration", "group-aware-producers", "--set", f"application={NAME}")
    saved = tmp_path / "plan.json"
    assert world.run("upgrade", "plan", *which, "--out", str(saved)).exit_code == 0
    world.instances["x:2"].file = "exactly_once_v2"
    world.restart_instance("x:2")
    world.sleep(10)
    result = world.run("upgrade", "apply", str(saved), "--yes")
    assert result.exit_code == 4
    assert "The plan is stale: now it would be: " in result.stderr
    assert world.run("upgrade", "plan", *which, "--out", str(saved)).exit_code == 0
    assert world.run("upgrade", "apply", str(saved), "--yes").exit_code == 0
    assert set(world.values().values()) == {"exactly_once_v2"}
    assert world.run("upgrade", "plan", *which, "--exit-code").exit_code == 0
    listed = world.run("upgrade", "list", "-o", "wide").stdout
    assert "application: its application.id" in listed


# ------------------------------------------------------------------------------------- the way back


def test_connectors_that_were_reconfigured_get_back_what_they_had_the_last_one_first() -> None:
    made = (
        Reconfigure("a", {"tasks.max": "2"}, {"tasks.max": "1"}, True),
        SettleTasks("a", 2),
        Reconfigure("b", {"tasks.max.enforce": "false"}, {"tasks.max.enforce": None}, True),
        Reconfigure("c", {"tasks.max": "9"}, {"tasks.max": "1"}, True),
    )
    marks = (
        StepEvent(0, "done", None, ""),
        StepEvent(1, "done", None, ""),
        StepEvent(2, "begun", None, ""),
    )
    run = Run(
        "r",
        "upgrade",
        "cluster",
        "connect",
        ("enforce-tasks-max",),
        RunState.FAILED,
        "",
        None,
        marks,
    )
    restored = loaded(run, *made, migration="enforce-tasks-max")
    assert runs.has_own_rollback(restored)
    access: Any = SimpleNamespace(snapshot=cluster())
    back = plan_rollback(access, restored, UpgradeRequest(migration="enforce-tasks-max"))
    assert [step.describe() for step in back.steps] == [
        "remove tasks.max.enforce on b",
        "set tasks.max=1 on a",
    ]


@pytest.mark.parametrize(("was", "verb"), [("RUNNING", "resume"), ("PAUSED", "pause")])
def test_a_connector_that_was_stopped_and_not_started_again_is_brought_back_to_what_it_was(
    was: str, verb: str
) -> None:
    made = (IncludedStep(SetTargetState("a", "stop", now=was), "before its offsets are moved"),)
    run = Run(
        "r", "upgrade", "cluster", "connect", ("own-offsets-topic",), RunState.FAILED, "", None, ()
    )
    restored = loaded(run, *made, migration="own-offsets-topic")
    stopped = ConnectorState("a", (), State.STOPPED, True, {})
    running = ConnectorState("a", (), State.RUNNING, True, {})
    back = runs.restart_steps(restored, [stopped])
    assert back[0].describe() == f"{verb} a"
    assert runs.restart_steps(restored, [running]) == []


def test_what_a_migration_of_offsets_observes_is_the_steps_that_move_them() -> None:
    key = b'["a",{"t":"x"}]'

    def topic_state(topic: str, side: Side, lsn: int) -> OffsetsTopicState:
        return OffsetsTopicState(
            topic, side, 1, {key: (ConsumerRecord(key, b'{"lsn":%d}' % lsn, 0, 0, lsn * 10**6),)}
        )

    places = (topic_state("off", Side.GLOBAL, 2), topic_state("a-offsets", Side.DEDICATED, 1))
    config = {"connector.class": "x.Source", "offsets.storage.topic": "old"}
    access: Any = SimpleNamespace(
        snapshot=cluster(dedicated=("a",)),
        reader=SimpleNamespace(
            calls=SimpleNamespace(get=lambda path: {"offsets.storage.topic": "a-offsets"})
        ),
        offsets=lambda topics: (
            None,
            [ConnectorState(name, places, State.STOPPED, True, config) for name in topics],
        ),
    )

    def observed(name: str, **given: str) -> tuple[str, tuple[str, ...]]:
        steps, seen = named(name).observe(access, given)
        return "; ".join(step.describe() for step in steps), seen

    assert observed("own-offsets-topic") == ("", ())
    assert (
        "set offsets.storage.topic=a-offsets of a"
        in observed("own-offsets-topic", connector="a", policy="newest")[0]
    )
    for name, given in (
        ("global-offsets-topic", {"policy": "newest"}),
        ("stale-offsets-topics", {"stale": "unset"}),
    ):
        assert "remove offsets.storage.topic of a" in observed(name, **given)[0]
    assert observed("stale-offsets-topics")[0] == ""
    with pytest.raises(BadInput, match="policy=no is not one of"):
        observed("hard-downgrade-one-step", policy="no")


def test_what_is_stale_is_told_by_where_the_offsets_stand() -> None:
    def key(name: str) -> bytes:
        return f'["a",{{"t":"{name}"}}]'.encode()

    def topic_state(topic: str, side: Side, **lsn: int) -> OffsetsTopicState:
        keys = {key(name): str(value).encode() for name, value in lsn.items()}
        records = {raw: (ConsumerRecord(raw, value, 0, 0, 0),) for raw, value in keys.items()}
        return OffsetsTopicState(topic, side, 1, records)

    subject = ConnectorState(
        "a",
        (
            topic_state("off", Side.GLOBAL, x=1, y=1),
            topic_state("own", Side.DEDICATED, x=1, y=2, z=3),
        ),
        None,
        True,
        {},
    )
    writes = (
        RecordChange("off", 0, key("y"), b"2", b"1", None),
        RecordChange("off", 0, key("z"), b"3", None, None),
    )
    changes = Changes(Plan("offsets merge", "cluster", ()), writes, (), merged={"a": 3})
    assert current_states([(subject, MergeOffsets("a", "global"))], changes) == [
        "a: own has 3 source partitions; of these off lacks 1, and has another offset for 1 (as "
        "of now)."
    ]
