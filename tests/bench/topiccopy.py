"""A topic copied to another, exactly once: ``connectctl run`` beside Kafka's own
MirrorSourceConnector on a real worker.

    python tests/bench/topiccopy.py [--records 2000000] [--size 256] [--codec none] [--batch 10000] [--runs 3]
        [--sides ready-made,fetched,unopened,auto,opened,worker,tuned,strict]

One broker, which is source and target, one source topic of records in four partitions, two tasks on
every side (ours on Spark ``local[2]``), transactions of the boundary poll. The sides take turns,
after a turn of each that is not counted, so that the worker's JVM is warm. Broker and worker have
the JVM options of Kafka's own start scripts, and not those of a sandbox, which is made for a short
life. MirrorSourceConnector emits no offset syncs and syncs nothing here, as ours never does; where
the source is compressed, its producer has the same codec. ``unopened``, ``auto`` and ``opened`` are
ours with that ``copy.batches``, which differ where batches are small (``--batch`` records), and
``strict`` is ``unopened`` with ``epoch.per.transaction``. ``worker`` is the worker's connector as
it comes, ``tuned`` as an operator makes it quick: transactions of a second, large polls and large
batches (``TUNED``). ``ready-made`` is the ceiling: two processes send the source's own batches,
made ready before the clock starts, in one transaction each; ``fetched`` is the same where each
batch is sent once it was fetched: what a copy costs that does nothing with what it fetches
(``readymade.py``). The difference of the two is the source's, which sends from the same cores.
Sides that take turns with ``fetched`` are slower than without it, for a reason that is not known:
measure it apart.

What is timed is the same for all: from the broker's own time of the first record in the remote
topic to the moment at which the last transaction is seen committed, by read_committed end offsets
that are asked for every 50 ms. So the start of Spark's session and of the worker's tasks is out, as
is the way to the first record; all that tasks do from there on is in. Each run is checked with
read_committed: every record is there once and in its place.

Of ours the greatest resident size of a task's process is printed. Fails where a ratio of medians is
below what is wanted: see ``GOALS``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
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
from readymade import sent  # type: ignore[import-not-found]  # beside this file

if TYPE_CHECKING:
    from connectctl.ops.sandbox import cluster

GOALS = {
    ("unopened", "ready-made"): 0.8,
    ("unopened", "fetched"): 0.8,
    ("fetched", "ready-made"): 0.0,
    ("unopened", "opened"): 2.0,
    ("auto", "unopened"): 0.9,
    ("auto", "opened"): 1.0,
    ("auto", "worker"): 1.5,
    ("unopened", "worker"): 5.0,
    ("unopened", "tuned"): 1.0,
    ("opened", "worker"): 1.5,
    ("strict", "worker"): 1.0,
}
"""How many times as fast one side is to be as another, at least."""
TUNED = {
    "transaction.boundary": "interval",
    "transaction.boundary.interval.ms": "1000",
    "source.consumer.max.poll.records": "20000",
    "source.consumer.max.partition.fetch.bytes": str(8 << 20),
    "producer.override.batch.size": "1000000",
    "producer.override.linger.ms": "20",
    "producer.override.buffer.memory": str(128 << 20),
}
"""A quick MirrorSourceConnector."""
MOST_MEGABYTES = 300
"""Of a task's process."""
NAME, SOURCE, PARTITIONS, TASKS = "bench", "source", 4, 2
WORKERS = ("worker", "tuned")
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def config(
    bootstrap: str, alias: str, side: str = "unopened", codec: str = "none"
) -> dict[str, str]:
    """The connector's configuration, the same for all but for what a side is about."""
    worker, strict = side in WORKERS, side == "strict"
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
        **(TUNED if side == "tuned" else {}),
        **({"epoch.per.transaction": "true"} if strict else {}),
        **({} if worker else {"copy.batches": "unopened" if strict else side}),
        **(
            {"producer.override.compression.type": codec}
            if codec != "none" and side not in ("unopened", "auto")
            else {}
        ),
    }


@dataclass(frozen=True)
class Load:
    """What is copied: so many ``records`` of ``size`` bytes, in batches of a ``codec``, at most
    ``batch`` in one.
    """

    records: int
    size: int
    codec: str
    batch: int


@dataclass(frozen=True)
class Turn:
    """Records/s of one run, and the greatest resident size of a task's process in MB, of ours."""

    rate: float
    megabytes: float = 0.0

    def __str__(self) -> str:
        return f"{self.rate:9,.0f} records/s" + (
            f", {self.megabytes:,.0f} MB a task" if self.megabytes else ""
        )


def timed(sandbox: cluster.Sandbox, side: str, turn: int, load: Load) -> Turn:
    """One run."""
    records, megabytes = load.records, 0.0
    bootstrap, alias = sandbox.bootstrap_servers, f"{side}{turn}"
    topic = create_topic(bootstrap, f"{alias}.{SOURCE}", PARTITIONS)
    os.sync()  # else what the side before has written goes to the disk meanwhile
    with Watch(bootstrap, topic, PARTITIONS).watching() as watch:
        if side in WORKERS:
            theirs(sandbox, alias, side, watch, load)
        elif side in ("ready-made", "fetched"):
            sent(bootstrap, SOURCE, topic, PARTITIONS, TASKS, fetch=side == "fetched")
            watch.wait(records)
        else:
            megabytes = ours(sandbox, alias, config(bootstrap, alias, side, load.codec))
            watch.wait(records)
    first = begin(bootstrap, topic, records, PARTITIONS, PARTITIONS, in_place=True, size=load.size)
    delete_topic(bootstrap, topic)
    return Turn(records / (watch.changed - first), megabytes)


def theirs(sandbox: cluster.Sandbox, alias: str, side: str, watch: Watch, load: Load) -> None:
    """The worker's connector, until nothing comes any more."""
    url = f"{sandbox.rest_urls[0]}/connectors/{alias}"
    wish = config(sandbox.bootstrap_servers, alias, side, load.codec)
    httpx.put(f"{url}/config", json=wish, timeout=60).raise_for_status()
    watch.wait(load.records)
    httpx.delete(url, timeout=60).raise_for_status()


def ours(sandbox: cluster.Sandbox, alias: str, wish: dict[str, str]) -> float:
    """``connectctl run``, until nothing comes any more; the megabytes of its largest task."""
    with tempfile.TemporaryDirectory() as directory:
        until = {"idle": f"{QUIET:g}s"}
        with (
            running(sandbox, Path(directory), alias, wish, until=until) as process,
            Sizes(process.pid) as sizes,
        ):
            result(Path(directory), process)
    return sizes.most / 1e6


class Sizes:
    """``most``: the greatest resident size, in bytes, of a Python process below that of a run:
    those of its tasks.
    """

    def __init__(self, pid: int):
        self._run = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most = 0

    def __enter__(self) -> Sizes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            with suppress(psutil.Error):
                for each in self._run.children(recursive=True):
                    with suppress(psutil.Error):
                        if "python" in each.name():
                            self.most = max(self.most, each.memory_info().rss)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default="ready-made,unopened,opened,worker,tuned")
    given = parser.parse_args()
    load = Load(given.records, given.size, given.codec, given.batch)
    told = (
        f"{given.records:,} records of {given.size} bytes, codec {given.codec}, at most "
        f"{given.batch:,} in a batch"
    )
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {told}", flush=True)
    with broker(NAME, workers=1) as sandbox:
        fill(
            sandbox.bootstrap_servers,
            SOURCE,
            PARTITIONS,
            load.records,
            size=load.size,
            codec=load.codec,
            batch=load.batch,
        )
        turns = in_turns(
            given.sides.split(","),
            given.runs,
            lambda side, turn: timed(sandbox, side, turn, load),
            str,
        )
    sys.exit(verdict(turns))


def verdict(turns: dict[str, list[Turn]]) -> str | int:
    """Print medians and ratios; what is missed, or 0."""
    missed, by_side = (
        [],
        medians({side: [turn.rate for turn in some] for side, some in turns.items()}),
    )
    for side, median in by_side.items():
        print(f"{side:10} {median:9,.0f} records/s")
    for (side, other), least in GOALS.items():
        if side in by_side and other in by_side:
            ratio = by_side[side] / by_side[other]
            print(f"{side}: {ratio:.2f} x {other}")
            missed += [f"{side}: at least {least} x {other} is wanted"] if ratio < least else []
    megabytes = max(turn.megabytes for turn in turns.get("unopened", [Turn(0.0)]))
    if megabytes > MOST_MEGABYTES:
        missed.append(f"a task had {megabytes:,.0f} MB")
    return "; ".join(missed) or 0


if __name__ == "__main__":
    main()
