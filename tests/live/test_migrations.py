"""Migrations that change connectors on real workers: own offsets topics and back, stale ones,
tasks.max.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import Producer
from connectctl.ops.core.journal import RunState
from live.offsetchanges import SCHEMAS, GrowingFile, ctl, file_source, journal, live, read_all
from live.real import connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PLUGIN = "org.apache.kafka.connect.integration.MonitorableSourceConnector"
"""It generates ``num.tasks`` tasks, whatever tasks.max is."""


@pytest.fixture
def name() -> str:
    return f"migrated-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def _nothing_unfinished(cluster: Sandbox) -> Iterator[None]:
    """A test that fails half way leaves no run behind that would refuse the next one."""
    yield
    where = ("--context", f"sandbox-{cluster.spec.name}")
    connectctl(*where, "upgrade", "abort", "--leave", "--yes")


def plan(cluster: Sandbox, migration: str, *sets: str, code: int = 0) -> Any:
    ran = ctl(
        cluster, "upgrade", "plan", "--migration", migration, *_sets(sets), "-o", "json", code=code
    )
    if code == 0:
        jsonschema.validate(ran.json, SCHEMAS["Plan"])
        return ran.json
    return ran.err


def apply(
    cluster: Sandbox, migration: str, *sets: str, more: tuple[str, ...] = (), code: int = 0
) -> Any:
    command = (
        "upgrade",
        "apply",
        "--migration",
        migration,
        *_sets(sets),
        "--yes",
        "--gate-timeout",
        "600",
        *more,
    )
    ran = ctl(cluster, *command, "-o", "json", code=code)
    return ran.json if code == 0 else ran.err


def _sets(sets: tuple[str, ...]) -> list[str]:
    return [word for each in sets for word in ("--set", each)]


def standing(cluster: Sandbox, migration: str) -> dict[str, Any]:
    listed = ctl(cluster, "upgrade", "list", "-o", "json").json
    return next(each for each in listed["migrations"] if each["name"] == migration)


def test_a_connector_gets_its_own_topic_and_gives_it_back_and_loses_no_line(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    file = GrowingFile(tmp_path / "lines")
    with file.growing(), connector(cluster, name, file_source(tmp_path / "lines", name)) as rest:
        eventually(lambda: live(cluster, cluster.topics["offsets"], name))
        made = plan(cluster, "own-offsets-topic", f"connector={name}")
        assert f"set offsets.storage.topic={name}-offsets of {name}" in [
            step["description"] for step in made["steps"]
        ]
        apply(cluster, "own-offsets-topic", f"connector={name}")
        assert (
            rest.call("GET", f"/connectors/{name}/config").json()["offsets.storage.topic"]
            == f"{name}-offsets"
        )
        assert live(cluster, f"{name}-offsets", name)
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        listed = standing(cluster, "own-offsets-topic")
        assert listed["appliedAt"]
        assert name in standing(cluster, "global-offsets-topic")["why"]
        assert plan(cluster, "own-offsets-topic", f"connector={name}")["steps"] == []

        back = plan(cluster, "global-offsets-topic", f"connector={name}")
        assert any(
            line.startswith(f"{name}: {name}-offsets has 1 source partition;")
            for line in back["warnings"]
        )
        apply(cluster, "global-offsets-topic", f"connector={name}")
        assert "offsets.storage.topic" not in rest.call("GET", f"/connectors/{name}/config").json()
        written = file.stop()
        eventually(lambda: len(read_all(cluster, name)) >= len(written))
    assert sorted(read_all(cluster, name)) == sorted(written)


def test_a_run_that_was_paused_in_the_middle_is_taken_back_whole(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("one\n")
    with connector(cluster, name, file_source(tmp_path / "lines", name)) as rest:
        before = eventually(lambda: live(cluster, cluster.topics["offsets"], name))
        says = [
            step["description"]
            for step in plan(cluster, "own-offsets-topic", f"connector={name}")["steps"]
        ]
        number = next(
            n for n, step in enumerate(says, 1) if step.startswith("set offsets.storage.topic")
        )
        run = apply(
            cluster, "own-offsets-topic", f"connector={name}", more=("--pause-after", str(number))
        )["run"]
        # its new configuration makes the workers rebalance
        eventually(lambda: rest.state(name) == ["STOPPED"])
        ctl(cluster, "upgrade", "abort", run, "--yes", "--gate-timeout", "600")
        assert "offsets.storage.topic" not in rest.call("GET", f"/connectors/{name}/config").json()
        assert live(cluster, cluster.topics["offsets"], name) == before
        assert live(cluster, f"{name}-offsets", name) == {}
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        assert journal().get(run).state is RunState.UNDONE


def test_a_stale_topic_is_found_and_refreshed(cluster: Sandbox, name: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\n")
    config = file_source(tmp_path / "lines", name) | {"offsets.storage.topic": f"{name}-offsets"}
    with connector(cluster, name, config) as rest:
        eventually(lambda: live(cluster, f"{name}-offsets", name))
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name) == ["STOPPED"])
        assert plan(cluster, "stale-offsets-topics", f"connector={name}")["steps"] == []
        # As an older release leaves it, which goes on in the global topic.
        ((_, key),) = live(cluster, f"{name}-offsets", name)
        later = {"position": 4, "later": True}
        write_later(cluster, key, later)
        assert "is neither" not in (
            err := plan(cluster, "stale-offsets-topics", f"connector={name}", code=2)
        )
        assert "looks stale" in err
        before = live(cluster, f"{name}-offsets", name)
        run = apply(cluster, "stale-offsets-topics", f"connector={name}", "stale=merge")["run"]
        ((_, value),) = live(cluster, f"{name}-offsets", name).items()
        assert b"later" in value
        assert plan(cluster, "stale-offsets-topics", f"connector={name}")["steps"] == []
        ctl(cluster, "offsets", "undo", run, "--yes")
        assert live(cluster, f"{name}-offsets", name) == before
        apply(cluster, "stale-offsets-topics", f"connector={name}", "stale=unset")
        assert "offsets.storage.topic" not in rest.call("GET", f"/connectors/{name}/config").json()
        assert b"later" in next(iter(live(cluster, cluster.topics["offsets"], name).values()))


def write_later(cluster: Sandbox, key: bytes, value: dict[str, Any]) -> None:
    """Write a global offset whose time is an hour ahead."""
    client = {"bootstrap.servers": cluster.bootstrap_servers, "partitioner": "murmur2_random"}
    producer = Producer(client)
    ahead = int(time.time() * 1000) + 3_500_000
    producer.produce(cluster.topics["offsets"], key=key, value=json.dumps(value), timestamp=ahead)
    assert producer.flush(300) == 0


def test_too_many_tasks_are_allowed_for_good_or_for_now(cluster: Sandbox, name: str) -> None:
    names = (f"{name}-a", f"{name}-b")
    configs = [
        {
            "connector.class": PLUGIN,
            "name": n,
            "topic": n,
            "throughput": "5",
            "tasks.max": "1",
            "num.tasks": "2",
        }
        for n in names
    ]
    with connector(cluster, names[0], configs[0]) as rest, connector(cluster, names[1], configs[1]):
        eventually(lambda: [rest.state(each) for each in names] == [["FAILED"]] * 2)
        choice = (f"raise={names[0]}", f"bridge={names[1]}", "others=leave")
        made = plan(cluster, "enforce-tasks-max", *choice)
        assert {f"set tasks.max=2 on {names[0]}", f"set tasks.max.enforce=false on {names[1]}"} <= {
            step["description"] for step in made["steps"]
        }
        assert names[0] in standing(cluster, "enforce-tasks-max")["why"]
        apply(cluster, "enforce-tasks-max", *choice)
        eventually(lambda: [rest.state(each) for each in names] == [["RUNNING"] * 3] * 2)
        later = plan(cluster, "enforce-tasks-max", f"leave={names[1]}", "others=leave")
        assert later["steps"] == []
        assert not any(line.startswith(f"{names[0]}:") for line in later.get("warnings", []))
