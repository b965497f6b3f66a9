"""Sessions of SASL end every ten seconds: a run, a DataFrame and an audit of minutes lose nothing
by it, nor double it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.spark.session import open_session
from connectctl.ops.task_runtime.dataframe.api import Target, write_exactly_once
from live import countingplugin, slowaudit
from live.securedcluster import as_admin, create_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    # PySpark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]
WAYS = {"SCRAM": "sandbox-secured", "OAUTH": "sandbox-secured-oauth"}
LONG = 125.0
"""Seconds that each has to live at least: two minutes, and a dozen sessions."""
BATCH, PAUSE = 100, 1.0
RECORDS = int(BATCH * LONG / PAUSE)
ROW_MS = 100
TOGETHER = 25
LIFETIME = 10.0
"""Seconds that a session lasts on the listeners of the fixture ``secured``."""
ROWS = int(LONG * 1000 / ROW_MS)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark with a core for each way in, that hands rows on as they come."""
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    opened = open_session(
        f"local[{len(WAYS)}]", {"spark.sql.execution.arrow.maxRecordsPerBatch": 10}, log
    )
    yield opened
    opened.stop()


def test_runs_frames_and_audits_of_two_minutes_outlive_their_sessions(
    secured: Sandbox, session: Any, tmp_path: Path
) -> None:
    def run(way: str) -> tuple[str, int, Any]:
        topic = runs_for_minutes(secured, way, tmp_path / way)
        return topic, RECORDS, audits_for_minutes(way, topic)

    def frame(way: str) -> tuple[str, int, Any]:
        topic = writes_for_minutes(secured, way, session)
        return topic, ROWS, audits_for_minutes(way, topic)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(write, way) for write in (run, frame) for way in WAYS]:
            topic, wanted, found = done.result()
            print(
                f"{topic}: {found['verdict']}, {found['recordsRead']} records, "
                f"{found['transactions']}"
            )
            assert (found["verdict"], found["recordsRead"]) == ("exactly-once", wanted)


def runs_for_minutes(cluster: Sandbox, way: str, directory: Path) -> str:
    """``connectctl run`` of a connector whose polls alone take so long; gives the topic."""
    directory.mkdir()
    name = f"run-sessions-{way.lower()}"
    topic = create_topic(cluster, f"{name}-data")
    archive, class_ = countingplugin.as_zip(directory)
    config = countingplugin.CONFIG | {"connector.class": class_, "topic": topic, "tasks.max": "1"}
    config |= {"count": str(RECORDS), "batch": str(BATCH), "pause": str(PAUSE)}
    job = {"name": name, "config": config, "spark": {"master": "local[1]"}, "plugins": [archive]}
    file = directory / "job.yaml"
    file.write_text(json.dumps(job | {"until": {"idle": "10s"}}))  # which is YAML, too
    args = (
        "--context",
        WAYS[way],
        "--group-id",
        f"g-{name}",
        "run",
        str(file),
        "--yes",
        "-o",
        "json",
    )
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "connectctl.cli", *args], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert time.monotonic() - began > LONG
    return topic


def writes_for_minutes(cluster: Sandbox, way: str, session: Any) -> str:
    """One task that writes rows as they come, ten in a second; gives the topic."""
    name = f"frame-sessions-{way.lower()}"
    topic, offsets = (create_topic(cluster, f"{name}-{role}") for role in ("data", "offsets"))
    rows = session.range(0, ROWS, 1, 1).selectExpr(
        "id",
        "'shop' as shop",
        f"concat_ws(':', id, reflect('java.lang.Thread', 'sleep', {ROW_MS}L)) as value",
    )
    target = Target(
        client=as_admin(cluster, way),
        group_id=f"g-{name}",
        connector=name,
        topic=topic,
        offsets_topic=offsets,
        partition="shop",
        offset="id",
        tasks=1,
        partitioned=True,
        rows_per_transaction=TOGETHER,
    )
    began = time.monotonic()
    written = write_exactly_once(rows, target)
    assert time.monotonic() - began > LONG
    assert (written.sent, written.skipped, written.problems) == (ROWS, 0, ())
    assert written.transactions > LONG / LIFETIME
    return topic


def audits_for_minutes(way: str, topic: str) -> Any:
    """``connectctl audit`` on one connection for as long; gives what it found."""
    wish = (
        "audit",
        topic,
        "--sequence",
        r"text:^(\d+)",
        "--by",
        "partition",
        "--first",
        "0",
        "-o",
        "json",
    )
    command = [sys.executable, slowaudit.__file__, str(LONG), "--context", WAYS[way], *wish]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert float(ran.stderr.splitlines()[-1]) > LONG
    return json.loads(ran.stdout)
