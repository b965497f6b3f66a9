"""YARN as Spark's cluster: a run, a DataFrame and an audit, whose executors are its containers."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from live import countingplugin, sparkframe
from live.countedrun import Counted, ended
from live.real import connectctl, create_topic, eventually
from live.sparkclusters import PATIENCE, below, history, python_without, send
from live.yarncluster import HADOOP, yarn
from sparkjvm import java_options

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from live.yarncluster import Yarn

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.versions(hadoop=HADOOP)]
ROWS = 1_500


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with (
        yarn(tmp_path_factory.mktemp("yarn")) as cluster,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
        yield cluster


def lose_an_executor(hadoop: Yarn) -> None:
    running = hadoop.executors()
    assert len(running) == 2
    send(running[:1])


def test_a_connector_runs_in_containers_without_connectctl_and_one_of_them_may_die(
    cluster: Sandbox, hadoop: Yarn, tmp_path: Path
) -> None:
    place = Counted(
        cluster, tmp_path, countingplugin.as_wheel(tmp_path), count=400, batch=5, pause=0.1
    )
    place.conf |= hadoop.spark_conf() | {"spark.pyspark.python": python_without(tmp_path)}
    with place.running("yarn") as run:
        place.sees(run, 50)
        lose_an_executor(hadoop)
        assert ended(run)["outcome"] == "ended"
    assert place.judged() == {b"0": 400, b"1": 400}
    # YARN reports the container of one that is gone once more
    assert history(place.events)["executors lost"] >= 1


def test_a_frame_is_written_while_an_executor_dies_and_is_audited_there(
    cluster: Sandbox, hadoop: Yarn, tmp_path: Path
) -> None:
    name = f"frame-{secrets.token_hex(4)}"
    bootstrap = cluster.bootstrap_servers
    topic = create_topic(bootstrap, f"{name}-data", 2, "delete")
    offsets = create_topic(bootstrap, f"{name}-offsets", 5)
    options = {f"spark.{side}.extraJavaOptions": java_options() for side in ("driver", "executor")}
    conf = hadoop.spark_conf() | options | {"spark.pyspark.python": python_without(tmp_path)}
    target = {
        "client": {"bootstrap.servers": bootstrap},
        "group_id": name,
        "connector": name,
        "topic": topic,
        "offsets_topic": offsets,
        "partition": ["shop"],
        "offset": "id",
        "key": "shop",
        "value": "number",
        "rows_per_transaction": 20,
    }
    wish = {"master": "yarn", "conf": conf, "log": str(tmp_path / "spark.log"), "rows": ROWS}
    kafka = Kafka(target["client"], timeout=60)  # type: ignore[arg-type]

    def written() -> int:
        image = kafka.image([topic], patience=60, superseded=True)[topic]
        return len(image.latest) + len(image.superseded)

    with subprocess.Popen(
        [sys.executable, sparkframe.__file__, json.dumps(wish | {"target": target})],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:

            def begun() -> bool:
                assert process.poll() is None, process.communicate()
                return written() >= 20

            eventually(begun, PATIENCE)
            lose_an_executor(hadoop)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            send(below([process]))
            process.kill()
    assert process.returncode == 0, err
    assert json.loads(out)["problems"] == []

    contexts: dict[str, Any] = {
        "yarn": {
            "bootstrap_servers": bootstrap,
            "group_id": name,
            "spark": {"master": "yarn", "conf": conf},
        }
    }
    file = tmp_path / "contexts.yaml"
    file.write_text(json.dumps({"current": "yarn", "contexts": contexts}))
    sequence = ("--sequence", r"text:(\d+)", "--first", "0", "--offsets-topic", offsets)
    ran = connectctl(
        "--config", str(file), "audit", topic, *sequence, "--engine", "spark", "-o", "json"
    )
    assert ran.code == 0, ran.err
    audit = ran.json
    assert (audit["verdict"], audit["records"]["committed"]) == ("exactly-once", ROWS)
    assert (audit["duplicates"], audit["gaps"]) == (0, 0)
