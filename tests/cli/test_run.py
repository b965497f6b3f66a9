"""``connectctl run`` before it opens anything: job files, plugins, masters, and how it looks."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import jsonschema
import pytest
from connectctl.cli.main import app
from connectctl.cli.output.prometheus import RunMetrics
from connectctl.cli.views import run as run_view
from connectctl.cli.views import run_status
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.task_runtime.attempt.task_attempt import TaskReport
from connectctl.ops.task_runtime.job import job_context, run_clients, status_report, task_count
from connectctl.ops.task_runtime.job.config_topic_records import task_set
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.job.runner import JobResult
from connectctl.ops.task_runtime.job.scheduler import FinalStatus, JobRun
from connectctl.ops.task_runtime.job.status_topic import RUN_PREFIX, connector_key, task_key, value
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter
from fakes.kafkareads import FakeKafka, connect_group
from fakes.preparing import Many, World
from typer.testing import CliRunner

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/run-result.json").read_text())
CONFIG = "config: {connector.class: FileStreamSource, file: /in, topic: t}"


def run(*args: str) -> Any:
    return CliRunner().invoke(
        app, ["--bootstrap-servers", "127.0.0.1:1", "--group-id", "g", "run", *args]
    )


@pytest.fixture
def job(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "args", "code", "says"),
    [
        ("confg: {a: b}", (), 2, "unknown key confg. Did you mean config?"),
        (
            "config: {connector.class: FileStreamSinks}",
            (),
            2,
            "Failed to find any class that implements Connector",
        ),
        ("config: {connector.class: 'no.such:Thing'}", (), 2, "Cannot import no.such:Thing"),
        (CONFIG, ("--master", "mesos://x"), 2, "Invalid Spark master mesos://x"),
        (f"{CONFIG}\nspark: {{master: nonsense}}", (), 2, "Invalid Spark master nonsense"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    job: Any, text: str, args: tuple[str, ...], code: int, says: str
) -> None:
    ran = run(job(text), *args)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (code, "", 1)
    assert says in ran.stderr


def test_a_spark_master_that_does_not_answer_is_unreachable(job: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ran = run("--master", f"spark://127.0.0.1:{port}", job(CONFIG))
    assert (ran.exit_code, ran.stderr.count("\n")) == (5, 1)
    assert f"spark://127.0.0.1:{port} does not answer" in ran.stderr


@pytest.mark.parametrize(
    ("until", "args", "waits"),
    [
        ("{idle: 1s}", (), False),
        ("{idle: 1s}", ("--patience", "1"), True),
        ("{idle: 1s}\npatience: 1s", (), True),
        ("{forever: true}\npatience: 1s", (), True),
        ("{forever: true}", ("--dry-run",), False),
    ],
)
def test_brokers_that_are_not_up_yet_are_waited_for_where_nobody_watches_and_else_it_is_told_how(
    job: Any, until: str, args: tuple[str, ...], waits: bool
) -> None:
    ran = run(job(f"{CONFIG}\nuntil: {until}"), *args, "--timeout", "1")
    assert ran.exit_code == 5
    *before, last = ran.stderr.splitlines()
    assert "Kafka at 127.0.0.1:1 does not answer: " in last
    assert (
        "A run without an end waits for it; any other run with --patience SECONDS" in last
    ) is not waits
    if waits:
        (line,) = before
        assert line.startswith(
            "waiting: could not reach Kafka; retrying for up to 1 s (--patience): Kafka at 127"
        )
        assert "retried for 1 s" in last
    else:
        assert not before


def test_a_job_file_that_is_not_there_is_bad_input() -> None:
    ran = run("nowhere.yaml")
    assert (ran.exit_code, "Cannot read the job file nowhere.yaml" in ran.stderr) == (2, True)


def test_a_job_file_may_be_called_like_a_command(job: Any, tmp_path: Path) -> None:
    (tmp_path / "status").write_text("[]")
    ran = run(str(tmp_path / "status"))
    assert "is not a job file" in ran.stderr


def test_run_tells_of_its_options_and_of_status() -> None:
    assert "status" in CliRunner().invoke(app, ["run", "--help"]).stdout
    assert "--take-over" in CliRunner().invoke(app, ["run", "job", "--help"]).stdout


def finished(
    *reports: TaskReport, outcome: FinalStatus = FinalStatus.ENDED, failure: str | None = None
) -> JobResult:
    done: Any = None
    made = JobRun({r.task: {} for r in reports}, Until(), done)
    for report in reports:
        made.totals[report.task].add(report)
    return JobResult(outcome, made, 2.0, failure)


def told(*records: tuple[bytes, bytes, int]) -> list[ConsumerRecord]:
    """Records of a status topic: key, value, and the second in which it was written."""
    return [ConsumerRecord(key, said, 0, n, at * 1000) for n, (key, said, at) in enumerate(records)]


def test_what_a_run_says_goes_before_the_stopped_that_workers_say_again() -> None:
    metrics = {"source-record-write-total": 3}
    ours = [(connector_key("c", RUN_PREFIX), value("RUNNING", "driver:1", 0), 2)]
    ours += [(task_key("c", 0, RUN_PREFIX), value("RUNNING", "driver:1", 0, metrics=metrics), 2)]
    theirs = [
        (connector_key("c"), value("STOPPED", "w:1", 0), 3),
        (connector_key("d"), value("RUNNING", "w:1", 0), 3),
    ]
    kafka = FakeKafka(
        {"sta": told(*theirs), "g-run-status": told(*ours)},
        {"g": connect_group("g", w=[("d", -1)])},
    )
    scene: Any = SimpleNamespace(kafka=kafka, group=kafka.groups["g"], named={"status": "sta"})

    def states() -> dict[str, list[str]]:
        found = status_report.statuses(scene, "g", ())["connectors"]
        return {
            c["name"]: [c["connector"]["state"], *(t["state"] for t in c["tasks"])] for c in found
        }

    assert states() == {"c": ["RUNNING", "RUNNING"], "d": ["RUNNING"]}
    ended = [(connector_key("c", RUN_PREFIX), value("STOPPED", "driver:1", 0), 4)]
    ended += [
        (task_key("c", 0, RUN_PREFIX), value("UNASSIGNED", "driver:1", 0, metrics=metrics), 4)
    ]
    kafka.records["g-run-status"] = told(*ours, *ended)
    assert states()["c"] == ["STOPPED", "ENDED"]
    kafka.records["sta"] = told(*theirs, (connector_key("c"), value("RUNNING", "w:1", 0), 5))
    assert states()["c"] == ["RUNNING"]


MANY = f"""
name: c
config: {{connector.class: '{Many.__module__}:Many', topic: t, tasks.max: '2', %s}}
until: {{idle: 1s}}
"""


class Statuses:
    """A status topic: what was written to it."""

    written: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, *args: Any):
        self.written.clear()

    def connector(self, *said: Any) -> None:
        self.written.append(("connector", *said))

    def task(self, *said: Any) -> None:
        self.written.append(("task", *said))

    def flush(self) -> None:
        self.written.append(("flush",))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster in which nothing was run yet, without a Spark: whoever opens one fails."""
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    made = World()
    monkeypatch.setattr(run_clients, "contact_clusters", lambda session, job: None)
    monkeypatch.setattr(run_clients, "run_clients", lambda session, job: made.scene())
    monkeypatch.setattr(
        job_context, "create_topic", lambda *given: made.there.update(created=(1, ""))
    )
    monkeypatch.setattr(task_count, "StatusWriter", Statuses)
    Statuses.written.clear()
    return made


@pytest.mark.parametrize("args", [("--dry-run",), ("--dry-run", "--yes"), ()])
def test_more_tasks_than_tasks_max_are_refused_in_one_line_before_anything_is_changed(
    job: Any, world: World, args: tuple[str, ...]
) -> None:
    ran = run(job(MANY % "wanted: '3'"), *args)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert "c has generated 3 tasks, which is greater than 2" in ran.stderr
    assert (world.there, Statuses.written) == ({}, [])


def test_more_tasks_than_tasks_max_are_stored_as_failed_where_yes_was_said(
    job: Any, world: World
) -> None:
    world.there["g-configs"] = (1, "compact")
    world.configs = task_set("c", {"name": "c"}, [{}] * 3)
    ran = run(job(MANY % "wanted: '4'"), "--yes")
    assert (ran.exit_code, "c has generated 4 tasks, which is greater than 2" in ran.stderr) == (
        1,
        True,
    )
    assert [said[:-1] for said in Statuses.written] == [
        *(("task", number, "FAILED") for number in range(3)),
        ("connector", "FAILED"),
        (),
    ]
    assert "created" in world.there
    (listed,) = json.loads(CliRunner().invoke(app, ["runs", "list", "-o", "json"]).stdout)["runs"]
    assert (listed["operation"], listed["subjects"], listed["state"]) == ("run", ["c"], "failed")
    shown = CliRunner().invoke(app, ["runs", "show", listed["id"]]).stdout
    assert "done       create the topic g-offsets" in shown
    assert "failed     run c on Spark" in shown
    assert "c has generated 4 tasks, which is greater than 2" in shown


def test_statuses_of_too_many_tasks_are_not_stored_where_the_run_cannot_be_written_down(
    job: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "file" / "journal"))
    ran = run(job(MANY % "wanted: '3'"), "--yes")
    assert "cannot be written; nothing was done" in ran.stderr
    assert (world.there, Statuses.written) == ({}, [])


def test_a_dry_run_tells_of_tasks_that_are_tolerated_and_of_those_that_go_on(
    job: Any, world: World
) -> None:
    tolerated = run(job(MANY % "wanted: '3', tasks.max.enforce: 'false'"), "--dry-run")
    assert (tolerated.exit_code, tolerated.stderr.count("warning: ")) == (0, 1)
    assert "generated 3 tasks, which is greater than 2" in tolerated.stderr
    world.there["g-configs"] = (1, "compact")
    world.configs = task_set("c", {"name": "c"}, [{}])
    kept = run(job(MANY % "wanted: '3'"), "--dry-run")
    assert (kept.exit_code, "its previous 1 task will run" in kept.stderr) == (0, True)
    assert "run c on Spark" in kept.stdout


def test_a_dry_run_of_as_many_tasks_as_there_may_be_tells_nothing(job: Any, world: World) -> None:
    ran = run(job(MANY % "wanted: '2'"), "--dry-run")
    assert (ran.exit_code, ran.stderr) == (0, "")


def test_a_connector_that_fails_when_it_is_asked_for_its_tasks_is_one_line(
    job: Any, world: World
) -> None:
    ran = run(job(MANY % "wanted: x"), "--dry-run")
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (4, "", 1)
    assert "The connector c failed when it was asked for its tasks: ValueError: " in ran.stderr


TOPICS = {"config": "a", "offsets": "b", "status": "c"}
READY: Any = SimpleNamespace(
    name="c",
    group="g",
    topics=TOPICS,
    dedicated_offsets_topic=None,
    delivery=delivery_settings({}),
    job=SimpleNamespace(until=Until()),
)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (finished(TaskReport(0, "ended", records=10, transactions=2, smallest=5, largest=5)), 0),
        (finished(TaskReport(0, "stopped"), outcome=FinalStatus.STOPPED), 0),
        (finished(TaskReport(0, "failed", "boom\nbang", "trace"), outcome=FinalStatus.FAILED), 1),
        (finished(TaskReport(0, "stale", "newer"), outcome=FinalStatus.TAKEN), 1),
        (finished(TaskReport(0, "ended"), outcome=FinalStatus.FAILED, failure="too many"), 1),
        (finished(outcome=FinalStatus.ENDED), 0),
    ],
)
def test_what_came_of_a_run_has_its_code_its_schema_and_a_line_for_each_failure(
    result: JobResult, code: int
) -> None:
    assert run_view.exit_code(result) == code
    jsonschema.validate(
        {"apiVersion": "connectctl/v1", "kind": "TaskRun", **run_view.as_json(READY, result)},
        SCHEMA,
    )
    lines = list(run_view.failures(READY, result))
    assert len(lines) == code
    assert not any("\n" in line for line in lines)


def test_progress_has_what_tasks_have_counted_and_what_they_say_of_themselves() -> None:
    result = finished(
        TaskReport(0, "running", records=1500, transactions=15), TaskReport(1, "running")
    )
    heard: dict[int, dict[str, Any]] = {0: {"task": 0, "lag": 7}, 1: {"task": 1}}
    line, records = run_view.progress_line("c", result.run, heard, 2.0, 1100)
    assert (line, records) == ("c: 1,500 records, 200/s, 15 transactions, 2 tasks, lag 7", 1500)
    heard[1]["waiting"] = {"seconds": 7.0, "what": "commit a transaction", "why": ""}
    line, _ = run_view.progress_line("c", result.run, heard, 2.0, 1500)
    assert line == "c: 1,500 records, 0/s, 15 transactions, 2 tasks, lag 7, 1 waiting for Kafka"


def measured(p99: float | None, promise: float | None = None) -> JobResult:
    """A run of which every record took ``p99`` seconds."""
    meter = LatencyMeter(promise=promise)
    meter.committed([] if p99 is None else [(p99, 100)])
    return finished(TaskReport(0, "ended", records=100, transactions=1, latency=asdict(meter)))


def test_a_promise_that_was_not_kept_is_in_the_result_and_in_a_line() -> None:
    result = measured(0.3, promise=0.1)
    found = run_view.as_json(READY, result)
    assert found["latency"] == {
        "records": 100,
        "p50Ms": 300,
        "p99Ms": 300,
        "maxMs": 300,
        "promiseMs": 100,
        "promiseKept": False,
        "transactionsOverPromise": 1,
    }
    jsonschema.validate({"apiVersion": "connectctl/v1", "kind": "TaskRun", **found}, SCHEMA)
    (line,) = run_view.warnings(READY, result)
    assert line.startswith(
        "warning: latency promise missed: p99 300 ms of c, 100 ms promised "
        "(transaction.boundary.latency"
    )


def test_prometheus_gets_latencies_as_gauges_and_as_a_histogram(tmp_path: Path) -> None:
    RunMetrics(tmp_path / "f", "c", "g").follow(measured(0.3, promise=0.1).run)
    text = (tmp_path / "f").read_text()
    labels = 'connector="c",task="0",group_id="g"'
    for line in (
        f"connectctl_task_metrics_poll_to_visible_p99_time_ms{{{labels}}} 300.0",
        f"connectctl_task_metrics_latency_promise_missed_total{{{labels}}} 1",
        "# TYPE connectctl_task_metrics_latency_promise_missed_total counter",
        "# TYPE connectctl_task_metrics_poll_to_visible_seconds histogram",
        f'connectctl_task_metrics_poll_to_visible_seconds_bucket{{{labels},le="0.2048"}} 0',
        f'connectctl_task_metrics_poll_to_visible_seconds_bucket{{{labels},le="0.4096"}} 100',
        f'connectctl_task_metrics_poll_to_visible_seconds_bucket{{{labels},le="+Inf"}} 100',
        f"connectctl_task_metrics_poll_to_visible_seconds_sum{{{labels}}} 30.0",
        f"connectctl_task_metrics_poll_to_visible_seconds_count{{{labels}}} 100",
    ):
        assert f"{line}\n" in text


@pytest.mark.parametrize(
    ("state", "p99", "said"), [("RUNNING", 140.0, 1), ("RUNNING", 90.0, 0), ("ENDED", 140.0, 0)]
)
def test_a_status_says_which_running_task_does_not_keep_its_promise(
    state: str, p99: float, said: int
) -> None:
    metrics = {"poll-to-visible-last-p99-time-ms": p99, "latency-promise-ms": 100.0}
    found = list(
        run_status.latency_lines(
            {"name": "c", "tasks": [{"task": 1, "state": state, "metrics": metrics}]}
        )
    )
    assert len(found) == said
    if found:
        assert (
            found[0]
            == "c: latency promise missed: p99 140 ms of task 1 in the last half minute, 100 ms promised"
        )


def test_what_the_global_offsets_topic_lacks_is_in_progress_result_and_metrics(
    tmp_path: Path,
) -> None:
    left: dict[str, Any] = {
        "unwritten": ("a", "b"),
        "unwritten_because": "Broker: Topic\nauthorization failed",
    }
    result = finished(TaskReport(0, "stopped", **left), TaskReport(1, "stopped"))
    line, _ = run_view.progress_line("c", result.run, {}, 1.0, 0)
    assert line.endswith("2 tasks, 2 offsets missing in the global offsets topic")
    assert [
        task["globalOffsetsUnwritten"] for task in run_view.as_json(READY, result)["tasks"]
    ] == [2, 0]
    (warning,) = run_view.warnings(READY, result)
    assert warning.startswith(
        "warning: Could not write 2 offsets of task 0 to the global offsets topic "
    )
    assert ": Broker: Topic authorization failed." in warning
    assert warning.endswith("connectctl offsets merge c --into global --stop")
    RunMetrics(tmp_path / "f", "c", "g").follow(result.run)
    assert (
        'global_offset_unwritten_count{connector="c",task="0",group_id="g"} 2'
        in (tmp_path / "f").read_text()
    )


def test_what_the_source_of_a_copy_had_lost_is_in_the_summary() -> None:
    result = finished(TaskReport(0, "stopped", meter={"lost": 1234}), TaskReport(1, "stopped"))
    (warning,) = run_view.warnings(READY, result)
    assert warning.startswith(
        "warning: Task 0 of c did not copy 1,234 offsets that the source had lost "
    )
    assert warning.endswith("(connectctl preflight --explain COPY001)")


def test_results_and_statuses_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    run_view.show(
        READY,
        finished(TaskReport(0, "ended", records=10, transactions=2, smallest=5, largest=5)),
        True,
    )
    part = {"state": "RUNNING", "workerId": "h:1", "trace": None, "secondsAgo": 1000.0}
    measured = {
        "transaction-size-min": 4,
        "transaction-size-avg": 4.5,
        "transaction-size-max": 5,
        "batch-size-avg": 7.0,
    }
    tasks = [{"task": 0, **part, "metrics": measured}, {"task": 1, **part, "metrics": None}]
    shown = {
        "statusTopic": "s",
        "connectors": [
            {
                "name": "c",
                "connector": part,
                "tasks": tasks,
                "leftMembers": None,
                "pendingOffsets": None,
            }
        ],
    }
    run_status.show_statuses(shown, False)
    narrow = capsys.readouterr().out
    assert "c: ended with 10 records in 2.0s, 5/s" in narrow
    assert "5/5/5" in narrow
    assert "16m40s ago !" in narrow
    assert "4/4.5/5" not in narrow
    run_status.show_statuses(shown, True)
    assert "4/4.5/5" in capsys.readouterr().out


def test_metrics_for_prometheus_are_written_whole_and_only_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "run.prom"
    path.write_text("of an earlier run")
    file = RunMetrics(path, 'a"b', "g")
    assert path.read_text() == ""
    result = finished(
        TaskReport(0, "ended", records=10, transactions=2, smallest=4, largest=6),
        TaskReport(1, "failed", "boom"),
    )
    file.follow(result.run)
    lines = path.read_text().splitlines()
    of_0 = 'connector="a\\"b",task="0",group_id="g"'
    assert f"kafka_connect_source_task_metrics_transaction_size_avg{{{of_0}}} 5.0" in lines
    assert f"kafka_connect_source_task_metrics_source_record_write_total{{{of_0}}} 10" in lines
    assert f"kafka_connect_connector_task_metrics_batch_size_max{{{of_0}}} NaN" in lines
    assert (
        f'kafka_connect_connector_task_metrics_status{{{of_0.replace("0", "1")},status="failed"}} 1'
        in lines
    )
    assert "# TYPE kafka_connect_source_task_metrics_source_record_write_total counter" in lines
    path.unlink()
    file.follow(result.run)
    assert [p.name for p in tmp_path.iterdir()] == []


def test_a_metrics_file_that_cannot_be_written_is_bad_input_before_anything_runs(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        RunMetrics(tmp_path / "no-such-directory" / "run.prom", "c", "g")
