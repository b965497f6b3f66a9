"""A DataFrame into a real topic, each row once, however often it is written."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.edges.kafka import Kafka
from connectctl.ops.edges.spark import open_session
from connectctl.ops.errors import BadInput, ConnectctlError
from connectctl.ops.runtime.dataframes import Target, write_exactly_once
from live.real import create_topic, write_uncommitted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # PySpark leaves the socket of an answer to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    opened = open_session("local[2]", {"spark.sql.shuffle.partitions": 2}, log)
    yield opened
    opened.stop()


@pytest.fixture
def target(cluster: Sandbox) -> Target:
    name = f"frame-{secrets.token_hex(4)}"
    bootstrap = cluster.bootstrap_servers
    return Target(
        client={"bootstrap.servers": bootstrap},
        group_id="frames",
        connector=name,
        topic=create_topic(bootstrap, f"{name}-data", 2, "delete"),
        offsets_topic=create_topic(bootstrap, f"{name}-offsets"),
        partition=["shop"],
        offset="id",
        rows_per_transaction=50,
    )


def frame(session: Any, *ids: int) -> Any:
    from pyspark.sql import functions as f

    data = session.createDataFrame([(f"shop {n % 3}", n) for n in ids], "shop string, id long")
    return data.withColumn("value", f.concat_ws(":", "shop", "id"))


def seen(target: Target) -> list[int]:
    kafka = Kafka(dict(target.client), timeout=30)
    image = kafka.image([target.topic], patience=30, superseded=True)[target.topic]
    assert not image.held_back
    return sorted(int((r.value or b"").rpartition(b":")[2]) for r in (*image.latest, *image.superseded))


def test_each_row_is_there_once_however_often_and_by_however_many_tasks_it_is_written(
    session: Any, target: Target
) -> None:
    first = write_exactly_once(frame(session, *range(300)), target)
    assert (first.sent, first.skipped) == (300, 0)
    assert first.transactions >= 6
    again = write_exactly_once(frame(session, *range(400)), replace(target, tasks=3))
    assert (again.sent, again.skipped) == (100, 300)
    assert seen(target) == list(range(400))


def test_a_streaming_query_writes_each_micro_batch_once(session: Any, target: Target, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for start in (0, 100):
        frame(session, *range(start, start + 100)).write.mode("append").json(str(source))
        for replay in (False, True):
            where = checkpoint if not replay else tmp_path / f"lost-{start}"
            stream = session.readStream.schema("shop string, id long, value string").json(str(source))
            query = (
                stream.writeStream.foreachBatch(lambda df, _: write_exactly_once(df, target) and None)
                .option("checkpointLocation", str(where))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
    assert seen(target) == list(range(200))


def test_a_zombie_that_holds_a_transaction_open_is_fenced_and_leaves_nothing(session: Any, target: Target) -> None:
    id_ = f"frames-{target.connector}-7"
    bootstrap = str(target.client["bootstrap.servers"])
    zombie = write_uncommitted(bootstrap, target.topic, id_, (None, "shop 0:999"))
    write_exactly_once(frame(session, *range(30)), target)
    assert seen(target) == list(range(30))
    del zombie


def test_bad_columns_are_one_line_and_nothing_is_written(session: Any, target: Target) -> None:
    good = frame(session, 1, 2)
    with pytest.raises(BadInput, match="has no column shop"):
        write_exactly_once(good.drop("shop"), target)
    with pytest.raises(BadInput, match="double and cannot be a source offset"):
        write_exactly_once(good.withColumn("id", good.id.cast("double")), target)
    with pytest.raises(ConnectctlError, match="None, which is no source offset"):
        write_exactly_once(good.withColumn("id", good.id.cast("long") * None), target)
    assert seen(target) == []
