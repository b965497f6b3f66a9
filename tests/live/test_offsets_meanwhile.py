"""A file source on real workers that goes on while its offsets are moved: no line is lost or twice, or it is refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.cli import apply
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.offsets.steps import Change
from live.offsetchanges import ctl, file_source, journal, live, read_all, stopped
from live.real import Ran, Workers, connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
PROPERTY = "offsets.storage.topic"
MORE = 50
"""Lines that are written at a time."""


class Lines:
    """A FileStreamSource whose file grows by numbered lines."""

    def __init__(self, cluster: Sandbox, name: str, file: Path, rest: Workers):
        self.cluster, self.name, self.file, self.rest, self.count = cluster, name, file, rest, 0

    @property
    def own(self) -> str:
        return f"{self.name}-offsets"

    @property
    def topic(self) -> str:
        """The topic that its tasks commit to."""
        return str(self.config().get(PROPERTY, self.cluster.topics["offsets"]))

    def config(self) -> dict[str, str]:
        return dict(self.rest.call("GET", f"/connectors/{self.name}/config").json())

    def configure(self, topic: str | None) -> None:
        config = {name: value for name, value in self.config().items() if name != PROPERTY}
        self.rest.call("PUT", f"/connectors/{self.name}/config", config | ({PROPERTY: topic} if topic else {}))
        eventually(lambda: self.config().get(PROPERTY) == topic)

    def write(self) -> None:
        with self.file.open("a") as file:
            file.writelines(f"line {n}\n" for n in range(self.count, self.count + MORE))
        self.count += MORE

    def commit(self) -> None:
        """Write some lines, and wait until the connector has committed them."""
        self.write()
        eventually(lambda: self.position() == self.file.stat().st_size)

    def position(self) -> int | None:
        found = live(self.cluster, self.topic, self.name)
        return max((json.loads(value)["position"] for value in found.values()), default=None)

    def resume(self) -> None:
        self.rest.call("PUT", f"/connectors/{self.name}/resume")
        self.runs()

    def runs(self) -> None:
        eventually(lambda: self.rest.state(self.name) == ["RUNNING", "RUNNING"])

    def twice(self) -> int:
        """How many lines are in the topic more than once, once it has read all of the file; none may be missing."""
        self.runs()
        self.commit()
        expected = [f"line {n}" for n in range(self.count)]
        found = read_all(self.cluster, self.name)
        assert set(found) == set(expected)
        return len(found) - len(expected)

    def move(self, *args: str, code: int = 0) -> Ran:
        return ctl(self.cluster, *args, "--yes", code=code)

    def merge(self, into: str, code: int = 0) -> Ran:
        more = ("--topic", self.own) if into == "dedicated" else ("--unset-topic",)
        return self.move("offsets", "merge", self.name, "--into", into, *more, "--stop", code=code)

    def migrate(self, migration: str, *sets: str) -> Ran:
        given = [word for each in (f"connector={self.name}", *sets) for word in ("--set", each)]
        return self.move("upgrade", "apply", "--migration", migration, *given, "--gate-timeout", "600")

    def run(self) -> str:
        return journal().runs()[0].id


@pytest.fixture
def lines(cluster: Sandbox, tmp_path: Path) -> Iterator[Lines]:
    name, file = f"meanwhile-{uuid.uuid4().hex[:8]}", tmp_path / "lines.txt"
    file.touch()
    with connector(cluster, name, file_source(file, name)) as rest:
        found = Lines(cluster, name, file, rest)
        found.commit()
        yield found
    connectctl("--context", f"sandbox-{cluster.spec.name}", "upgrade", "abort", "--leave", "--yes")


@contextmanager
def answered_late(lines: Lines) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "confirm", lambda *args, **more: lines.commit())
        yield


@contextmanager
def before_the_stop(lines: Lines) -> Iterator[None]:
    real = SetTargetState.apply

    def apply_step(self: SetTargetState, context: Any) -> str | None:
        if self.verb == "stop":
            lines.commit()
        return real(self, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SetTargetState, "apply", apply_step)
        yield


@contextmanager
def broken_off() -> Iterator[None]:
    """The run breaks off where it would write."""

    def broken(self: Change, context: Any) -> str | None:
        raise Unreachable("broken off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Change, "is_done", lambda self, context: None)
        patch.setattr(Change, "apply", broken)
        yield


def merged_again(lines: Lines) -> None:
    lines.merge("dedicated")
    lines.merge("global")


def migrated_again(lines: Lines) -> None:
    lines.migrate("own-offsets-topic")
    lines.migrate("global-offsets-topic")


@pytest.mark.parametrize("window", [answered_late, before_the_stop])
def test_a_merge_into_a_topic_that_was_equal_carries_what_was_committed_meanwhile(
    lines: Lines, window: Callable[[Lines], Any]
) -> None:
    merged_again(lines)
    with window(lines):
        lines.merge("dedicated")
    assert lines.twice() == 0


def test_own_offsets_topic_again_answered_late_writes_nothing_twice_and_its_undo_carries_over_what_came_later(
    lines: Lines,
) -> None:
    migrated_again(lines)
    lines.commit()
    with answered_late(lines):
        lines.migrate("own-offsets-topic")
    assert lines.twice() == 0
    run = lines.run()
    refused = lines.move("upgrade", "abort", code=4)
    assert f"connectctl offsets undo {run}" in refused.err
    plan = ctl(lines.cluster, "offsets", "undo", run, "--stop", "--dry-run").out
    assert "1 source partition moved since and kept" in plan
    lines.move("offsets", "undo", run, "--stop")
    assert PROPERTY not in lines.config()
    assert lines.twice() == 0


def test_a_run_that_is_resumed_after_the_connector_went_on_can_be_undone(lines: Lines) -> None:
    with broken_off():
        lines.merge("dedicated", code=7)
    run = lines.run()
    lines.resume()
    lines.commit()
    assert "committed since the first attempt" in lines.move("runs", "resume", run).out
    assert lines.twice() == 0
    lines.move("offsets", "undo", run, "--stop")
    assert lines.twice() == 0


def test_a_dedicated_topic_that_is_a_little_older_is_stale(lines: Lines) -> None:
    lines.merge("dedicated")
    lines.merge("global")
    lines.commit()
    stopped(lines.cluster, lines.name)
    lines.configure(lines.own)  # somebody sets the property again, by hand
    diff = ctl(lines.cluster, "offsets", "diff", lines.name)
    assert "looks stale for 1 source partition" in diff.err
    refused = lines.move("offsets", "merge", lines.name, "--into", "global", code=4)
    assert "looks stale for 1 source partition" in refused.err
    lines.migrate("stale-offsets-topics", "stale=merge")
    lines.resume()
    assert lines.twice() == 0


def test_an_undo_of_offsets_that_somebody_gave_is_refused_after_the_connector_went_on(lines: Lines) -> None:
    key = {"filename": str(lines.file)}
    body = json.dumps({"offsets": [{"partition": key, "offset": {"position": 0}}]})
    assert ctl(lines.cluster, "offsets", "set", lines.name, "-f", "-", "--stop", "--yes", stdin=body).code == 0
    run = lines.run()
    lines.runs()
    eventually(lambda: lines.position() == lines.file.stat().st_size)
    lines.commit()
    refused = lines.move("offsets", "undo", run, "--stop", code=4)
    assert "1 source partition of" in refused.err
    assert "moved since the run" in refused.err
    assert lines.rest.state(lines.name) == ["RUNNING", "RUNNING"]


def test_the_undo_of_carried_offsets_carries_over_what_was_committed_since_and_before_its_stop(lines: Lines) -> None:
    carried_to_another_name(lines)
    run = lines.run()
    lines.runs()
    lines.commit()
    with before_the_stop(lines):
        lines.move("runs", "undo", run)
    assert lines.config()["file"] == str(lines.file)
    assert lines.twice() == 0


def test_the_undo_of_a_creation_with_carried_offsets_is_refused_after_the_connector_went_on(lines: Lines) -> None:
    stopped(lines.cluster, lines.name)
    other = f"{lines.name}-2"
    given = lines.file.with_name("other.json")
    given.write_text(json.dumps(lines.config() | {"name": other}))
    lines.move("connectors", "create", "-f", str(given), "--carry-offsets", "--wait")
    run = lines.run()
    try:
        lines.write()
        eventually(lambda: len(read_all(lines.cluster, lines.name)) == lines.count)
        size = lines.file.stat().st_size
        offsets = lines.cluster.topics["offsets"]
        eventually(lambda: [*map(json.loads, live(lines.cluster, offsets, other).values())] == [{"position": size}])
        refused = lines.move("runs", "undo", run, code=4)
        assert f"1 source partition of {other} moved since the run {run}" in refused.err
        assert lines.rest.state(other) == ["RUNNING", "RUNNING"]
    finally:
        lines.move("connectors", "delete", other, "--wait")


# ------------------------------------------------------------------------------------------------------- the whole table


def taken_over(lines: Lines) -> None:
    """A run of connectctl has the connector for a moment, and hands it back to its workers."""
    job = lines.file.with_name("job.yaml")
    config = {name: value for name, value in lines.config().items() if name != "name"}
    until = {"idle": "2s"}
    job.write_text(json.dumps({"name": lines.name, "config": config, "spark": {"master": "local[2]"}, "until": until}))
    lines.move("--timeout", "300", "run", str(job), "--take-over", "-o", "json")


def carried_to_another_name(lines: Lines) -> None:
    """The file gets a second name, under which the connector goes on."""
    other = lines.file.with_name("other.txt")
    other.hardlink_to(lines.file)
    lines.move("connectors", "patch", lines.name, f"file={other}", "--carry-offsets", "--wait")


def undone(lines: Lines) -> None:
    lines.move("offsets", "undo", lines.run(), "--stop")


Act = Callable[[Lines], object]
TABLE: dict[str, tuple[Act, Act]] = {
    "merge into dedicated": (lambda lines: None, lambda lines: lines.merge("dedicated")),
    "merge into global": (lambda lines: lines.merge("dedicated"), lambda lines: lines.merge("global")),
    "0006 own-offsets-topic": (migrated_again, lambda lines: lines.migrate("own-offsets-topic")),
    "0007 global-offsets-topic": (
        lambda lines: lines.migrate("own-offsets-topic"),
        lambda lines: lines.migrate("global-offsets-topic"),
    ),
    "undo of 0006": (lambda lines: lines.migrate("own-offsets-topic"), undone),
    "undo of 0007": (migrated_again, undone),
    "carry-offsets": (lambda lines: None, carried_to_another_name),
    "take-over": (lambda lines: None, taken_over),
}


@pytest.mark.slow
@pytest.mark.parametrize("window", [answered_late, before_the_stop])
@pytest.mark.parametrize("name", TABLE)
def test_no_plan_on_a_running_connector_writes_a_line_twice(
    lines: Lines, name: str, window: Callable[[Lines], Any]
) -> None:
    prepare, act = TABLE[name]
    prepare(lines)
    lines.commit()
    with window(lines):
        act(lines)
    twice = lines.twice()
    print(f"{name:28} {window.__name__:18} twice {twice}")
    assert twice == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TABLE if name[:2] in ("me", "00")])
def test_no_undo_of_a_plan_on_a_running_connector_writes_a_line_twice(lines: Lines, name: str) -> None:
    prepare, act = TABLE[name]
    prepare(lines)
    act(lines)
    run = lines.run()
    lines.runs()
    lines.commit()
    lines.move("offsets", "undo", run, "--stop")
    twice = lines.twice()
    print(f"{name:28} {'undone later':18} twice {twice}")
    assert twice == 0
