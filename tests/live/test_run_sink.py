"""Sinks of ``connectctl run`` on Spark and a real broker, and sinks of real workers that are taken
over and handed back.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.spark import session
from fakes import localspark
from live.real import connector, create_topic, eventually, write
from live.rundirectory import KILLED, Place, python_workers, well

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(4, matrix="runs of a sink"),
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
WITHIN = 30.0
"""Seconds from the hand-back until the workers' tasks have partitions: members that did not leave
are waited for for 45.
"""
STRING = "org.apache.kafka.connect.storage.StringConverter"


class Sunk(Place):
    """A topic of four partitions, and a file that its values go to."""

    def __init__(self, cluster: Sandbox, directory: Path, **more: str):
        super().__init__(cluster, directory)
        self.source = create_topic(cluster.bootstrap_servers, f"{self.name}-in", 4, "delete")
        self.out = directory / "out.txt"
        self.config = {
            "connector.class": FILE_SINK,
            "topics": self.source,
            "file": str(self.out),
        } | more
        self.config |= {"key.converter": STRING, "value.converter": STRING}

    def append(self, count: int) -> None:
        for n in range(self.written, self.written + count):
            write(
                self.cluster.bootstrap_servers, self.source, (f"{n}", f"line {n}"), partition=n % 4
            )
        self.written += count

    def lines(self) -> list[str]:
        return self.out.read_text().splitlines() if self.out.exists() else []

    def all_there(self) -> None:
        assert sorted(self.lines(), key=lambda line: int(line.split()[1])) == [
            f"line {n}" for n in range(self.written)
        ]


def test_a_sink_writes_each_record_and_a_second_run_goes_on_where_the_first_ended(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Sunk(cluster, tmp_path, **{"tasks.max": "2"})
    place.append(200)
    first = well(place.run(idle="3s"))
    assert (first["outcome"], first["records"]) == ("ended", 200)
    # The task that joins first may have read everything before the other one has joined.
    assert sum(task["metrics"]["sink-record-read-total"] for task in first["tasks"]) == 200
    place.append(40)
    second = well(place.run(idle="3s"))
    assert second["records"] == 40
    place.all_there()


@KILLED
def test_a_killed_worker_of_spark_costs_a_sink_no_record(cluster: Sandbox, tmp_path: Path) -> None:
    place = Sunk(cluster, tmp_path, **{"offset.flush.interval.ms": "500"})
    place.append(40)
    with place.running() as process:
        eventually(lambda: len(place.lines()) >= 40)
        python_workers(process)[0].kill()
        place.append(40)
        eventually(lambda: set(place.lines()) == {f"line {n}" for n in range(80)})
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) == 0


@pytest.mark.usefixtures("without_spark")
def test_records_that_cannot_be_read_go_to_the_dead_letter_topic(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Sunk(cluster, tmp_path)
    letters = f"{place.name}-letters"
    place.config |= {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    write(
        cluster.bootstrap_servers,
        place.source,
        ("1", '{"a":1}'),
        ("2", "{no json"),
        ("3", '{"a":2}'),
        partition=0,
    )
    ran = well(place.run(idle="3s"))
    assert ran["outcome"] == "ended"
    assert place.lines() == ['{"a":1}', '{"a":2}']
    image = place.kafka.image([letters], patience=30, superseded=True)[letters]
    assert [r.value for r in (*image.latest, *image.superseded)] == [b"{no json"]


@pytest.mark.usefixtures("without_spark")
def test_a_group_that_others_are_in_is_not_joined(cluster: Sandbox, tmp_path: Path) -> None:
    from confluent_kafka import Consumer

    place = Sunk(cluster, tmp_path)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": f"connect-{place.name}"}
    )
    consumer.subscribe([place.source])
    try:
        eventually(lambda: consumer.poll(0.2) is None and consumer.assignment())
        ran = place.run(idle="2s")
        assert ran.code != 0
        assert "has other members" in ran.err
    finally:
        consumer.close()


SLOW = """
import time

from connectctl.sink import SinkConnector, SinkTask
from connectctl.transform import Transform


class SlowTask(SinkTask):
    def start(self, configs):
        pass

    def put(self, records):
        time.sleep(7.5 if records else 0)


class Slow(SinkConnector):
    task = SlowTask

    def task_configs(self, max_tasks):
        return [dict(self.configs)]


class SlowOnce(Slow):
    exactly_once = True


class SlowTransform(Transform):
    def process(self, records):
        time.sleep(7.5)
        return []
"""


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("kind", "call"), [("Slow", "put()"), ("SlowOnce", "put()"), ("SlowTransform", "process()")]
)
def test_a_call_that_is_slower_than_max_poll_interval_ms_fails_the_task_by_its_name_and_the_interval(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, call: str
) -> None:
    monkeypatch.setattr(session, "open_session", localspark.open_session)
    place = Sunk(cluster, tmp_path)
    place.append(4)
    module = f"slow{place.name.replace('-', '')}"
    (tmp_path / f"{module}.py").write_text(SLOW)
    place.config = {
        "connector.class": f"{module}:{kind}",
        "topics": place.source,
        "topic": place.topic,
    }
    place.config |= {
        "consumer.override.max.poll.interval.ms": "6500",
        "consumer.override.session.timeout.ms": "6000",
    }
    place.config["offset.flush.interval.ms"] = "500"
    ran = place.run(duration="300s")
    assert ran.code == 1, ran.err
    (task,) = ran.json["tasks"]
    assert task["state"] == "FAILED"
    assert task["failure"].startswith(
        f"{call} took 7.5 s, more than max.poll.interval.ms of 6.5 s"
    ), ran.err
    assert ran.json["outcome"] == "failed"


def owned(kafka: Kafka, group: str) -> dict[str, int]:
    """How many partitions each member has, by its instance id, or its client id where it is a
    worker's.
    """
    found = kafka.admin.describe_consumer_groups([group])[group].result().members
    return {m.group_instance_id or m.client_id: len(m.assignment.topic_partitions) for m in found}


@pytest.mark.usefixtures("without_spark")
def test_a_sink_of_live_workers_is_taken_over_in_the_middle_and_handed_back(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Sunk(cluster, tmp_path)
    place.append(40)
    group = f"connect-{place.name}"
    task = f"{cluster.group_id}-{place.name}-0"
    with connector(cluster, place.name, place.config) as rest:
        eventually(lambda: len(place.lines()) >= 40)
        place.config = {}

        place.append(400)  # not waited for
        with place.running("--take-over", own=False) as run:
            eventually(lambda: owned(place.kafka, group) == {task: 4} or run.poll() is not None)
            place.append(400)
            eventually(lambda: len(place.lines()) >= 600)
            run.send_signal(signal.SIGTERM)
            eventually(lambda: rest.state(place.name)[0] != "STOPPED")
            handed_back = time.monotonic()
            eventually(
                lambda: sum(n for who, n in owned(place.kafka, group).items() if who != task) == 4
            )
            took = time.monotonic() - handed_back
            out, err = run.communicate(timeout=900)
            assert (run.returncode, json.loads(out)["outcome"]) == (0, "stopped"), err
        print(f"the workers' tasks have partitions {took:.2f} s after the hand-back")
        assert took < WITHIN
        place.append(40)
        eventually(lambda: len(set(place.lines())) >= place.written)

    place.all_there()
