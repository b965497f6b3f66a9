"""A run's statuses among those of workers: what it says besides is read past."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from connectctl.ops.task_runtime.job.status_topic import connector_key, task_key, value
from connectctl.ops.task_runtime.job.task_totals import TaskTotals
from connectctl.ops.task_runtime.spi.metrics import metrics
from live.real import (
    FILE_SOURCE,
    Workers,
    connectctl,
    connector,
    create_topic,
    eventually,
    write,
    write_uncommitted,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


def reported(rest: Workers, name: str) -> list[str]:
    """Return the states of the tasks that a worker has read from the status topic."""
    status = rest.call("GET", f"/connectors/{name}/status").json()
    return [task["state"] for task in status["tasks"]]


def test_a_worker_reads_past_the_metrics_in_a_tasks_status_and_run_status_shows_them(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"status-{secrets.token_hex(4)}"
    config = {
        "connector.class": FILE_SOURCE,
        "file": str(tmp_path / "in.txt"),
        "topic": f"{name}-data",
    }
    total = TaskTotals(records=12, transactions=3, smallest=2, largest=7)
    with connector(cluster, name, config, "STOPPED") as rest:
        said = value("RUNNING", "10.0.0.1:1", 0, metrics=metrics(total))
        write(cluster.bootstrap_servers, cluster.topics["status"], (task_key(name, 0), said))
        # The stopped connector has no task: what is read is the status topic alone.
        eventually(lambda: reported(rest, name) == ["RUNNING"])
        ran = connectctl(
            "--context", f"sandbox-{cluster.spec.name}", "run", "status", name, "-o", "json"
        )
        (task,) = ran.json["connectors"][0]["tasks"]
        assert (
            task["metrics"]["transaction-size-max"],
            task["metrics"]["source-record-write-total"],
        ) == (7, 12)


def test_run_status_and_other_commands_name_the_transaction_that_pending_offsets_wait_for(
    cluster: Sandbox,
) -> None:
    name, servers = f"pending-{secrets.token_hex(4)}", cluster.bootstrap_servers
    for role in ("configs", "offsets", "status"):
        create_topic(servers, f"{name}-{role}", 1)
    for topic in ("in", "out"):
        create_topic(servers, f"{name}-{topic}", 2, "delete")
    config = {
        "connector.class": "ParquetArchive",
        "topics": f"{name}-in",
        "consumer.override.group.id": name,
    }
    write(servers, f"{name}-configs", ("connector-c", {"properties": config}))
    write(servers, f"{name}-status", (connector_key("c"), value("RUNNING", "10.0.0.1:1", 0)))
    producer = write_uncommitted(servers, f"{name}-out", f"{name}-app", ("k", "v"))
    ours = ("--bootstrap-servers", servers, "--group-id", name)
    with closing(Consumer({"bootstrap.servers": servers, "group.id": name})) as reader:
        reader.commit(offsets=[TopicPartition(f"{name}-in", 1, 0)], asynchronous=False)
        where = TopicPartition(f"{name}-in", 1, 1)
        producer.send_offsets_to_transaction([where], reader.consumer_group_metadata(), 30)
    pending = connectctl(*ours, "run", "status", "c", "-o", "json").json["connectors"][0][
        "pendingOffsets"
    ]
    assert (pending["partitions"], pending["unknown"]) == (
        [{"topic": f"{name}-in", "partition": 1}],
        None,
    )
    (held,) = pending["transactions"]
    assert held["transactionalId"] == f"{name}-app"
    assert abs(time.time() - held["startedMs"] / 1000) < 600
    shown, waits = (
        connectctl(*ours, "run", "status", "c"),
        f"the transaction of {name}-app (open since ",
    )
    assert f"on {name}-in-1 are pending (KIP-447), and wait for {waits}" in shown.out
    group = connectctl(*ours, "offsets", "show", "--group", name, "-o", "json").json["connectors"][
        0
    ]
    assert [
        (each["partition"]["kafka_partition"], each["pending"]) for each in group["offsets"]
    ] == [(1, True)]
    assert group["waitsFor"].startswith(waits)
    assert (
        f"{name}: the offsets of {name}-in-1 are pending (KIP-447), and wait for {waits}"
        in connectctl(*ours, "offsets", "show", "--group", name).out
    )
    held_offsets = [{"groupId": name, "topicPartitions": [{"topic": f"{name}-in", "partition": 1}]}]
    held = connectctl(*ours, "transactions", "show", f"{name}-app", "-o", "json").json[
        "transaction"
    ]
    assert held["pendingOffsets"] == held_offsets
    assert (
        f"(pending offsets of {name})"
        in connectctl(*ours, "transactions", "list", "--open", "-o", "wide").out
    )
    entry = {
        "partition": {"kafka_topic": f"{name}-in", "kafka_partition": 0},
        "offset": {"kafka_offset": 0},
    }
    change = ("offsets", "set", "--group", name, "-f", "-", "--yes")
    refused = connectctl(*ours, *change, stdin=json.dumps({"offsets": [entry]}))
    assert (refused.code, waits in refused.err) == (4, True), refused.err
    audit = (
        "audit",
        f"{name}-out",
        "--from",
        f"{name}-in",
        "--group",
        name,
        "--patience",
        "1",
        "-o",
        "json",
    )
    audited = connectctl(*ours, *audit)
    assert waits in audited.out + audited.err, audited.out + audited.err
    # The next step that was printed releases them.
    end = f"transactions abort {name}-app"
    assert end in shown.out
    assert connectctl(*ours, *end.split(), "--yes").code == 0
    eventually(lambda: "are pending" not in connectctl(*ours, "run", "status", "c").out)
