"""``connectctl run`` on Spark clusters whose executors are other processes: what travels, what may
be lost, what is told.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from live import countingplugin, oracle, sparkframe
from live.countedrun import Counted, ended
from live.real import create_topic, eventually
from live.sparkclusters import (
    PATIENCE,
    below,
    executors,
    history,
    python_without,
    python_workers,
    send,
    standalone,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from live.sparkclusters import SparkCluster

pytestmark = pytest.mark.live
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
QUICK = {
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
    "spark.executor.heartbeatInterval": "5s",
}
"""All four, or Spark refuses to start: an executor that says nothing is given up after 20 s and not
after two minutes.
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with standalone(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


def secretive(place: Counted, secret: str) -> list[str]:
    """Arguments for a context of the same cluster that has ``secret`` for Kafka and for Spark, and
    a job with it.
    """
    file, config = place.directory / "secret", place.directory / "config.yaml"
    file.write_text(secret)
    context = {
        "bootstrap_servers": place.cluster.bootstrap_servers,
        "group_id": place.name,
        "client": {"sasl.username": "somebody", "sasl.password": {"file": str(file)}},
        "spark": {"conf": {"spark.connectctl.test.password": secret}},
    }
    config.write_text(json.dumps({"current": "own", "contexts": {"own": context}}))
    place.config["database.password"] = secret
    return ["--config", str(config)]


def told(secret: str, places: Sequence[Path], processes: Sequence[psutil.Process]) -> list[str]:
    """Where ``secret`` can be read: in command lines, in environments, in files."""
    found = []
    for process in processes:
        with suppress(psutil.Error):
            if secret in " ".join(process.cmdline()):
                found.append(f"command line of {process}")
            if secret in str(process.environ()):
                found.append(f"environment of {process}")
    for place in places:
        files = (
            [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
        )
        found += [str(path) for path in files if secret.encode() in path.read_bytes()]
    return found


def test_a_connector_in_a_wheel_runs_where_neither_it_nor_connectctl_is_and_an_executor_may_die(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path, state_home: Path
) -> None:
    place = Counted(
        cluster, tmp_path, countingplugin.as_wheel(tmp_path), count=400, batch=5, pause=0.1
    )
    place.conf["spark.pyspark.python"] = python_without(tmp_path)
    secret = secrets.token_hex(16)
    with place.running(spark.master, secretive(place, secret)) as run:
        place.sees(run, 50)
        eventually(lambda: len(executors(*spark.started)) == 2)
        mine = [psutil.Process(run.pid), *below([run, *spark.started])]
        assert told(secret, [], mine) == []
        send(executors(*spark.started)[:1])
        assert ended(run)["outcome"] == "ended"
    assert place.judged() == {b"0": 400, b"1": 400}
    assert history(place.events)["executors lost"] == 1
    assert (
        told(secret, [place.events, spark.directory, state_home / "connectctl/spark.log"], []) == []
    )


def test_a_cluster_that_loses_all_workers_is_told_of_waited_for_and_can_be_left(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Counted(
        cluster, tmp_path, countingplugin.as_zip(tmp_path), count=100_000, batch=5, pause=0.1
    )
    with standalone(tmp_path / "spark", (2,)) as spark, place.running(spark.master) as run:
        err = heard(run)
        place.sees(run, 50)
        spark.lose_workers()
        eventually(lambda: f"All Spark executors of {spark.master} were lost" in err(), PATIENCE)
        spark.start_worker(2)
        eventually(lambda: "tasks continue" in err(), PATIENCE)
        place.sees(run, 50)
        spark.lose_workers()
        eventually(lambda: err().count("were lost; tasks wait") == 2, PATIENCE)
        run.send_signal(signal.SIGTERM)
        assert run.wait(900) == 0, err()
    assert place.judged().keys() == {b"0", b"1"}


def test_a_second_signal_ends_a_run_whose_tasks_do_not_hear_the_first(
    cluster: Sandbox, tmp_path: Path
) -> None:
    paused = 'time.sleep(float(self.configs.get("pause", "0")))'
    hangs = countingplugin.SOURCE.replace(paused, "self.next and time.sleep(3600)")
    place = Counted(cluster, tmp_path, countingplugin.as_zip(tmp_path, hangs), count=100, batch=5)
    with place.running("local[2]") as run:
        place.sees(run, 10)
        run.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(5)
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=900)
    assert (run.returncode, json.loads(out)["outcome"]) == (0, "stopped"), err
    assert place.judged() == {b"0": 5, b"1": 5}


def heard(process: subprocess.Popen[str]) -> Callable[[], str]:
    """What it has said on standard error so far."""
    assert process.stderr is not None
    lines: list[str] = []
    threading.Thread(target=lines.extend, args=(process.stderr,), daemon=True).start()
    return lambda: "".join(lines)


def test_more_tasks_than_cores_all_get_their_turn_and_a_spark_task_that_dies_is_run_again(
    cluster: Sandbox, tmp_path: Path
) -> None:
    died = tmp_path / "died"
    more = {"count": 100, "tasks_max": 4, "dies": died}
    place = Counted(cluster, tmp_path, countingplugin.as_zip(tmp_path), **more)
    with place.running(LOCAL_CLUSTER) as run:
        result = ended(run)
    assert (result["outcome"], died.exists()) == ("ended", True)
    assert place.judged() == {str(n).encode(): 100 for n in range(4)}
    assert history(place.events)["ExceptionFailure"] >= 1
    from pyspark.find_spark_home import _find_spark_home

    for each in place.events.iterdir():  # Spark keeps an application's directory beside itself
        # another run of this test may have an application of the same second
        with suppress(FileNotFoundError):
            shutil.rmtree(Path(_find_spark_home(), "work", each.name))


def test_a_cluster_that_cannot_run_a_task_is_one_line_and_nothing_is_written(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    place = Counted(cluster, tmp_path, countingplugin.as_zip(tmp_path), count=10)
    wishes = [
        (
            {
                "spark.executor.memory": "100g",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": "5s",
            },
            6,
            "no free worker",
        ),
        (
            {"spark.pyspark.python": python_without(tmp_path, "confluent_kafka")},
            1,
            "Python has no confluent_kafka",
        ),
    ]
    kept = place.conf
    before = set(place.kafka.topic_names())
    for conf, code, words in wishes:
        place.conf = kept | conf
        with place.running(spark.master) as run:
            _, err = run.communicate(timeout=PATIENCE)
        error = json.loads(err.splitlines()[-1])["error"]
        assert (run.returncode, error["exitCode"], words in str(error)) == (code, code, True), err
        assert "\n" not in f"{error['message']}{error['why']}{error['nextStep']}"
    after = Kafka(place.kafka.client, timeout=120).topic_names()
    assert not {topic for topic in set(after) - before if place.name in topic}


@pytest.mark.slow
def test_an_executor_that_hangs_until_it_is_given_up_and_goes_on_later_changes_nothing(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    place = Counted(
        cluster, tmp_path, countingplugin.as_zip(tmp_path), count=2500, batch=5, pause=0.1
    )
    place.conf |= QUICK
    with place.running(spark.master) as run:
        place.sees(run, 50)
        hung = executors(*spark.started)[:1]
        zombies = python_workers(hung[0])
        send(hung, signal.SIGSTOP)
        eventually(lambda: history(place.events)["executors lost"], PATIENCE)
        # nobody ended them: they were fenced, or will be
        assert [p for p in zombies if p.is_running()]
        place.sees(run, 50)
        send(hung, signal.SIGCONT)
        assert ended(run)["outcome"] == "ended"
    assert place.judged() == {b"0": 2500, b"1": 2500}


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_a_place_to_go_on_from(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    place = Counted(
        cluster, tmp_path, countingplugin.as_zip(tmp_path), count=2000, batch=5, pause=0.1
    )
    for _ in range(2):
        with place.running(spark.master) as run:
            place.sees(run, 50)
            send([psutil.Process(run.pid)])
            run.wait()
    with place.running(spark.master) as run:
        assert ended(run)["outcome"] == "ended"
    assert place.judged() == {b"0": 2000, b"1": 2000}


@pytest.mark.slow
def test_speculative_attempts_fence_each_other_and_every_record_is_there_once(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    place = Counted(
        cluster, tmp_path, countingplugin.as_zip(tmp_path), count=2500, first=5, batch=5, pause=0.1
    )
    # Where both tasks of a round end together, as on a slow machine, Spark copies none of them. One
    # task alone it copies when that has run for ten seconds; its records take fifty.
    place.conf |= {
        "spark.speculation.task.duration.threshold": "10s",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.0",
        "spark.speculation.minTaskRuntime": "1s",
    }
    with place.running(spark.master) as run:
        assert ended(run)["outcome"] == "ended"
    assert place.judged() == {b"0": 5, b"1": 2500}
    assert history(place.events)["speculative"] >= 1


@pytest.mark.slow
def test_a_stage_of_a_dataframe_that_is_run_again_writes_each_row_once(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    place = Counted(cluster, tmp_path, ("", ""))
    rows = 12_000
    offsets = create_topic(cluster.bootstrap_servers, f"{place.name}-offsets")
    target = {
        "client": {"bootstrap.servers": cluster.bootstrap_servers},
        "group_id": place.name,
        "connector": place.name,
        "topic": place.topic,
        "offsets_topic": offsets,
        "partition": ["shop"],
        "offset": "id",
        "key": "shop",
        "rows_per_transaction": 20,
    }
    wish = {
        "master": spark.master,
        "conf": place.conf,
        "log": str(tmp_path / "spark.log"),
        "rows": rows,
        "target": target,
    }
    command = [sys.executable, sparkframe.__file__, json.dumps(wish)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            place.sees(process, 500)
            send(executors(*spark.started)[:1])
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            send(below([process]))
            process.kill()
    assert process.returncode == 0, err
    told = history(place.events)
    assert (told["executors lost"], told["stages run again"] >= 1) == (1, True)
    image = place.kafka.image([place.topic], patience=60, superseded=True)[place.topic]
    for shop in range(sparkframe.SHOPS):
        found = [int(r.value or b"") for r in oracle.in_order(image) if r.key == str(shop).encode()]
        assert found == list(range(shop, rows, sparkframe.SHOPS))
    assert not oracle.open_partitions(place.kafka, place.topic, offsets)
    assert json.loads(out)["problems"] == []


@pytest.mark.slow
def test_a_session_that_runs_copies_of_slow_tasks_writes_a_dataframe_once(
    cluster: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    """In a session of one's own speculation may be on: the copy fences the task, whose end must not
    be taken for its own.
    """
    place = Counted(cluster, tmp_path, ("", ""))
    rows = 12_000
    speculative = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.0",
        "spark.speculation.minTaskRuntime": "100ms",
    }
    wish = {
        "master": spark.master,
        "conf": place.conf | speculative,
        "log": str(tmp_path / "spark.log"),
        "rows": rows,
        "target": {
            "client": {"bootstrap.servers": cluster.bootstrap_servers},
            "group_id": place.name,
            "connector": place.name,
            "topic": place.topic,
            "offsets_topic": create_topic(cluster.bootstrap_servers, f"{place.name}-offsets"),
            "partition": ["shop"],
            "offset": "id",
            "rows_per_transaction": 20,
            "tasks": 6,  # of which some have more shops than others
        },
    }
    command = [sys.executable, sparkframe.__file__, json.dumps(wish)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(done.stdout)[name] for name in ("fenced", "problems")] == [[], []]
    assert history(place.events)["speculative"] >= 1
    image = place.kafka.image([place.topic], patience=60, superseded=True)[place.topic]
    found = sorted(int(record.value or b"") for record in (*image.latest, *image.superseded))
    assert found == list(range(rows))
