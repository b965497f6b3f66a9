"""A topic copied to another, exactly once: ``connectctl run`` beside Kafka's own MirrorSourceConnector on a real worker.

    python tests/bench/topiccopy.py [--records 2000000] [--runs 3] [--sides worker,run,strict]

One broker, which is source and target, one source topic of 256-byte records in four partitions, two tasks on every side
(ours on Spark ``local[2]``), transactions of the boundary poll, no compression. The sides take turns, after a turn of each
that is not counted, so that the worker's JVM is warm. Broker and worker have the JVM options of Kafka's own start scripts,
and not those of a sandbox, which is made for a short life. MirrorSourceConnector emits no offset syncs and syncs nothing
here, as ours never does. ``strict`` is ours with ``epoch.per.transaction``: a new epoch for each transaction.

What is timed is the same for all: from the broker's own time of the first record in the remote topic to the moment at which
the last transaction is seen committed, by read_committed end offsets that are asked for every 50 ms. So the start of
Spark's session and of the worker's tasks is out, as is the way to the first record; all that tasks do from there on is in.
Each run is checked with read_committed: every record is there once and in its place.

Fails where the ratio of medians is below 1.5, strict below 1.0.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from benchbroker import (  # type: ignore[import-not-found]  # beside this file
    QUIET,
    SIZE,
    Watch,
    begin,
    broker,
    create_topic,
    delete_topic,
    fill,
    in_turns,
    medians,
    result,
    running,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox import cluster

GOALS = {"run": 1.5, "strict": 1.0}
NAME, SOURCE, PARTITIONS = "bench", "source", 4
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def config(bootstrap: str, alias: str, *, strict: bool = False) -> dict[str, str]:
    """The connector's configuration, the same for all but for what is strict."""
    off = (
        "emit.offset-syncs.enabled",
        "sync.topic.acls.enabled",
        "sync.topic.configs.enabled",
        "refresh.topics.enabled",
    )
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": "2",
        "source.cluster.alias": alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "source.consumer.isolation.level": "read_committed",
        "topics": SOURCE,
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "transaction.boundary": "poll",
        "exactly.once.support": "required",
        **dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES),
        **dict.fromkeys(off, "false"),
        **({"epoch.per.transaction": "true"} if strict else {}),
    }


def timed(sandbox: cluster.Sandbox, side: str, turn: int, records: int) -> float:
    """Records/s of one run."""
    bootstrap, alias = sandbox.bootstrap_servers, f"{side}{turn}"
    topic = create_topic(bootstrap, f"{alias}.{SOURCE}", PARTITIONS)
    with Watch(bootstrap, topic, PARTITIONS).watching() as watch:
        if side == "worker":
            theirs(sandbox, alias, watch, records)
        else:
            ours(sandbox, alias, strict=side == "strict")
            watch.wait(records)
    took: float = watch.changed - begin(bootstrap, topic, records, PARTITIONS, PARTITIONS, in_place=True)
    delete_topic(bootstrap, topic)
    return records / took


def theirs(sandbox: cluster.Sandbox, alias: str, watch: Watch, records: int) -> None:
    """The worker's connector, until nothing comes any more."""
    url = f"{sandbox.rest_urls[0]}/connectors/{alias}"
    httpx.put(f"{url}/config", json=config(sandbox.bootstrap_servers, alias), timeout=60).raise_for_status()
    watch.wait(records)
    httpx.delete(url, timeout=60).raise_for_status()


def ours(sandbox: cluster.Sandbox, alias: str, *, strict: bool) -> None:
    """``connectctl run``, until nothing comes any more."""
    wish = config(sandbox.bootstrap_servers, alias, strict=strict)
    with tempfile.TemporaryDirectory() as directory:
        until = {"idle": f"{QUIET:g}s"}
        with running(sandbox, Path(directory), alias, wish, until=until) as process:
            result(Path(directory), process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default="worker,run,strict")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records:,} records of {SIZE} bytes", flush=True)
    with broker(NAME, workers=1) as sandbox:
        fill(sandbox.bootstrap_servers, SOURCE, PARTITIONS, given.records)
        rates = in_turns(
            given.sides.split(","),
            given.runs,
            lambda side, turn: timed(sandbox, side, turn, given.records),
            lambda rate: f"{rate:9,.0f} records/s",
        )
    sys.exit(verdict(rates))


def verdict(rates: dict[str, list[float]]) -> str | int:
    """Print medians and ratios; what is missed, or 0."""
    missed, by_side = [], medians(rates)
    for side, median in by_side.items():
        ratio = median / by_side["worker"] if "worker" in by_side else float("nan")
        print(f"{side:8} {median:9,.0f} records/s, {ratio:.2f} of the worker's")
        if ratio < GOALS.get(side, 0):
            missed.append(f"{side}: at least {GOALS[side]} is wanted")
    return "; ".join(missed) or 0


if __name__ == "__main__":
    main()
