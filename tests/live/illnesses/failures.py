"""Connectors and tasks that fail or do not start, and others that did once."""

from __future__ import annotations

import os
import socket

from connectctl.ops.sandbox.ports import LOOPBACK
from live.illnesses.bed import (
    DAY,
    FILE_SINK,
    HOUR,
    JSON,
    MINUTE,
    RUNNING,
    STRINGS,
    Bed,
    Where,
    every,
    situation,
)
from live.real import eventually

MONITORABLE = "org.apache.kafka.connect.integration.MonitorableSourceConnector"
"""It generates ``num.tasks`` tasks, whatever tasks.max is."""
MOCK = "org.apache.kafka.connect.tools.MockSourceConnector"
MIRROR_SOURCE = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
FAILED = "org.apache.kafka.connect.errors.ConnectException: the destination is away"


@situation("A task fails when it starts", "FAIL001", "no-such-directory")
def a_task_fails(bed: Bed) -> None:
    bed.topic("one")
    bed.sink("no-such-directory/out.txt")
    bed.states("RUNNING", "FAILED")


@situation("A sink's records are not JSON, and errors are not tolerated", "FAIL001", "Json")
def a_record_is_not_json(bed: Bed) -> None:
    bed.topic("no JSON")
    bed.sink(more=JSON)
    bed.states("RUNNING", "FAILED")


@situation("A transformation wants a field of records that are text", "FAIL001", "Struct")
def a_transformation_does_not_fit(bed: Bed) -> None:
    bed.topic("text")
    bed.sink(
        transforms="hide",
        transforms__hide__type="org.apache.kafka.connect.transforms.MaskField$Value",
        transforms__hide__fields="name",
    )
    bed.states("RUNNING", "FAILED")


@situation("The connector itself fails, not a task", "FAIL001", "FAILED")
def a_connector_fails(bed: Bed) -> None:
    # Long enough for others to be created meanwhile: each time that it moves, it starts again.
    bed.create(MOCK, {"mock_mode": "connector-failure", "delay_ms": "20000"})
    path = f"/connectors/{bed.name}/status"

    def failed() -> bool:
        answer = bed.rest.call("GET", path)
        return answer.status_code == 200 and answer.json()["connector"]["state"] == "FAILED"

    eventually(failed)


@situation("A connector generates more tasks than tasks.max", "FAIL001", "has generated 2 tasks")
def a_task_too_many(bed: Bed) -> None:
    bed.create(MONITORABLE, {"topic": bed.name, "num.tasks": "2", "tasks.max": "1"})
    bed.states("FAILED")


@situation("Tasks of two connectors fail of one cause", "FAIL002", "2 parts of")
def two_connectors_fail_of_one_cause(bed: Bed) -> None:
    other = f"{bed.name}-too"
    bed.topic("one")
    bed.sink("no-such-directory/out.txt")
    bed.sink("no-such-directory/out.txt", name=other)
    bed.states("RUNNING", "FAILED")
    bed.states("RUNNING", "FAILED", name=other)


@situation(
    "A task was restarted twice in an hour, and failed again", "FAIL003", "restarted each time"
)
def a_task_fails_again_and_again(bed: Bed) -> None:
    bed.topic("one")
    bed.had_status("FAILED", 40 * MINUTE, 20 * MINUTE, trace=FAILED)
    bed.sink("no-such-directory/out.txt")
    bed.states("RUNNING", "FAILED")


@situation(
    "Compaction will take the task configurations: the same configuration was put again",
    "TASK010",
    "no task configurations",
)
def task_configurations_precede_their_connector(bed: Bed) -> None:
    bed.source()
    bed.states(*RUNNING)
    bed.configure()


@situation("A task has been hanging in start for minutes", "FAIL004", "is UNASSIGNED")
def a_task_hangs_in_start(bed: Bed) -> None:
    bed.topic("one")
    config = {"file": pipe_without_a_reader(bed), "topics": bed.name} | STRINGS
    bed.created_ago(10 * MINUTE, FILE_SINK, config, f"{FILE_SINK.removesuffix('Connector')}Task")


@situation(
    "A connector has been hanging in its first start for minutes, and no worker has its status",
    "FAIL004",
    "is UNASSIGNED",
)
def a_connector_hangs_in_start(bed: Bed) -> None:
    silent = socket.create_server((LOOPBACK, 0))  # it accepts connections, and answers nothing
    bed.closing.append(silent.close)
    clusters = {
        "source.cluster.alias": f"{bed.name}-a",
        "source.cluster.bootstrap.servers": f"{LOOPBACK}:{silent.getsockname()[1]}",
        "source.admin.request.timeout.ms": "3600000",
        "source.admin.default.api.timeout.ms": "3600000",
        "admin.timeout.ms": "3600000",
        "target.cluster.alias": f"{bed.name}-b",
        "target.cluster.bootstrap.servers": bed.cluster.bootstrap_servers,
    }
    bed.created_ago(10 * MINUTE, MIRROR_SOURCE, clusters)


@situation("A task failed twice in the last hour, and has run since")
def a_task_that_was_restarted(bed: Bed) -> None:
    bed.had_status("FAILED", 40 * MINUTE, 35 * MINUTE, trace=FAILED)
    bed.source("one\n")
    bed.states(*RUNNING)


@situation("A task failed every ten minutes yesterday, and has run since")
def a_task_that_failed_yesterday(bed: Bed) -> None:
    bed.had_status("FAILED", *every(10 * MINUTE, DAY + 2 * HOUR, DAY), trace=FAILED)
    bed.source("one\n")
    bed.states(*RUNNING)


@situation("A connector was restarted with its tasks a moment ago")
def a_connector_is_restarted(bed: Bed) -> None:
    bed.source("one\n")
    bed.states(*RUNNING)
    bed.rest.call("POST", f"/connectors/{bed.name}/restart?includeTasks=true")


@situation("A task has been starting for seconds", where=Where.WORKERS)
def a_slow_start(bed: Bed) -> None:
    bed.topic("one")
    bed.create(FILE_SINK, {"file": pipe_without_a_reader(bed), "topics": bed.name} | STRINGS)


def pipe_without_a_reader(bed: Bed) -> str:
    """Return a pipe in which a task waits for a reader; there is one in the end."""
    pipe = bed.directory / "pipe"
    os.mkfifo(pipe)
    bed.closing.append(lambda: os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)))
    return str(pipe)
