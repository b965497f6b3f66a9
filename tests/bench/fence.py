"""``connectctl fence`` beside Java's ``Admin.fenceProducers`` on the same broker, in the same run.

    python tests/bench/fence.py [--runs 5] [--java 10,50]

Ours are whole commands, start-up, plan and proof included, with the greatest resident size. Java's
are the seconds of the call and its connection alone, without the start of the JVM, from the
sandbox's own jars: with its defaults, and with a back-off of 1 ms. Fails where 1,000 ids take more
than 1 s, 10,000 more than 5 s, or memory passes 150 MB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.sandbox import cluster
from connectctl.ops.sandbox.jars.cache import BROKER, cached

LIMITS = {1_000: 1.0, 10_000: 5.0}
MEMORY = 150.0
PREFIX = "bench-"


def create(bootstrap: str, count: int) -> None:
    """Make the coordinator know the ids."""
    calls = TransactionClient({"bootstrap.servers": bootstrap}, timeout=60)
    waiting = {f"{PREFIX}{n}": 60_000 for n in range(count)}
    while waiting:
        told: dict[str, InitProducerIdResponse] = {}
        calls.fence(waiting, 30, told.__setitem__)
        waiting = {id: timeout for id, timeout in waiting.items() if told[id].code is not Code.NONE}
    calls.close()


def ours(bootstrap: str, file: Path) -> tuple[float, float]:
    """Seconds and megabytes of one command."""
    command = [sys.executable, "-m", "connectctl.cli", "--bootstrap-servers", bootstrap]
    command += ["fence", "--from-file", str(file), "--yes", "-o", "json"]
    began = time.perf_counter()
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def java(sandbox: cluster.Sandbox, count: int, *backoff: str) -> str:
    """Seconds of one call, and what it ended in where it failed."""
    jars = cached(sandbox.spec.version)
    assert jars is not None
    source = Path(__file__).with_name("Fence.java")
    command = [
        "java",
        "-Xmx256m",
        "-cp",
        str(jars.root / BROKER / "*"),
        str(source),
        sandbox.bootstrap_servers,
        PREFIX,
        str(count),
        *backoff,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def compare(sandbox: cluster.Sandbox, runs: int, java_counts: list[int], directory: Path) -> bool:
    """Print both, and say whether the limits hold."""
    good = True
    print(f"{'what':44} {'ids':>6} {'seconds':>9} {'ids/s':>9}   memory")
    for count, limit in LIMITS.items():
        file = directory / "ids"
        file.write_text("\n".join(f"{PREFIX}{n}" for n in range(count)))
        found = [ours(sandbox.bootstrap_servers, file) for _ in range(runs)]
        seconds, memory = statistics.median(s for s, _ in found), max(m for _, m in found)
        print(
            f"{'connectctl fence, whole command':44} {count:6} {seconds:9.2f} "
            f"{count / seconds:9,.0f}   {memory:.0f} MB"
        )
        good &= seconds <= limit and memory <= MEMORY
    for name, backoff, counts in (
        ("defaults", (), java_counts),
        ("back-off of 1 ms", ("1",), [1000]),
    ):
        for count in counts:
            text = java(sandbox, count, *backoff)
            seconds = float(text.split()[0])
            rate = f"{count / seconds:9,.0f}" if " " not in text else f"  {text.split()[1]}"
            print(f"{f'Admin.fenceProducers, {name}':44} {count:6} {seconds:9.2f} {rate}")
    return good


def main() -> None:
    """Bring a broker up, make the ids known, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--java", default="10,50", help="how many ids Java fences, a list")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=0))
        try:
            create(sandbox.bootstrap_servers, max(LIMITS))
            good = compare(
                sandbox, wish.runs, list(map(int, wish.java.split(","))), Path(directory)
            )
        finally:
            cluster.down("bench")
    sys.exit(0 if good else "a limit is not held")


if __name__ == "__main__":
    main()
