"""A plan says what a change does to source offsets; its run ends with the workers' own view; undo
puts offsets back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.connect import target_state_wait
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.records import UnreadTail
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.connectors.config import steps as config_offset_steps
from connectctl.ops.operations.connectors.steps import SetTargetState
from fakes.changingworld import World

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.connect.connector import Connector

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
A, B = '{"filename":"a"}', '{"filename":"b"}'


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(target_state_wait, "STEADY", 0.0)
    for module in ("steps", "config.steps"):
        monkeypatch.setattr(f"connectctl.ops.operations.connectors.{module}.POLL", 0.001)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.001)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    made = World(tmp_path)
    run(made, "create", "-f", given(made), "--yes")
    has(made, A, 12)
    return made


def given(world: World, name: str = "lines", **more: str) -> str:
    path = world.directory / f"{name}.json"
    path.write_text(
        json.dumps({"name": name, "connector.class": FILE, "file": "a", "topic": "t", **more})
    )
    return str(path)


def has(world: World, partition: str, position: int, name: str = "lines") -> None:
    """The workers have an offset of the connector."""
    key = json.dumps(json.loads(partition), sort_keys=True)
    world.workers.offsets.setdefault(name, {})[key] = {"position": position}


def offsets(world: World, name: str = "lines") -> dict[str, int]:
    return {
        json.loads(key)["filename"]: value["position"]
        for key, value in world.workers.offsets[name].items()
    }


def run(world: World, *args: str, code: int = 0) -> str:
    result = world.run("connectors", *args)
    assert result.exit_code == code, result.output
    return result.output


def plan(world: World, *args: str) -> dict[str, Any]:
    steps = json.loads(world.run("connectors", *args, "--dry-run", "-o", "json").stdout)["steps"]
    (step,) = (each for each in steps if each["step"] in ("ChangeConnector", "CreateConnector"))
    return dict(step)


def undo(world: World) -> str:
    result = world.run("runs", "undo", world.runs()[0]["id"], "--yes")
    assert result.exit_code == 0, result.output
    return result.output


def test_another_file_is_begun_anew_and_the_run_ends_with_what_the_workers_have(
    world: World,
) -> None:
    step = plan(world, "patch", "lines", "file=b")
    assert step["partitions"] == {
        "orphaned": [{"filename": "a"}],
        "begun anew": [{"filename": "b"}],
    }
    assert (
        f"orphans 1 source offset: {A}, because filename a is not in file b; starts from the "
        f"beginning: {B};" in step["description"]
    )
    assert "--carry-offsets carries them over instead" in step["description"]
    said = run(world, "patch", "lines", "file=b", "--yes")
    assert f'read the offsets of lines from the workers: not read: {A} at {{"position":12}}' in said


def test_undo_takes_away_what_was_begun_anew_and_leaves_what_was_read_on(world: World) -> None:
    run(world, "patch", "lines", "file=b", "--yes")
    has(world, B, 8)
    said = undo(world)
    assert "restore the offsets that the change of lines replaced: 1 written and read back" in said
    assert offsets(world) == {"a": 12}
    assert world.workers.connectors["lines"].config["file"] == "a"


def test_an_older_offset_is_resumed_from_and_is_as_it_was_after_undo(world: World) -> None:
    has(world, B, 8)
    step = plan(world, "patch", "lines", "file=b")
    assert step["partitions"] == {"orphaned": [{"filename": "a"}], "resumed": [{"filename": "b"}]}
    assert f"resumes from 1 source offset stored before: {B}" in step["description"]
    run(world, "patch", "lines", "file=b", "--yes")
    has(world, B, 20)
    undo(world)
    assert offsets(world) == {"a": 12, "b": 8}


def test_nothing_is_stopped_for_an_undo_that_has_no_offsets_to_put_back(world: World) -> None:
    run(world, "patch", "lines", "batch.size=5", "--yes")
    world.workers.sent.clear()
    undo(world)
    assert [each for each in world.workers.sent if "stop" in each] == []


def test_offsets_are_left_alone_by_undo_where_workers_cannot_set_them(world: World) -> None:
    world.workers.version = "3.5.1"
    run(world, "patch", "lines", "file=b", "--yes")
    has(world, B, 8)
    undo(world)
    assert offsets(world) == {"a": 12, "b": 8}


def test_what_only_the_source_knows_and_what_stays_under_another_source_is_said(
    world: World,
) -> None:
    path = given(
        world, "mirror", **{"connector.class": MIRROR, "source.cluster.alias": "eu", "topics": "x"}
    )
    run(world, "create", "-f", path, "--yes")
    key = json.dumps({"cluster": "eu", "partition": 0, "topic": "x"})
    world.workers.offsets["mirror"] = {key: {"offset": 1}}
    assert (
        "starts from the beginning for what else it finds: topic x.+"
        in plan(world, "patch", "mirror", "topics=x,x.+")["description"]
    )
    says = plan(world, "patch", "mirror", "source.cluster.bootstrap.servers=other:9092")[
        "description"
    ]
    assert "keeps its offsets although source.cluster.bootstrap.servers changes;" in says
    begun = plan(world, "patch", "mirror", "topics=x,y")
    assert 'starts from the beginning: {"cluster":"eu","topic":"y",…}' in begun["description"]


def test_a_masked_query_is_in_no_plan(world: World) -> None:
    jdbc = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "mode": "incrementing",
    }
    run(world, "create", "-f", given(world, "rows", **jdbc), "--yes")
    world.workers.offsets["rows"] = {'{"table": "a"}': {"incrementing": 1}}
    step = plan(world, "patch", "rows", "query.masked=select 4711")
    assert step["partitions"] == {"orphaned": [{"table": "a"}], "begun anew": [{"query": "query"}]}
    assert "4711" not in ";".join(step["offsets"])


@pytest.mark.parametrize(
    "command",
    [
        ("patch", "lines", "file=b"),
        ("apply", "-f", "FILE"),
        ("create", "-f", "NEW"),
        ("rollback", "lines", "--to", "REVISION"),
    ],
    ids=lambda command: command[0],
)
def test_the_workers_are_asked_once_for_their_connectors(
    world: World, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"FILE": given(world, file="b"), "NEW": given(world, "new", file="c")}
    history = json.loads(world.run("connectors", "history", "lines", "-o", "json").stdout)
    files["REVISION"] = history["revisions"][0]["revision"]
    asked: list[object] = []

    def from_workers(calls: ConnectCalls, **where: Any) -> list[Connector]:
        asked.append(calls)
        return observe_workers(calls, **where)

    observe_workers = observe.from_workers
    monkeypatch.setattr(observe, "from_workers", from_workers)
    run(world, *(files.get(word, word) for word in command), "--dry-run")
    assert len(asked) == 1


# --------------------------------------------------------------- offsets that the connector refuses


@pytest.mark.parametrize("version", ["4.3.1", "3.6.1"])
def test_initial_offsets_that_the_connector_would_refuse_create_nothing(
    world: World, version: str
) -> None:
    world.workers.version = version
    world.workers.sent.clear()
    (world.directory / "o.json").write_text(
        '[{"partition": {"filename": "b"}, "offset": {"position": "5"}}]'
    )
    args = (
        "create",
        "-f",
        given(world, "more", file="b"),
        "--offsets",
        str(world.directory / "o.json"),
        "--yes",
    )
    said = run(world, *args, code=4)
    assert (
        'position is the string "5", and the connector requires an integer that is not negative'
        in said
    )
    assert "--force" in said
    assert world.workers.sent == []


def test_initial_offsets_that_the_connector_would_refuse_are_set_with_force(world: World) -> None:
    (world.directory / "o.json").write_text(
        '[{"partition": {"filename": "b"}, "offset": {"position": "5"}}]'
    )
    args = (
        "create",
        "-f",
        given(world, "more", file="b"),
        "--offsets",
        str(world.directory / "o.json"),
        "--yes",
    )
    run(world, *args, "--force")
    assert world.workers.offsets["more"] == {'{"filename": "b"}': {"position": "5"}}


def test_carried_offsets_that_the_connector_would_refuse_change_nothing(world: World) -> None:
    """The stored offset is another tool's: a worker would refuse it under the new name of the
    file.
    """
    world.workers.offsets["lines"] = {'{"filename": "a"}': {"position": "12"}}
    world.workers.sent.clear()
    said = run(world, "patch", "lines", "file=b", "--carry-offsets", "--yes", code=4)
    assert (
        'lines would refuse its offsets; nothing was changed: {"position":"12"} for '
        '{"filename":"b"}' in said
    )
    assert world.workers.sent == []
    run(world, "patch", "lines", "file=b", "--carry-offsets", "--yes", "--force")
    assert world.workers.offsets["lines"] == {'{"filename": "b"}': {"position": "12"}}


def test_a_class_that_changes_before_initial_offsets_are_set_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.directory / "o.json").write_text(
        '[{"partition": {"filename": "b"}, "offset": {"position": 5}}]'
    )
    read = "connectctl.ops.operations.connectors.config.offsets.read_config"
    monkeypatch.setattr(read, lambda calls, name: {"connector.class": MIRROR})
    args = (
        "create",
        "-f",
        given(world, "more", file="b"),
        "--offsets",
        str(world.directory / "o.json"),
        "--yes",
    )
    said = world.run("connectors", *args)
    assert said.exit_code != 0
    assert "the partition has no cluster" in said.output
    assert world.workers.offsets.get("more", {}) == {}


# ------------------------------------------------ an undo after the connector went on, or just then


def test_undo_of_carried_offsets_carries_over_what_was_committed_since(world: World) -> None:
    run(world, "patch", "lines", "file=b", "--carry-offsets", "--yes")
    assert offsets(world) == {"b": 12}
    has(world, B, 20)
    has(world, '{"filename":"c"}', 5)
    said = undo(world)
    assert f"carry 1 source offset of lines over: {B} to {A}" in said
    assert f"delete 1 source offset of lines that it no longer reads: {B}" in said
    assert offsets(world) == {"a": 20, "c": 5}
    assert world.workers.connectors["lines"].config["file"] == "a"
    assert world.workers.sent[-1] == "PUT /connectors/lines/resume"


def test_a_saved_plan_carries_offsets_over(world: World) -> None:
    path = world.directory / "plan.json"
    path.write_text(
        run(world, "patch", "lines", "file=b", "--carry-offsets", "--dry-run", "-o", "json")
    )
    has(world, A, 20)
    assert world.run("runs", "apply", str(path), "--yes").exit_code == 0
    assert offsets(world) == {"b": 20}


def test_a_creation_whose_offsets_could_not_be_set_says_how_to_continue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [Unreachable("gone")]

    def write_offsets(*args: Any, **more: Any) -> str:
        if fails:
            raise fails.pop()
        return config_offset_steps.write_offsets(*args, **more)

    monkeypatch.setattr(
        "connectctl.ops.operations.connectors.config.offsets.write_offsets", write_offsets
    )
    (world.directory / "o.json").write_text(
        '[{"partition": {"filename": "a"}, "offset": {"position": 12}}]'
    )
    args = (
        "create",
        "-f",
        given(world, "lines-2"),
        "--offsets",
        str(world.directory / "o.json"),
        "--yes",
    )
    said = " ".join(world.run("connectors", *args).output.split())
    assert "it is STOPPED without them, and would start from the beginning" in said
    assert (
        "lines-2 is STOPPED, and would start without its offsets: connectctl runs resume "
        f"{last_run(world)}" in said
    )
    assert world.run("runs", "resume", last_run(world), "--yes").exit_code == 0
    assert offsets(world, "lines-2") == {"a": 12}


def _created(world: World) -> str:
    """``lines-2`` is created with an offset, and runs."""
    (world.directory / "o.json").write_text(
        '[{"partition": {"filename": "a"}, "offset": {"position": 12}}]'
    )
    run(
        world,
        "create",
        "-f",
        given(world, "lines-2"),
        "--offsets",
        str(world.directory / "o.json"),
        "--yes",
    )
    assert offsets(world, "lines-2") == {"a": 12}
    return str(world.runs()[0]["id"])


def _removed(world: World) -> str:
    """``lines`` is deleted with its offsets, and created again by somebody."""
    run(world, "delete", "lines", "--with-offsets", "--yes")
    id_ = str(world.runs()[0]["id"])
    run(world, "create", "-f", given(world), "--yes")
    return id_


@pytest.mark.parametrize(("changed", "name"), [(_created, "lines-2"), (_removed, "lines")])
def test_an_undo_that_would_set_offsets_back_is_refused_with_the_number(
    world: World, changed: Callable[[World], str], name: str
) -> None:
    id_ = changed(world)
    has(world, A, 20, name)
    world.workers.sent.clear()
    result = world.run("runs", "undo", id_, "--yes")
    assert result.exit_code == 4, result.output
    assert f"1 source partition of {name} moved since the run {id_}" in " ".join(
        result.output.split()
    )
    assert world.workers.sent == []
    assert offsets(world, name) == {"a": 20}


@pytest.mark.parametrize(("changed", "name"), [(_created, "lines-2"), (_removed, "lines")])
def test_what_was_committed_before_the_stop_of_an_undo_is_kept_and_the_connector_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, changed: Callable[[World], str], name: str
) -> None:
    id_ = changed(world)
    real = SetTargetState.apply

    def stop(self: SetTargetState, context: Any) -> str | None:
        has(world, A, 20, name)
        return real(self, context)

    monkeypatch.setattr(SetTargetState, "apply", stop)
    result = world.run("runs", "undo", id_, "--yes")
    assert result.exit_code == 4, result.output
    assert "was stopped, and is resumed again" in " ".join(result.output.split())
    assert offsets(world, name) == {"a": 20}
    assert world.workers.sent[-2:] == [
        f"PUT /connectors/{name}/{verb}" for verb in ("stop", "resume")
    ]


def test_undo_of_a_creation_that_did_not_go_on_takes_its_offsets_away(world: World) -> None:
    id_ = _created(world)
    assert world.run("runs", "undo", id_, "--yes").exit_code == 0
    assert "lines-2" not in world.workers.connectors
    assert world.workers.offsets["lines-2"] == {}


def test_undo_of_a_creation_of_what_was_deleted_since_changes_nothing(world: World) -> None:
    id_ = _created(world)
    run(world, "delete", "lines-2", "--yes")
    world.workers.sent.clear()
    assert world.run("runs", "undo", id_, "--yes").exit_code == 0
    assert world.workers.sent == []


# ---------------------------------------------- interruptions of a change that carries offsets over


class Source:
    """What ``lines`` reads of its file, whichever name that has: ``count`` records, from the offset
    of its partition on.
    """

    def __init__(self, world: World) -> None:
        self.world, self.count, self.read = world, 12, list(range(12))

    def start(self) -> None:
        """Somebody resumes the connector, and it goes on."""
        self.world.workers.send("PUT", "/connectors/lines/resume")
        self.settle()
        self.goes_on()

    def settle(self) -> None:
        for _ in range(2):
            self.world.workers.connectors["lines"].advance()

    def goes_on(self) -> None:
        self.count += 10
        partition = json.dumps({"filename": self.world.workers.connectors["lines"].config["file"]})
        begin = self.world.workers.offsets["lines"].get(partition, {"position": 0})["position"]
        self.read += range(begin, self.count)
        has(self.world, partition, self.count)

    def each_once(self) -> bool:
        return self.read == list(range(self.count))


CARRY = ("connectors", "patch", "lines", "file=b", "--carry-offsets", "--yes")


def interrupted(world: World, *command: str, fail_at: int, done: bool) -> bool:
    """Whether ``command`` came to its change ``fail_at``, which is its last one: ``done``, or not
    sent.
    """
    real, sent = world.workers.send, 0

    def send(method: str, path: str, body: Any = None, **more: Any) -> Any:
        nonlocal sent
        sent += not path.endswith("/validate")
        answer = real(method, path, body, **more) if sent < fail_at or done else None
        if sent >= fail_at:
            raise KeyboardInterrupt
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.workers, "send", send)
        world.run(*command)
    return sent >= fail_at


def last_run(world: World) -> str:
    return str(world.runs()[0]["id"])


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("of_undo", "then"), [(False, "undo"), (False, "resume, undo"), (True, "resume")]
)
@pytest.mark.parametrize("done", [False, True])
def test_a_change_that_carries_offsets_over_reads_nothing_twice_wherever_it_is_interrupted_and_resumed_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool, of_undo: bool, then: str
) -> None:
    for fail_at in range(1, 7):
        (directory := tmp_path / str(fail_at)).mkdir()
        monkeypatch.setenv("CONNECTCTL_JOURNAL", str(directory / "journal"))
        world = World(directory)
        run(world, "create", "-f", given(world), "--yes")
        has(world, A, 12)
        source, command = Source(world), list(CARRY)
        if of_undo:
            assert world.run(*CARRY).exit_code == 0
            source.goes_on()
            command = ["runs", "undo", last_run(world), "--yes"]
        came = interrupted(world, *command, fail_at=fail_at, done=done)
        assert came == (fail_at < 6)
        if not came:
            continue
        id_ = last_run(world)
        source.start()
        assert source.each_once(), fail_at
        for verb in then.split(", "):
            result = world.run("runs", verb, id_, "--yes")
            assert result.exit_code == 0, (fail_at, result.output)
            source.goes_on()
            assert source.each_once(), (fail_at, verb)
        source.settle()
        connector = world.workers.connectors["lines"]
        assert (connector.config["file"], connector.own) == ("a", "RUNNING")
        assert offsets(world) == {"a": source.count}, fail_at


def test_carrying_offsets_from_a_topic_that_a_transaction_blocks_names_it_and_one_that_may_not_be_read_the_right(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, real = (
        ("create", "-f", given(world, "renamed"), "--carry-offsets", "--yes"),
        world.kafka.image,
    )
    world.coordinators.partitions[TopicPartition("off", 0)] = (PartitionProducer(7, 3, 0, 0, 1),)

    def image(topics: list[str], **given: object) -> object:
        found = real(topics, **given)  # type: ignore[arg-type]
        held = (UnreadTail(0, 1, 2),)
        return {
            name: each if name != "off" else replace(each, held_back=held)
            for name, each in found.items()
        }

    monkeypatch.setattr(world.kafka, "image", image)
    said = run(world, *create, code=4)
    assert "connectctl transactions lag --topic off names its transactional id" in said
    monkeypatch.setattr(world.kafka, "image", real)
    world.kafka.forbidden = {"off"}
    assert "Read on Topic off is missing" in run(world, *create, code=5)


@pytest.mark.parametrize(("servers", "warned"), [("fake:9092", False), ("elsewhere:9092", True)])
def test_a_change_warns_of_servers_that_the_context_does_not_name_as_validate_does(
    world: World, servers: str, warned: bool
) -> None:
    override = {"producer.override.bootstrap.servers": servers, "offsets.storage.topic": "own"}
    file = given(world, "other", **override)
    said = run(world, "create", "-f", file, "--dry-run")
    validated = world.run("validate", "-f", file).output
    assert ("CONFIG029" in said, "CONFIG029" in validated) == (warned, warned), said + validated
