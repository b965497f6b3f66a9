"""Planning a merge beside a bare consumer of the same topic, and writing offsets in one
transaction; prints medians.

    python tests/bench/offsets_change.py [--records 1000000] [--partitions 100000] [--runs 5]

The plan is ``offsets merge … --into dedicated --dry-run -o json``, a whole process beside a whole
process, start-up included; every source partition is in the plan. The bare consumer is librdkafka's
under Python, read_committed, with its own defaults. The writing is the edge alone: one transaction
of as many records as there are source partitions.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

import httpx
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.sandbox import cluster
from offsets_show import BARE, fill, measure  # type: ignore[import-not-found]  # beside this file

TOPIC = "bench-offsets"
CONFIG = {
    "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "topic": "bench",
    "offsets.storage.topic": "bench-dedicated",
}


def main() -> None:
    """Fill a topic on a sandbox of its own, and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=1))
        try:
            body = {"name": "orders", "config": CONFIG, "initial_state": "STOPPED"}
            httpx.post(
                f"{sandbox.rest_urls[0]}/connectors", json=body, timeout=30
            ).raise_for_status()
            fill(sandbox.bootstrap_servers, TOPIC, wish.records, wish.partitions)
            planning(sandbox, wish.records, wish.runs)
            writing(sandbox, wish.partitions, wish.runs)
        finally:
            cluster.down("bench")


def planning(sandbox: cluster.Sandbox, records: int, runs: int) -> None:
    """Alternate the plan and the bare reading; print medians and their ratio."""
    bare = [sys.executable, "-c", BARE, sandbox.bootstrap_servers, TOPIC, str(records)]
    ours = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        "sandbox-bench",
        "--offsets-topic",
        TOPIC,
    ]
    ours += ["offsets", "merge", "orders", "--into", "dedicated", "--dry-run", "-o", "json"]
    results: dict[str, list[tuple[float, float]]] = {"bare": [], "plan": []}
    for _ in range(runs):
        results["bare"].append(measure(bare))
        results["plan"].append(measure(ours))
    seconds = {name: statistics.median(s for s, _ in found) for name, found in results.items()}
    print(f"planning a merge over {records:,} records, medians of {runs}")
    for name, found in results.items():
        print(f"{name:5} {seconds[name]:6.2f} s   {max(m for _, m in found):6.0f} MB")
    print(f"ratio {seconds['plan'] / seconds['bare']:.2f}")


def writing(sandbox: cluster.Sandbox, count: int, runs: int) -> None:
    """Write ``count`` offsets in one transaction; print the median rate, committed and all."""
    kafka = Kafka({"bootstrap.servers": sandbox.bootstrap_servers}, timeout=60)
    kafka.create_topic("bench-written", 25, 1, {"cleanup.policy": "compact"})
    rates = []
    for run in range(runs):
        records: list[Any] = []
        for n in range(count):
            key = f'["orders",{{"server":"db-1","table":"public.orders_{n}"}}]'.encode()
            value = json.dumps({"lsn": run * count + n, "txId": n, "snapshot": False}).encode()
            records.append(("bench-written", java_partition(key, 25), key, value))
        started = time.perf_counter()
        kafka.transact("bench", records)
        rates.append(count / (time.perf_counter() - started))
    print(
        f"writing {count:,} offsets in one transaction, median of {runs}: "
        f"{statistics.median(rates):,.0f} records/s"
    )


if __name__ == "__main__":
    main()
