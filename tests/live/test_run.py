"""``connectctl run`` on Spark and a real broker: whatever is stopped, killed or taken over, every
line is there once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.job import generation
from live import countingplugin
from live.real import Ran, connectctl, connector, eventually
from live.rundirectory import SCHEMAS, Place, python_workers, well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
RUNS = pytest.mark.drawn(3, matrix="runs of a source")


@RUNS
def test_a_second_run_goes_on_where_the_first_ended(cluster: Sandbox, tmp_path: Path) -> None:
    place = Place(cluster, tmp_path)
    place.append(300)
    first = well(place.run())
    assert (first["outcome"], first["records"]) == ("ended", 300)
    before = place.standing()
    assert (before.task_count, before.committed_tasks, before.commit < before.fenced) == (
        1,
        1,
        True,
    )
    place.append(200)
    second = well(place.run(records=200))
    assert (second["outcome"], second["records"]) == ("ended", 200)
    place.all_there()
    # No worker is in the group: its topics are found by their names.
    where = ("--bootstrap-servers", cluster.bootstrap_servers, "--group-id", place.group)
    audited = connectctl(*where, "audit", place.topic, "--connector", place.name, "-o", "json")
    # Lines tell no sequence: that its offset counts characters is what its configuration says.
    assert (audited.code, audited.json["records"]["committed"]) == (1, 500), (
        audited.out + audited.err
    )
    assert [f["id"] for f in audited.json["findings"]] == ["AUDIT013"]
    assert "its offset counts characters" in audited.json["findings"][0]["message"]
    shown = connectctl(*where, "offsets", "show", place.name, "-o", "json").json
    assert [topic["topic"] for topic in shown["topics"]] == [f"{place.group}-offsets"]
    status = place.status()
    assert (status["connector"]["state"], [t["state"] for t in status["tasks"]]) == (
        "STOPPED",
        ["ENDED"],
    )


@RUNS
@pytest.mark.usefixtures("without_spark")
def test_a_saved_plan_of_a_run_is_applied_and_refused_once_it_is_stale(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path)
    place.append(100)
    plan = tmp_path / "plan.json"

    def save() -> None:
        planned = connectctl(*place.args(place.job(idle="2s"), "--dry-run", "-o", "json"))
        assert planned.code == 0, planned.err
        jsonschema.validate(planned.json, json.loads((SCHEMAS / "plan.json").read_text()))
        plan.write_text(planned.out)

    def apply() -> Ran:
        where = ("--context", f"sandbox-{cluster.spec.name}", "--group-id", place.group)
        return connectctl(*where, "runs", "apply", str(plan), "--yes", "-o", "json")

    save()
    assert well(apply())["records"] == 100
    place.append(50)
    stale = apply()  # it would create the group's topics, which are there by now
    assert (stale.code, "The plan is stale: " in stale.err) == (4, True), stale.err
    save()
    place.job(idle="3s")
    changed = apply()
    assert (changed.code, f"{tmp_path / 'job.yaml'} has changed" in changed.err) == (4, True), (
        changed.err
    )
    place.job(idle="2s")
    assert well(apply())["records"] == 50
    place.all_there()


@RUNS
def test_workers_and_drivers_that_are_killed_or_overtaken_lose_nothing_and_double_nothing(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path, **{"batch.size": "5"})
    place.append(20_000)
    with place.running() as run:
        place.sees(50)
        for worker in python_workers(run):
            worker.kill()
        place.sees(50)
        assert place.status()["connector"]["state"] == "RUNNING"
        os.kill(run.pid, signal.SIGKILL)
    generation = place.standing().fenced
    with place.running() as older:
        eventually(lambda: place.standing().fenced > generation)
        place.sees(50)
        place.config["batch.size"] = "2000"
        assert well(place.run())["outcome"] == "ended"
        out, err = older.communicate(timeout=900)
        assert older.returncode == 1, err
        assert json.loads(out)["outcome"] == "taken"
    place.all_there()


@pytest.mark.slow
def test_a_start_that_dies_before_it_fences_leaves_the_run_of_before_its_tasks(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        """In place of the end of a process."""

    def die(*args: object) -> None:
        raise Killed

    place = Place(cluster, tmp_path, **{"batch.size": "5"})
    place.append(20_000)
    with place.running("--lease", "2") as run:
        place.sees(50)
        client = {"bootstrap.servers": cluster.bootstrap_servers}
        with (
            closing(TransactionClient(client, timeout=120)) as calls,
            monkeypatch.context() as patch,
        ):
            patch.setattr(generation, "fence", die)
            leader = generation.Leader(place.kafka, calls, place.group, f"{place.group}-configs")
            with pytest.raises(Killed):
                leader.start(
                    place.name, place.config | {"batch.size": "7"}, lambda before: before.tasks
                )
        dead = place.standing()
        assert dead.fenced < dead.commit
        eventually(lambda: place.standing().fenced > dead.commit)
        place.sees(50)
        run.terminate()
        out, err = run.communicate(timeout=900)
        assert (run.returncode, json.loads(out)["outcome"]) == (0, "stopped"), err
        assert [
            line for line in err.splitlines() if line.startswith(("waiting", f"{place.name} runs"))
        ] == [
            f"waiting: another start made the tasks of {place.name} stale and has not completed "
            "yet",
            f"{place.name} runs its tasks again: the start that had made them stale did not "
            "complete",
        ]
    assert place.seen() == [f"line {n}" for n in range(len(place.seen()))]


@RUNS
@pytest.mark.usefixtures("without_spark")
def test_a_workers_connector_is_taken_over_in_the_middle_of_its_file_and_handed_back_at_sigterm(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path)
    place.append(50)
    with connector(cluster, place.name, place.config) as rest:
        eventually(lambda: len(place.seen()) == 50)
        refused = place.run(own=False)
        assert (refused.code, "--take-over" in refused.err) == (4, True)
        with place.running("--take-over", own=False) as run:
            eventually(lambda: rest.state(place.name)[1:] == [])
            place.append(50)
            eventually(lambda: len(place.seen()) == 100)
            run.send_signal(signal.SIGTERM)
            out, err = run.communicate(timeout=900)
        assert run.returncode == 0, err
        assert json.loads(out)["outcome"] == "stopped"
        eventually(lambda: rest.state(place.name) == ["RUNNING", "RUNNING"])
        place.append(50)
        eventually(lambda: len(place.seen()) >= 150)
        place.all_there()


COUNTING = """
from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask


class Task(SourceTask):
    def start(self, configs):
        self.partition = {"task": int(configs["task"])}
        self.end, self.topic = int(configs["count"]), configs["topic"]
        self.next = (self.context.offsets.offset(self.partition) or {}).get("next", 0)

    def poll(self):
        numbers = range(self.next, min(self.next + 7, self.end))
        self.next = max(self.next, numbers.stop)
        return [
            SourceRecord(self.partition, {"next": n + 1}, self.topic, {**self.partition, "n": n}) for n in numbers
        ]

    @property
    def finished(self):
        return self.next >= self.end


class Counting(SourceConnector):
    task = Task

    def task_configs(self, max_tasks):
        return [{**self.configs, "task": str(n)} for n in range(int(self.configs["wanted"]))]
"""


@RUNS
def test_a_plugin_travels_with_its_job_and_too_many_of_its_tasks_fail_it(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Place(cluster, tmp_path)
    archive, class_ = countingplugin.as_zip(tmp_path, COUNTING)
    place.config |= {"connector.class": class_, "wanted": "3", "count": "50", "tasks.max": "2"}
    place.plugins = [archive]
    ran = place.run()
    assert ran.code == 1
    explanation = f"The connector {place.name} has generated 3 tasks, which is greater than 2"
    assert explanation in json.loads(ran.err.splitlines()[-1])["error"]["message"]
    status = place.status()
    assert (status["connector"]["state"], status["tasks"], place.seen()) == ("FAILED", [], [])
    assert explanation in status["connector"]["trace"]
    assert place.standing().commit == -1
    place.config["tasks.max"] = "3"
    assert well(place.run())["records"] == 150
    found = sorted((value["task"], value["n"]) for value in place.values())
    assert found == [(task, n) for task in range(3) for n in range(50)]


def test_what_cannot_be_run_is_refused_before_anything_is_written(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path)
    before = set(place.kafka.topic_names())
    del place.config["file"]
    ran = place.run()
    assert ran.code == 2
    assert (
        json.loads(ran.err)["error"]["why"]
        == 'Missing required configuration "file" which has no default value.'
    )
    place.config["file"] = str(place.file)
    assert place.run("--take-over", own=False).code == 2  # the workers have no such connector
    dry = connectctl(*place.args(place.job(idle="1s"), "--dry-run"))
    assert (dry.code, f"{place.group}-configs" in dry.out) == (0, True)
    assert connectctl(*place.args(place.job(idle="1s"))).code == 2  # nobody to ask
    after = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120).topic_names()
    assert not {t for t in after - before if place.name in t}
