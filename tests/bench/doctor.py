"""``connectctl doctor`` at the size of a company: seconds, megabytes, and requests per worker.

    python tests/bench/doctor.py [--connectors 1000] [--tasks 5000] [--workers 10] [--commits 20] [--runs 3]

Config, status and offsets topics as workers write them, on a broker of its own; of each task the
offsets topic has ``--commits`` records, as before compaction. Whole commands, start-up included,
beside ``preflight`` and ``transactions list``; then ``bundle``, the size of its archive, and
``doctor -f`` of it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

# beside this file
from company import (  # type: ignore[import-not-found]
    GROUP,
    TOPICS,
    Company,
    Pair,
    produce,
    spelled,
)
from scale import connectctl, measure, recorded, sandbox, workers  # type: ignore[import-not-found]

COMMANDS = ("doctor", "preflight", "transactions list")


def commits(company: Company, count: int) -> Iterator[Pair]:
    """Yield the records that source tasks write to the offsets topic, in rounds."""
    for n in range(count):
        for number, name in enumerate(company.names()):
            for task in range(company.count(number)):
                yield spelled([name, {"table": f"t{task}"}]), spelled({"lsn": n})


# Each run writes an archive of its own: bundle does not replace one.
_TO_NEW_FILE = 'exec "$@" --out "$0/$$.zip"'


def bundles(cluster: Sequence[str], wish: argparse.Namespace) -> None:
    """Print what a bundle takes, its size, and what the same verdict takes from it."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["sh", "-c", _TO_NEW_FILE, directory, *connectctl(*cluster, "bundle")]
        found = measure(command, wish.runs)
        print(found.line(f"bundle, {wish.connectors:,} connectors"), flush=True)
        archive = max(Path(directory).glob("*.zip"))
        print(f"    archive: {archive.stat().st_size:,} bytes")
        found = measure(
            connectctl("doctor", "-f", str(archive), "-o", "json"), wish.runs, expect=(0, 1)
        )
        print(found.line("doctor -f of it"), flush=True)


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("connectors", 1_000), ("tasks", 5_000), ("workers", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.0)
    wish = parser.parse_args()
    roomy = {"group.initial.rebalance.delay.ms": "3000", "message.max.bytes": "10485760"}
    with sandbox(workers=1, extra_broker_properties=roomy) as up:
        answers = recorded(up.rest_urls[0])
        up.group.stop_worker(1)
        with workers(up.bootstrap_servers, answers, wish.connectors, wish) as urls:
            company = Company(wish.connectors, wish.tasks)
            written = commits(company, wish.commits)
            produce(up.bootstrap_servers, TOPICS["offsets"], written)
            for command in COMMANDS:
                row = ["--bootstrap-servers", up.bootstrap_servers, "--group-id", GROUP]
                row += [*command.split(), "-o", "json"]
                httpx.get(f"{urls[0]}/-/counts")
                found = measure(connectctl(*row), wish.runs, expect=(0, 1))
                counts = httpx.get(f"{urls[0]}/-/counts").json()
                print(found.line(f"{command}, {wish.connectors:,} connectors"), flush=True)
                busiest = max(counts.values(), key=lambda by: sum(by.values()))
                each = {what: f"{number / wish.runs:g}" for what, number in busiest.items()}
                print(f"    requests of the worker with most: {each}", flush=True)
            bundles(["--bootstrap-servers", up.bootstrap_servers, "--group-id", GROUP], wish)


if __name__ == "__main__":
    main()
