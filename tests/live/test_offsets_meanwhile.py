"""A file source on real workers that goes on while its offsets are moved: no line is lost or twice,
or it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.operations.connectors.carried_offsets import CarryOffsets, DeleteCarried
from connectctl.ops.operations.connectors.config.steps import ChangeConnector
from connectctl.ops.operations.connectors.steps import Await
from live.offsetchanges import ctl, live, read_all
from live.real import eventually
from live.runningsource import (
    PROPERTY,
    Lines,
    at_the_answer,
    at_the_stop,
    broken_off,
    broken_off_after,
    file_lines,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.drawn(3, matrix="offsets that change meanwhile")]


@pytest.fixture
def lines(cluster: Sandbox, tmp_path: Path) -> Iterator[Lines]:
    with file_lines(cluster, tmp_path) as found:
        yield found


def merged_again(lines: Lines) -> None:
    lines.merge("dedicated")
    lines.merge("global")


def migrated_again(lines: Lines) -> None:
    lines.migrate("own-offsets-topic")
    lines.migrate("global-offsets-topic")


@pytest.mark.drawn
@pytest.mark.parametrize("window", [at_the_answer, at_the_stop])
def test_a_merge_into_a_topic_that_was_equal_carries_what_was_committed_meanwhile(
    lines: Lines, window: Callable[[Callable[[], object]], Any]
) -> None:
    merged_again(lines)
    with window(lines.commit):
        lines.merge("dedicated")
    assert lines.twice() == 0


def test_own_offsets_topic_again_answered_late_writes_nothing_twice_and_its_undo_carries_over_what_came_later(
    lines: Lines,
) -> None:
    migrated_again(lines)
    lines.commit()
    with at_the_answer(lines.commit):
        lines.migrate("own-offsets-topic")
    assert lines.twice() == 0
    run = lines.run()
    refused = lines.move("upgrade", "abort", code=4)
    assert f"runs undo {run}" in refused.err
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
    lines.stop()
    lines.configure(lines.own)  # somebody sets the property again, by hand
    diff = ctl(lines.cluster, "offsets", "diff", lines.name)
    assert "looks stale for 1 source partition" in diff.err
    refused = lines.move("offsets", "merge", lines.name, "--into", "global", code=4)
    assert "looks stale for 1 source partition" in refused.err
    lines.migrate("stale-offsets-topics", "stale=merge")
    lines.resume()
    assert lines.twice() == 0


def test_an_undo_of_offsets_that_somebody_gave_is_refused_after_the_connector_went_on(
    lines: Lines,
) -> None:
    key = {"filename": str(lines.file)}
    body = json.dumps({"offsets": [{"partition": key, "offset": {"position": 0}}]})
    assert (
        ctl(
            lines.cluster, "offsets", "set", lines.name, "-f", "-", "--stop", "--yes", stdin=body
        ).code
        == 0
    )
    run = lines.run()
    lines.runs()
    eventually(lambda: lines.position() == lines.file.stat().st_size)
    lines.commit()
    refused = lines.move("offsets", "undo", run, "--stop", code=4)
    assert "1 source partition of" in refused.err
    assert "moved since the run" in refused.err
    assert lines.rest.state(lines.name) == ["RUNNING", "RUNNING"]


def test_the_undo_of_carried_offsets_carries_over_what_was_committed_since_and_before_its_stop(
    lines: Lines,
) -> None:
    other = lines.file.with_name("other.txt")
    other.hardlink_to(lines.file)
    lines.move("connectors", "patch", lines.name, f"file={other}", "--carry-offsets", "--wait")
    run = lines.run()
    lines.runs()
    lines.commit()
    with at_the_stop(lines.commit):
        lines.move("runs", "undo", run)
    assert lines.config()["file"] == str(lines.file)
    assert lines.twice() == 0


@pytest.mark.drawn
@pytest.mark.parametrize("step", [Await, CarryOffsets, ChangeConnector, DeleteCarried])
def test_carried_offsets_that_are_interrupted_after_a_step_and_resumed_by_hand_read_nothing_twice(
    lines: Lines, step: type[Any]
) -> None:
    other = lines.file.with_name("other.txt")
    other.hardlink_to(lines.file)
    with broken_off_after(step):
        patch = ("connectors", "patch", lines.name, f"file={other}", "--carry-offsets")
        lines.move(*patch, code=5)
    run = lines.run()
    lines.resume()
    assert lines.twice() == 0
    if step is not DeleteCarried:
        lines.move("runs", "resume", run)
    assert lines.twice() == 0
    assert lines.config()["file"] == str(other)
    lines.move("runs", "undo", run)
    assert lines.twice() == 0
    assert lines.config()["file"] == str(lines.file)
    offsets = lines.rest.call("GET", f"/connectors/{lines.name}/offsets").json()["offsets"]
    assert [each["partition"] for each in offsets] == [{"filename": str(lines.file)}]


def test_the_undo_of_a_creation_with_carried_offsets_is_refused_after_the_connector_went_on(
    lines: Lines,
) -> None:
    lines.stop()
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
        eventually(
            lambda: (
                [*map(json.loads, live(lines.cluster, offsets, other).values())]
                == [{"position": size}]
            )
        )
        refused = lines.move("runs", "undo", run, code=4)
        assert f"1 source partition of {other} moved since the run {run}" in refused.err
        assert lines.rest.state(other) == ["RUNNING", "RUNNING"]
    finally:
        lines.move("connectors", "delete", other, "--wait")
