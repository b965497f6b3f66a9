"""A take-over and what it leaves: workers show what is true, and no command is fooled by a status.

Whole runs, but for Spark: a take-over on Spark is in ``test_run.py``.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol import run_presence
from connectctl.ops.task_runtime.job.status_topic import connector_key, task_key, value
from live.real import DEADLINE, FILE_SOURCE, Ran, Workers, connectctl, connector, eventually, write
from live.rundirectory import Place

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    pytest.mark.usefixtures("without_spark"),
    pytest.mark.drawn(3, matrix="take-overs"),
]


def command(place: Place, *args: str) -> Ran:
    ran = connectctl("--context", f"sandbox-{place.cluster.spec.name}", "--timeout", "300", *args)
    assert ran.code == 0, ran.err
    return ran


def poison(place: Place, rest: Workers) -> None:
    """What an older version left that was killed: RUNNING in the workers' own status topic, by
    nobody. A worker that ends a task late writes after it: then it is written again.
    """
    said = value("RUNNING", "driver:41234", 0)
    records = (connector_key(place.name), said), (task_key(place.name, 0), said)

    def is_told() -> bool:
        write(place.cluster.bootstrap_servers, place.cluster.topics["status"], *records)
        return rest.state(place.name) == ["RUNNING", "RUNNING"]

    eventually(is_told)


def test_while_a_run_has_a_connector_and_after_it_was_killed_its_workers_show_stopped_and_resume_it(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the second would wait for the death of the first
    monkeypatch.setattr(run_presence, "GONE", 2.0)
    place = Place(cluster, tmp_path)
    place.append(50)
    with connector(cluster, place.name, place.config) as rest:
        eventually(lambda: len(place.seen()) == 50)
        with place.running("--take-over", own=False) as run:
            eventually(lambda: rest.state(place.name) == ["STOPPED"] or run.poll() is not None)
            place.append(50)
            eventually(lambda: len(place.seen()) == 100 or run.poll() is not None)
            assert rest.state(place.name) == ["STOPPED"]
            (told,) = command(place, "run", "status", place.name, "-o", "json").json["connectors"]
            assert (told["connector"]["state"], [task["state"] for task in told["tasks"]]) == (
                "RUNNING",
                ["RUNNING"],
            )
            second = place.run("--take-over", own=False)
            assert (
                second.code,
                f"Another connectctl run is running {place.name}" in second.err,
            ) == (4, True), second.err
            assert f"process {run.pid} on" in second.err
            changed = connectctl(
                "--context", f"sandbox-{cluster.spec.name}", "offsets", "reset", place.name, "--yes"
            )
            assert (changed.code, f"a connectctl run is running {place.name}" in changed.err) == (
                4,
                True,
            ), changed.err
            run.kill()
            run.wait()
        assert rest.state(place.name) == ["STOPPED"]
        command(place, "connectors", "resume", place.name, "--wait", "--yes")
        assert rest.state(place.name) == ["RUNNING", "RUNNING"]
        place.append(50)
        eventually(lambda: len(place.seen()) >= 150)
        place.all_there()


def test_a_take_over_is_in_the_list_of_runs_and_once_killed_its_resume_hands_the_connector_back(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path)
    place.append(50)

    def listed() -> dict[str, str]:
        runs = command(place, "runs", "list", "-o", "json").json["runs"]
        return next(
            run for run in runs if run["operation"] == "run" and run["subjects"] == [place.name]
        )

    with connector(cluster, place.name, place.config) as rest:
        eventually(lambda: len(place.seen()) == 50)
        ended = place.run("--take-over", own=False)
        assert (ended.code, listed()["state"], listed()["groupId"]) == (
            0,
            "done",
            cluster.group_id,
        ), ended.err
        eventually(lambda: rest.state(place.name) == ["RUNNING", "RUNNING"])
        with place.running("--take-over", own=False) as run:
            eventually(lambda: rest.state(place.name) == ["STOPPED"] or run.poll() is not None)
            place.append(50)
            eventually(lambda: len(place.seen()) == 100 or run.poll() is not None)
            assert listed()["state"] == "open"
            run.kill()
            run.wait()
        resumed = command(place, "runs", "resume", listed()["id"], "--yes")
        assert "resume" in resumed.out
        assert listed()["state"] == "done"
        assert rest.state(place.name) == ["RUNNING", "RUNNING"]
        place.append(50)
        eventually(lambda: len(place.seen()) >= 150)
        place.all_there()


def test_a_status_that_nobody_takes_back_hinders_no_change_of_a_stopped_connector(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path)
    place.append(30)
    with connector(cluster, place.name, place.config) as rest:
        eventually(lambda: len(place.seen()) == 30)
        command(place, "connectors", "stop", place.name, "--wait", "--yes")
        poison(place, rest)
        listed = command(place, "connectors", "list", "-o", "json").json["connectors"]
        assert [each["state"] for each in listed if each["name"] == place.name] == ["STOPPED"]
        assert (
            "already STOPPED"
            in command(place, "connectors", "stop", place.name, "--wait", "--yes").out
        )
        command(place, "offsets", "reset", place.name, "--yes")
        assert rest.offsets(place.name) == []
        command(place, "connectors", "resume", place.name, "--wait", "--yes")
        eventually(lambda: len(place.seen()) >= 60)


def test_offsets_are_not_written_beside_a_run_in_a_group_of_its_own_and_are_after_it(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path, **{"batch.size": "5"})
    place.append(20_000)
    roles = [
        f"--{role}-topic={place.group}-{name}"
        for role, name in (("config", "configs"), ("offsets", "offsets"))
    ]
    reset = ["--context", f"sandbox-{cluster.spec.name}", "--group-id", place.group, *roles]
    reset += ["offsets", "reset", place.name, "--yes"]
    with place.running() as run:
        place.sees(50)
        ran = connectctl(*reset)
        assert (ran.code, f"process {run.pid} on" in ran.err) == (4, True), ran.err
        place.sees(50)
        run.terminate()
        _out, err = run.communicate(timeout=DEADLINE)
        assert run.returncode == 0, err
    ran = connectctl(*reset)
    assert ran.code == 0, ran.err
    assert f"fence the transactional id {place.group}-{place.name}-0 of {place.name}" in ran.out
    before = len(place.seen())
    with place.running():
        eventually(lambda: len(place.seen()) >= before + 50)
        assert place.seen()[before] == "line 0"


def test_a_resume_with_wait_of_what_has_failed_is_no_success(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"failed-{secrets.token_hex(4)}"
    (tmp_path / "in.txt").write_text("a line\n")
    config = {
        "connector.class": FILE_SOURCE,
        "file": str(tmp_path / "in.txt"),
        "topic": "this cannot be a topic",
    }
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.state(name) == ["RUNNING", "FAILED"])
        context = f"sandbox-{cluster.spec.name}"
        ran = connectctl(
            "--context",
            context,
            "--timeout",
            "300",
            "connectors",
            "resume",
            name,
            "--wait",
            "--yes",
        )
        assert ran.code == 1
        assert f"connectors restart {name} --only-failed" in ran.out + ran.err


def test_a_run_until_it_is_idle_ends_whatever_the_length_of_its_leases(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path)
    place.append(20)
    began = time.monotonic()
    ran = place.run("--lease", "1", idle="4s")
    assert (ran.code, ran.json["outcome"], ran.json["records"]) == (0, "ended", 20), ran.err
    assert time.monotonic() - began > 4.0
    place.all_there()
