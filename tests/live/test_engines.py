"""Both engines on a real topic: aborted and open transactions, tombstones, garbage, and changes
carried out on Spark.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from live.real import connectctl, create_topic, write, write_uncommitted

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from live.real import Ran

# PySpark leaves the socket open over which a frame comes in parts.
pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.drawn(2, matrix="engines"),
]
ENGINES = ("local", "spark")


@pytest.fixture(scope="module")
def topics(cluster: Sandbox) -> tuple[str, str]:
    """A global topic and a dedicated one, written by more than one transaction, one of them
    aborted.
    """
    bootstrap = cluster.bootstrap_servers
    global_, own = (create_topic(bootstrap, name, 3) for name in ("engines-global", "engines-own"))
    for topic, first in ((global_, 0), (own, 100)):
        write(
            bootstrap, topic, *[(["moved", {"t": n}], {"o": n}) for n in range(first, first + 150)]
        )
    write(
        bootstrap,
        global_,
        (["other", {"t": 1}], {"o": 1}),
        ("garbage", "x"),
        (["moved", {"t": 3}], None),
    )
    write(bootstrap, global_, (["moved", {"t": 5}], {"o": 55}), partition=1)
    for topic in (global_, own):
        aborted = write_uncommitted(
            bootstrap, topic, f"engines-{topic}", (["moved", {"t": 7}], {"o": 777})
        )
        aborted.abort_transaction(30)
    committed = write_uncommitted(
        bootstrap, own, "engines-committed", (["moved", {"t": 120}], {"o": 121})
    )
    committed.commit_transaction(30)
    return global_, own


def offsets(cluster: Sandbox, topics: tuple[str, str], *args: str) -> Ran:
    return connectctl(
        "--context", f"sandbox-{cluster.spec.name}", "--offsets-topic", topics[0], "offsets", *args
    )


def saved(path: Path) -> list[Any]:
    """The records of a backup, in an order that is the same for the same records."""
    files = sorted(path.glob("part-*")) if path.is_dir() else [path]
    found = [
        json.loads(line)
        for file in files
        for line in file.read_text().splitlines()
        if "kind" not in json.loads(line)
    ]
    return sorted(found, key=lambda d: (d["topic"], d["partition"], d["offset"]))


def test_both_engines_save_the_same_records(
    cluster: Sandbox, topics: tuple[str, str], tmp_path: Path
) -> None:
    found = []
    for engine in ENGINES:
        path = tmp_path / f"{engine}.jsonl"
        ran = offsets(cluster, topics, "backup", "moved", "--engine", engine, "--out", str(path))
        assert ran.code == 0, ran.err
        found.append(saved(path))
    assert found[0] == found[1]
    assert len(found[0]) == 151
    assert not any("777" in (d["value"] or "") for d in found[0])
    parts = tmp_path / "parts"
    parts.mkdir()
    assert (
        offsets(cluster, topics, "backup", "moved", "--engine", "spark", "--out", str(parts)).code
        == 0
    )
    assert saved(parts) == found[0]


def plan(cluster: Sandbox, topics: tuple[str, str], engine: str, *args: str) -> Any:
    ran = offsets(cluster, topics, *args, "--engine", engine, "--dry-run", "-o", "json")
    assert ran.code == 0, ran.err
    return ran.json


def writes(plan: dict[str, Any]) -> list[Any]:
    """The records of a plan, without the conflicts."""
    return [item for item in plan["preview"] if "conflict" not in item]


@pytest.fixture
def stopped(cluster: Sandbox, topics: tuple[str, str]) -> Iterator[None]:
    """A connector that keeps its offsets in the dedicated topic, and never runs."""
    from live.real import FILE_SOURCE, connector

    config = {
        "connector.class": FILE_SOURCE,
        "file": "/nowhere",
        "topic": "engines",
        "offsets.storage.topic": topics[1],
    }
    with connector(cluster, "moved", config, "STOPPED"):
        yield


@pytest.mark.usefixtures("stopped")
def test_both_engines_see_plan_and_carry_out_the_same(
    cluster: Sandbox, topics: tuple[str, str], tmp_path: Path
) -> None:
    diffs = [
        offsets(cluster, topics, "diff", "moved", "--engine", engine, "-o", "json").json
        for engine in ENGINES
    ]
    assert diffs[0] == diffs[1]
    assert len(diffs[0]["differences"]) > 100
    for into in ("global", "dedicated"):
        local, spark = (
            plan(cluster, topics, engine, "merge", "moved", "--into", into) for engine in ENGINES
        )
        assert local == spark
        assert writes(local)
    before = tmp_path / "before.jsonl"
    assert offsets(cluster, topics, "backup", "moved", "--out", str(before)).code == 0
    ran = offsets(
        cluster,
        topics,
        "merge",
        "moved",
        "--into",
        "dedicated",
        "--engine",
        "spark",
        "--yes",
        "-o",
        "json",
    )
    assert ran.code == 0, ran.err
    assert writes(plan(cluster, topics, "local", "merge", "moved", "--into", "dedicated")) == []
    plans = [
        plan(cluster, topics, engine, "restore", "moved", "-f", str(before)) for engine in ENGINES
    ]
    assert writes(plans[0]) == writes(plans[1]) != []
    ran = offsets(
        cluster, topics, "restore", "moved", "-f", str(before), "--engine", "spark", "--yes"
    )
    assert ran.code == 0, ran.err
    assert writes(plan(cluster, topics, "local", "restore", "moved", "-f", str(before))) == []


def test_an_open_transaction_stops_both(cluster: Sandbox, topics: tuple[str, str]) -> None:
    from unittest import mock

    open_ = write_uncommitted(
        cluster.bootstrap_servers, topics[0], "engines-open", (["moved", {"t": 9}], {"o": 9})
    )
    open_.flush(300)
    try:
        of_sources = mock.patch("connectctl.ops.operations.offsets.sources.PATIENCE", 1.0)
        with of_sources, mock.patch("connectctl.cli.commands.offsets.spark_backup.PATIENCE", 1.0):
            said = [
                offsets(cluster, topics, "backup", "moved", "--engine", engine)
                for engine in ENGINES
            ]
    finally:
        open_.abort_transaction(30)
    assert [ran.code for ran in said] == [1, 1]
    assert said[0].err == said[1].err
    assert "open transaction" in said[0].err


def test_a_spark_that_is_killed_is_an_error_and_no_bug(
    cluster: Sandbox, topics: tuple[str, str]
) -> None:
    context = ["--context", f"sandbox-{cluster.spec.name}", "--offsets-topic", topics[0]]
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        *context,
        "offsets",
        "backup",
        "moved",
        "--engine",
        "spark",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        killed = False
        while not killed and process.poll() is None:
            time.sleep(0.02)
            killed = _kill_java_at_work(psutil.Process(process.pid))
        told = process.communicate()[1]
    assert killed, told
    assert process.returncode == 1, told
    assert "Spark" in told
    assert "bug" not in told


def _kill_java_at_work(process: psutil.Process) -> bool:
    """Whether Spark's JVM had a Python worker, and is killed."""
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "pyspark.daemon" in child.cmdline() and (parent := child.parent()) is not None:
                parent.kill()
                return True
    return False
