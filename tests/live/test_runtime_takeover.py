"""A task here and a task of a real worker go on where the other stopped, in the middle of one
file.
"""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.connectors.filestream import FileStreamTask
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TaskResult
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.real import FILE_SOURCE, connectctl, connector, create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


def run_here(
    cluster: Sandbox, name: str, configs: dict[str, str], *, forever: bool = False
) -> TaskResult:
    """The connector's one task, with the same transactional id, until the end of its file, or until
    it is fenced.
    """
    kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    offsets = cluster.topics["offsets"]
    supply = PolledSource(
        FileStreamTask,
        name,
        configs | ({} if forever else {"until.end": "true"}),
        lambda: Boundaries(Boundary.POLL),
        converters(configs),
        offsets,
    )
    id_ = task_id(cluster.group_id, name, 0)
    kernel = AttemptLoop(
        lambda: TaskProducer(kafka, id_, timeout_ms=15_000),
        SourceOffsetsLedger(offsets, OffsetStore(CommittedOffsets(kafka, offsets, name))),
        patience=60,
    )
    try:
        return kernel.run(supply)
    finally:
        supply.close()


def test_a_worker_and_a_task_here_take_turns_and_every_line_is_there_once(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name, path = f"turns-{secrets.token_hex(4)}", tmp_path / "in.txt"
    topic = create_topic(cluster.bootstrap_servers, f"{name}-data", 1, "delete")
    configs = {
        "connector.class": FILE_SOURCE,
        "file": str(path),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }

    def append(*numbers: int) -> None:
        with path.open("a") as file:
            file.writelines(f"line {n}\n" for n in numbers)

    def seen() -> list[str]:
        kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        image = kafka.image([topic], patience=30, superseded=True)[topic]
        records = sorted((*image.latest, *image.superseded), key=lambda r: r.offset)
        return [(r.value or b"").decode() for r in records]

    lines = [f"line {n}" for n in range(90)]
    append(*range(30))
    with connector(cluster, name, configs) as rest:
        eventually(lambda: len(seen()) == 30)
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name) == ["STOPPED"])
        append(*range(30, 60))
        ended = run_here(cluster, name, configs)
        assert (ended.reason, ended.stats.records) == (EndReason.ENDED, 30)
        assert rest.offsets(name)[0]["offset"] == {"position": path.stat().st_size}
        append(*range(60, 90))
        rest.call("PUT", f"/connectors/{name}/resume")
        eventually(lambda: len(seen()) >= 90)
        assert seen() == lines


def test_a_task_that_nobody_sees_is_fenced_before_offsets_are_written_and_takes_nothing_back(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name, path = f"unseen-{secrets.token_hex(4)}", tmp_path / "in.txt"
    topic = create_topic(cluster.bootstrap_servers, f"{name}-data", 1, "delete")
    configs = {
        "connector.class": FILE_SOURCE,
        "file": str(path),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    path.write_text("one\n")
    with connector(cluster, name, configs) as rest, ThreadPoolExecutor(1) as pool:
        eventually(lambda: rest.offsets(name))
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name) == ["STOPPED"])
        unseen = pool.submit(run_here, cluster, name, configs, forever=True)
        path.write_text("one\ntwo\n")
        eventually(lambda: rest.offsets(name)[0]["offset"] == {"position": 8})
        ran = connectctl(
            "--context", f"sandbox-{cluster.spec.name}", "offsets", "reset", name, "--yes"
        )
        assert ran.code == 0, ran.err
        path.write_text("one\ntwo\nthree\n")
        assert unseen.result(timeout=300).reason is EndReason.FENCED
        assert rest.offsets(name) == []


def test_a_task_here_fences_the_workers_task_that_still_runs(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name, path = f"turns-{secrets.token_hex(4)}", tmp_path / "in.txt"
    topic = create_topic(cluster.bootstrap_servers, f"{name}-data", 1, "delete")
    configs = {
        "connector.class": FILE_SOURCE,
        "file": str(path),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    path.write_text("one\n")
    with connector(cluster, name, configs) as rest:
        eventually(lambda: rest.offsets(name))
        assert run_here(cluster, name, configs).stats.records == 0
        with path.open("a") as file:
            file.write("two\n")
        eventually(lambda: "FAILED" in rest.state(name))
        assert run_here(cluster, name, configs).stats.records == 1
