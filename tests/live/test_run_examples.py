"""The connectors that users begin with, on Spark and a real broker: what a unit test shows is what
the topic has.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.job.skeleton import skeleton, write
from connectctl.ops.task_runtime.spi.plugins import connector_class
from connectctl.source import SourceConnector
from connectctl.testing import run_source
from http_pages_api import Api
from live.real import connectctl, create_topic
from live.rundirectory import well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


@pytest.fixture(autouse=True)
def of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job adds to Python's path is gone after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def run(cluster: Sandbox, job: Path, group: str) -> Any:
    """Return the result of the job."""
    where = ["--context", f"sandbox-{cluster.spec.name}", "--group-id", group]
    return well(connectctl(*where, "run", str(job), "--yes", "-o", "json"))


def values(cluster: Sandbox, topic: str) -> list[bytes | None]:
    """What a reader with read_committed sees, in its order."""
    kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    image = kafka.image([topic], patience=30, superseded=True)[topic]
    found = sorted((*image.latest, *image.superseded), key=lambda r: (r.partition, r.offset))
    return [record.value for record in found]


def test_the_job_that_init_writes_runs_and_a_second_time_finds_nothing_new(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"src_{secrets.token_hex(4)}"
    write(skeleton(tmp_path / name))
    topic, group = (
        create_topic(cluster.bootstrap_servers, name.replace("_", "-"), 1, "delete"),
        f"g-{name}",
    )
    assert run(cluster, tmp_path / f"{name}.yaml", group)["records"] == 100
    assert run(cluster, tmp_path / f"{name}.yaml", group)["records"] == 0
    seen = values(cluster, topic)
    assert seen == [b'{"id":%d,"text":"row %d"}' % (n, n) for n in range(1, 101)]
    monkeypatch.syspath_prepend(tmp_path)
    kind = connector_class(f"{name}:{''.join(part.capitalize() for part in name.split('_'))}")
    assert issubclass(kind, SourceConnector)
    config = {
        "topic": topic,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    assert seen == run_source(kind, config).values()  # memory shows what the cluster has


def example(cluster: Sandbox, directory: Path, name: str, **config: str) -> tuple[Path, str]:
    """The example ``name`` in ``directory``, with ``config`` and topics of its own; its job, and
    their prefix.
    """
    shutil.copy(EXAMPLES / f"{name}.py", directory)
    job = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    prefix = f"{name.replace('_', '-')}-{secrets.token_hex(4)}-"
    job["config"] |= config | {"topic.prefix": prefix}
    job["name"] = prefix.rstrip("-")
    for each in ("orders", "customers"):
        create_topic(cluster.bootstrap_servers, prefix + each, 1, "delete")
    path = directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job))
    return path, prefix


@pytest.mark.usefixtures("without_spark")
def test_an_http_api_is_read_page_by_page(cluster: Sandbox, tmp_path: Path) -> None:
    with Api() as api:
        threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            job, prefix = example(cluster, tmp_path, "http_pages", url=api.url)
            assert run(cluster, job, f"g-{prefix}")["records"] == 10
            api.items["orders"].append({"id": 9, "of": "orders"})
            api.answers = [503]
            assert run(cluster, job, f"g-{prefix}")["records"] == 1
        finally:
            api.shutdown()
    for name in ("orders", "customers"):
        assert [json.loads(value or b"") for value in values(cluster, prefix + name)] == api.items[
            name
        ]


@pytest.mark.usefixtures("without_spark")
def test_tables_of_sqlite_are_read_and_new_rows_by_the_next_run(
    cluster: Sandbox, tmp_path: Path
) -> None:
    file = str(tmp_path / "shop.db")
    with closing(sqlite3.connect(file)) as database, database:
        for table in ("orders", "customers"):
            database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, what TEXT)")
            database.executemany(
                f"INSERT INTO {table} (what) VALUES (?)", [(f"{table} {n}",) for n in range(700)]
            )
    job, prefix = example(cluster, tmp_path, "sqlite_table", database=file)
    assert run(cluster, job, f"g-{prefix}")["records"] == 1400
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO orders (what) VALUES ('orders 700')")
    assert run(cluster, job, f"g-{prefix}")["records"] == 1
    whats = [json.loads(value or b"")["what"] for value in values(cluster, f"{prefix}orders")]
    assert whats == [f"orders {n}" for n in range(701)]
    assert len(values(cluster, f"{prefix}customers")) == 700
