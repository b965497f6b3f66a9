"""A DataFrame written exactly once, beside Spark's own Kafka sink, which is at-least-once.

    python tests/bench/dataframe.py [--records 2000000] [--runs 3] [--master 'local[2]'] [--jvm sandbox|kafka]

The broker is on the same machine. It has the JVM options of a sandbox, whose code is compiled for a
short life, or those of Kafka's own start scripts, with which Spark's sink gains more than ours. The
frame is the same for all: cached, of two partitions, with values of 100 bytes and 64 source
partitions. Writers alternate in one warm session, each run into a new topic of four partitions, for
a connector whose internal topics are there.

Timed is the whole call, from the frame to the last record committed or flushed; for ours with a new
generation of tasks, its fencing and its offsets. *shuffled* is what ``write_exactly_once`` does
with any frame, *partitioned* what it does with one that has each source partition in one of its
partitions, as this one has. *ready-made* is the ceiling: what *partitioned* wrote last, sent by two
processes as bytes that were made before the clock starts (``readymade.py``). What is there
afterwards is counted.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbroker import JVM  # type: ignore[import-not-found]  # beside this file
from connectctl.ops.clients.java import find_java
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.config import paths
from connectctl.ops.sandbox import cluster, launch
from connectctl.ops.sandbox.jars import ivy
from connectctl.ops.task_runtime.dataframe.api import Target, write_exactly_once
from readymade import sent  # type: ignore[import-not-found]  # beside this file

SINK = [
    ivy.Dependency(
        "org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0", "sink", transitive=False
    ),
    ivy.Dependency(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "sink",
        transitive=False,
    ),
    ivy.Dependency("org.apache.kafka", "kafka-clients", "3.9.0", "sink", transitive=False),
    ivy.Dependency("org.apache.commons", "commons-pool2", "2.12.0", "sink", transitive=False),
]
"""Spark's sink, with what Spark itself does not bring."""
SIZE, TASKS, SOURCES, PARTITIONS = 100, 2, 64, 4


def sink_jars(into: Path) -> str:
    """The sink's jars, as ``spark.jars`` wants them."""
    ivy.retrieve(SINK, into, cache=paths.cache_directory() / "ivy", java=find_java().path)
    return ",".join(str(jar) for jar in sorted((into / "sink").glob("*.jar")))


def frame_of(spark: Any, records: int) -> Any:
    """Rows in memory, those of a source partition beside each other."""
    rows = spark.range(0, records, 1, TASKS).selectExpr(
        f"concat('source ', id div {records // SOURCES}) source",
        "id",
        f"rpad(cast(id as string), {SIZE}, 'x') value",
    )
    rows = rows.cache()
    assert rows.count() == records
    return rows


def new_topic(bootstrap: str) -> str:
    """A topic, and those that a connector has beside it: none is new when it is written to for the
    second time.
    """
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"frame-{secrets.token_hex(4)}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    compacted = {"cleanup.policy": "compact"}
    topics = [
        NewTopic(name, PARTITIONS, 1),
        NewTopic(f"{name}-offsets", 25, 1, config=compacted),
        NewTopic(f"g-{name}-configs", 1, 1, config=compacted),
    ]
    for created in admin.create_topics(topics).values():
        created.result()
    # Java's producer gets stuck where the first of its requests comes before a new partition has
    # its leader, and the second behind it: the broker then holds the first one to be out of order.
    Kafka({"bootstrap.servers": bootstrap}, timeout=60).extents([name])
    return name


def sparks_own(frame: Any, bootstrap: str, topic: str) -> None:
    """As Spark's documentation has it."""
    sink = frame.select("value").write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    sink.option("topic", topic).save()


def ours(*, partitioned: bool) -> Callable[[Any, str, str], None]:
    def write(frame: Any, bootstrap: str, topic: str) -> None:
        client = {"bootstrap.servers": bootstrap}
        target = Target(
            client,
            f"g-{topic}",
            topic,
            topic,
            f"{topic}-offsets",
            ["source"],
            "id",
            tasks=TASKS,
            partitioned=partitioned,
        )
        write_exactly_once(frame, target)

    return write


CEILING = "ready-made"
WRITERS = {
    "Spark's sink": sparks_own,
    "shuffled": ours(partitioned=False),
    "partitioned": ours(partitioned=True),
}


def measured(
    frame: Any,
    bootstrap: str,
    records: int,
    write: Callable[[Any, str, str], None] | None,
    written: str,
) -> tuple[float, str]:
    """Seconds, and the new topic; without ``write`` those of the batches of the topic ``written``.
    Afterwards the topic is counted, where it has no more than its records and the markers of
    transactions.
    """
    topic = new_topic(bootstrap)
    began = time.perf_counter()
    if write is None:
        seconds = float(sent(bootstrap, written, topic, PARTITIONS, TASKS))
    else:
        write(frame, bootstrap, topic)
        seconds = time.perf_counter() - began
    ends = Kafka({"bootstrap.servers": bootstrap}, timeout=60).extents([topic])[topic]
    there = sum(extent.end for extent in ends.values())
    assert records <= there <= records * 1.01, f"{there} of {records}"
    return seconds, topic


def main() -> None:
    """Measure on a sandbox of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--master", default=f"local[{TASKS}]")
    parser.add_argument("--jvm", choices=("sandbox", "kafka"), default="sandbox")
    wish = parser.parse_args()
    if wish.jvm == "kafka":
        launch._HEAP, launch._JVM = "-Xmx2g", JVM
    from connectctl.ops.clients.spark.session import open_session

    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        conf = {"spark.jars": sink_jars(Path(state) / "jars"), "spark.driver.memory": "2g"}
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=0))
        try:
            session = open_session(wish.master, conf, Path(state) / "spark.log")
            frame = frame_of(session, wish.records)
            times: dict[str, list[float]] = {name: [] for name in (*WRITERS, CEILING)}
            topic = ""
            for run in range(wish.runs + 1):
                for name, some in times.items():
                    seconds, topic = measured(
                        frame, sandbox.bootstrap_servers, wish.records, WRITERS.get(name), topic
                    )
                    if run:
                        some.append(seconds)
                    load = os.getloadavg()[0]
                    print(
                        f"  {name:14} {run or 'warm-up'!s:>8} {seconds:7.2f} s  load {load:.1f}",
                        flush=True,
                    )
            base = statistics.median(times["Spark's sink"])
            ceiling = statistics.median(times[CEILING])
            print(
                f"{'writer':14} {'median, s':>10} {'records/s':>11} {'ratio':>6} "
                f"{'of ready-made':>14}"
            )
            for name, some in times.items():
                median = statistics.median(some)
                rate = wish.records / median
                print(
                    f"{name:14} {median:10.2f} {rate:11,.0f} {base / median:6.2f} "
                    f"{ceiling / median:14.0%}"
                )
            session.stop()
        finally:
            cluster.down("bench")


if __name__ == "__main__":
    main()
