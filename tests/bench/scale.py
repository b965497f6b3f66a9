"""Commands at the sizes of real companies: seconds, megabytes, and requests per worker; see
docs/scale.md.

    python tests/bench/scale.py cluster [--connectors 1000,10000] [--tasks 50000] [--workers 50] [--runs 3]
    python tests/bench/scale.py fence [--ids 100000] [--brokers 3]
    python tests/bench/scale.py transactions [--ids 100000] [--partitions 10000]
    python tests/bench/scale.py offsets [--records 1000000] [--partitions 100000] [--engine local]

Whole commands, start-up included, compiled as installed ones are, on a broker of their own. Medians
of the seconds, the greatest of the megabytes; the processor's seconds tell what other load on the
machine hides. ``--commands`` picks rows. Where a command has children, as Spark's JVM and Python
workers, the greatest sum of all resident sizes is told, too: pages that they share are counted for
each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

# beside this file
from company import GROUP, SINK, SOURCE, create, produce  # type: ignore[import-not-found]
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.sandbox import cluster, launch
from connectctl.ops.sandbox.cluster import Sandbox, SandboxSpec

LONGEST = 150.0
"""Seconds after which a command is killed, if --longest says nothing else; its row then says exit
-9.
"""


@dataclass
class Measured:
    """What runs of one command took."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    with_children: list[float] = field(default_factory=list)
    exit_codes: set[int] = field(default_factory=set)
    output: int = 0

    def line(self, name: str) -> str:
        """One row of the table."""
        load = os.getloadavg()[0]
        most, whole = max(self.megabytes), max(self.with_children)
        return (
            f"{name:48} {statistics.median(self.seconds):7.2f} s  {most:6.0f} MB  "
            + (f"with children {whole:.0f} MB  " if whole > 1.5 * most else "")
            + f"cpu {statistics.median(self.cpu):.2f} s  "
            f"exit {','.join(map(str, sorted(self.exit_codes)))}  {self.output:>12,} bytes  "
            f"[{min(self.seconds):.2f}-{max(self.seconds):.2f} s, load {load:.1f}]"
        )


def resident(process: psutil.Process) -> list[float]:
    """The megabytes of a process and of those below it, the greatest first."""
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(one.memory_info().rss / (1 << 20))
    return sorted(found, reverse=True)


@contextlib.contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """The megabytes of a process and its children together, every half second, for as long as it is
    used.
    """
    sizes: list[float] = []
    ended, process = threading.Event(), psutil.Process(pid)

    def watch() -> None:
        while not ended.wait(0.5):
            sizes.append(sum(resident(process)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()


def measure(
    command: list[str], runs: int, *, expect: tuple[int, ...] = (0,), longest: float = LONGEST
) -> Measured:
    """Run ``command`` and wait for it, ``runs`` times; its output goes through a file."""
    found = Measured()
    for _ in range(runs):
        with tempfile.TemporaryFile() as out:
            began = time.perf_counter()
            process = subprocess.Popen(command, stdout=out)
            late = threading.Timer(longest, process.kill)
            late.start()
            with watched(process.pid) as sizes:
                _, status, usage = os.wait4(process.pid, 0)
            late.cancel()
            found.seconds.append(time.perf_counter() - began)
            process.returncode = os.waitstatus_to_exitcode(status)
            found.output = out.seek(0, os.SEEK_END)
        found.cpu.append(usage.ru_utime + usage.ru_stime)
        found.megabytes.append(usage.ru_maxrss / 1024)
        found.with_children.append(max(sizes, default=0.0))
        found.exit_codes.add(process.returncode)
        if process.returncode == -signal.SIGKILL:
            break
        assert process.returncode in expect, (command, process.returncode)
    return found


def connectctl(*arguments: str) -> list[str]:
    """A command of ours."""
    return [sys.executable, "-m", "connectctl.cli", *arguments]


@contextlib.contextmanager
def sandbox(**spec: Any) -> Iterator[Sandbox]:
    """A cluster of the run's own."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{state}/pycache"
        up = cluster.up(SandboxSpec(name="scale", **spec))
        try:
            yield up
        finally:
            cluster.down("scale")


# ----------------------------------------------------------------------------- a cluster of workers


def recorded(url: str) -> dict[str, Any]:
    """What a real worker answers to what has nothing to do with its connectors."""
    from connectctl.ops.connect.worker import probe_config, probe_plugin

    answers = {path: httpx.get(url + path).json() for path in ("/", "/connector-plugins")}
    probe = str(probe_plugin(answers["/connector-plugins"]))
    for plugin in (SOURCE, SINK, probe):
        more = (
            {"topics": "t"}
            if "Sink" in plugin
            else {"topic": "t", "exactly.once.support": "required"}
        )
        config = (
            probe_config(probe)
            if plugin == probe
            else {"connector.class": plugin, "name": "x", "file": "f", **more}
        )
        answers[f"/validate/{plugin}"] = httpx.put(
            f"{url}/connector-plugins/{plugin}/config/validate", json=config
        ).json()
        answers[f"/connector-plugins/{plugin}/config"] = httpx.get(
            f"{url}/connector-plugins/{plugin}/config"
        ).json()
    return answers


@contextlib.contextmanager
def workers(
    bootstrap: str, answers: dict[str, Any], connectors: int, wish: argparse.Namespace
) -> Iterator[list[str]]:
    """The faked workers of a company, in a process of their own; gives their addresses."""
    program = Path(__file__).with_name("companyworkers.py")
    sizes = [connectors, wish.tasks, wish.workers, wish.delay]
    command = [sys.executable, str(program), bootstrap, *map(str, sizes)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(answers) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(30)


def cluster_rows(wish: argparse.Namespace) -> None:
    """``cluster show``, ``connectors list`` and ``preflight``."""
    # The assignment of 50,000 tasks is a record of more than 1 MB, which brokers do not take by
    # default.
    roomy = {"group.initial.rebalance.delay.ms": "3000", "message.max.bytes": "10485760"}
    for connectors in map(int, wish.connectors.split(",")):
        with sandbox(workers=1, extra_broker_properties=roomy) as up:
            answers = recorded(up.rest_urls[0])
            up.group.stop_worker(1)
            with workers(up.bootstrap_servers, answers, connectors, wish) as urls:
                for command in wish.commands.split(","):
                    row = connectctl(
                        "--bootstrap-servers", up.bootstrap_servers, "--group-id", GROUP
                    )
                    row += [*command.split(), "-o", "json"]
                    httpx.get(f"{urls[0]}/-/counts")
                    found = measure(row, wish.runs, expect=(0, 1))
                    counts = httpx.get(f"{urls[0]}/-/counts").json()
                    print(found.line(f"{command}, {connectors:,} connectors"), flush=True)
                    busiest = max(counts.values(), key=lambda by: sum(by.values()))
                    each = {what: f"{number / wish.runs:g}" for what, number in busiest.items()}
                    every = sum(sum(by.values()) for by in counts.values()) / wish.runs
                    print(
                        f"    requests: {every:,.0f} in all; of the worker with most: {each}",
                        flush=True,
                    )


# -------------------------------------------------------------------------------- transactional ids


def create_ids(bootstrap: str, count: int) -> list[str]:
    """Have the coordinators know so many ids; gives them."""
    calls = TransactionClient({"bootstrap.servers": bootstrap}, timeout=60)
    ids = [f"{GROUP}-inventory-{n // 10:05}-{n % 10}" for n in range(count)]
    waiting = dict.fromkeys(ids, 60_000)
    began = time.perf_counter()
    while waiting:
        told: dict[str, InitProducerIdResponse] = {}
        calls.fence(waiting, 30, told.__setitem__)
        waiting = {id: timeout for id, timeout in waiting.items() if told[id].code is not Code.NONE}
        time.sleep(0.5)
    print(
        f"the coordinators know {count:,} ids after {time.perf_counter() - began:.0f} s", flush=True
    )
    calls.close()
    return ids


def fence_rows(wish: argparse.Namespace) -> None:
    """``fence``, from a file of ids; the brokers' code is compiled as that of brokers that stay,
    not of sandboxes.
    """
    launch._JVM = tuple(option for option in launch._JVM if "TieredStopAtLevel" not in option)
    extra = {"transaction.state.log.num.partitions": "50"}
    with sandbox(workers=0, brokers=wish.brokers, extra_broker_properties=extra) as up:
        ids = create_ids(up.bootstrap_servers, wish.ids)
        file = Path(os.environ["XDG_STATE_HOME"]) / "ids"
        file.write_text("\n".join(ids))
        row = [
            "--bootstrap-servers",
            up.bootstrap_servers,
            "fence",
            "--from-file",
            str(file),
            "--yes",
            "-o",
            "json",
        ]
        print(
            measure(connectctl(*row), wish.runs).line(
                f"fence, {wish.ids:,} ids, {wish.brokers} brokers"
            ),
            flush=True,
        )


def transactions_rows(wish: argparse.Namespace) -> None:
    """``transactions list``, ``hanging`` and ``lag``."""
    extra = {"transaction.state.log.num.partitions": "50", "log.index.size.max.bytes": "4096"}
    with sandbox(workers=0, extra_broker_properties=extra) as up:
        for n in range(10):
            create(up.bootstrap_servers, {f"orders-{n}": wish.partitions // 10})
        create_ids(up.bootstrap_servers, wish.ids)
        lag = [part for n in range(10) for part in ("--topic", f"orders-{n}")]
        for command in (["list"], ["list", "--open"], ["hanging"], ["lag", *lag]):
            row = [
                "--bootstrap-servers",
                up.bootstrap_servers,
                "transactions",
                *command,
                "-o",
                "json",
            ]
            what = (
                f"transactions {' '.join(command[:2])}, {wish.ids:,} ids, {wish.partitions:,} "
                "partitions"
            )
            print(measure(connectctl(*row), wish.runs).line(what), flush=True)


# ----------------------------------------------------------------------------------- source offsets

BARE = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "bare", "isolation.level": "read_committed",
                     "enable.auto.commit": False})
consumer.assign([TopicPartition(topic, p, 0) for topic in sys.argv[2].split(",") for p in range(25)])
left = int(sys.argv[3])
while left > 0:
    left -= len(consumer.consume(10_000, 0.1))
"""


def offsets_rows(wish: argparse.Namespace) -> None:
    """Every command on source offsets beside a bare consumer of the same topic."""
    topics = ["bench-offsets", "own-offsets"][: 1 + wish.dedicated]
    with sandbox(workers=1) as up:
        config = {"connector.class": SOURCE, "topic": "t", "file": "f"}
        if wish.dedicated:
            config["offsets.storage.topic"] = topics[1]
        body = {"name": "orders", "config": config, "initial_state": "STOPPED"}
        began = time.perf_counter()
        create(up.bootstrap_servers, dict.fromkeys(topics, 25))
        for topic in topics:
            produce(up.bootstrap_servers, topic, offsets_of(wish.records, wish.partitions))
        httpx.post(f"{up.rest_urls[0]}/connectors", json=body).raise_for_status()
        if wish.dedicated:  # which the worker reads, too, for as long as it lives
            up.group.stop_worker(1)
        print(
            f"{len(topics) * wish.records:,} records are written after "
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )
        dump = f"{os.environ['XDG_STATE_HOME']}/dump.jsonl"
        bare = measure(
            [
                sys.executable,
                "-c",
                BARE,
                up.bootstrap_servers,
                ",".join(topics),
                str(len(topics) * wish.records),
            ],
            wish.runs,
            longest=wish.longest,
        )
        print(bare.line("a bare consumer"), flush=True)
        own = [] if wish.dedicated else ["--topic", "own"]
        commands = {
            "show": ["show", "-o", "json"],
            "table": ["show"],
            "diff": ["diff", "orders", *([] if wish.dedicated else ["-f", dump]), "-o", "json"],
            "merge": ["merge", "orders", "--into", "dedicated", *own, "--dry-run", "-o", "json"],
            "backup": ["backup", "--out", dump],
            "restore": ["restore", "orders", "-f", dump, "--dry-run", "-o", "json"],
            "rewrite": ["restore", "orders", "-f", f"{dump}.changed", "--yes", "-o", "json"],
        }
        for name in wish.commands.split(","):
            if name == "rewrite":  # of a backup that has another offset of every source partition
                with Path(dump).open() as lines, Path(f"{dump}.changed").open("w") as changed:
                    changed.writelines(line.replace("false", "true") for line in lines)
            row = connectctl(
                "--context",
                "sandbox-scale",
                "--offsets-topic",
                topics[0],
                "--timeout",
                "300",
                "offsets",
            )
            engine = ["--engine", wish.engine] if name not in ("show", "table") else []
            found = measure(
                [*row, *commands[name], *engine], wish.runs, expect=(0, 1, 4), longest=wish.longest
            )
            ratio = statistics.median(found.seconds) / statistics.median(bare.seconds)
            print(
                found.line(f"offsets {name}, {wish.engine}") + f"  {ratio:.2f} x bare", flush=True
            )


def offsets_of(records: int, partitions: int) -> Iterator[tuple[str, str | None]]:
    """What the tasks of one connector with so many source partitions leave."""
    for n in range(records):
        key = f'["orders",{{"server":"db-1","table":"public.orders_{n % partitions}"}}]'
        yield key, f'{{"lsn":{n},"txId":{n // 7},"snapshot":false}}'


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rows = parser.add_subparsers(required=True)
    one = rows.add_parser("cluster")
    one.set_defaults(run=cluster_rows)
    one.add_argument("--connectors", default="1000,10000", help="how many, a list")
    one.add_argument("--tasks", type=int, default=50_000)
    one.add_argument("--workers", type=int, default=50)
    one.add_argument(
        "--delay", type=float, default=0.0, help="seconds that a worker takes for a validation"
    )
    one.add_argument(
        "--commands", default="cluster show,connectors list,preflight,preflight --for enabled"
    )
    one = rows.add_parser("offsets")
    one.set_defaults(run=offsets_rows)
    one.add_argument("--records", type=int, default=1_000_000)
    one.add_argument("--partitions", type=int, default=100_000)
    one.add_argument("--commands", default="show,merge,backup,diff,restore")
    one.add_argument("--engine", default="local")
    one.add_argument(
        "--dedicated", action="store_true", help="a dedicated topic, too, that says the same"
    )
    one = rows.add_parser("fence")
    one.set_defaults(run=fence_rows)
    one.add_argument("--ids", type=int, default=100_000)
    one.add_argument("--brokers", type=int, default=3)
    one = rows.add_parser("transactions")
    one.set_defaults(run=transactions_rows)
    one.add_argument("--ids", type=int, default=100_000)
    one.add_argument("--partitions", type=int, default=10_000)
    for each in rows.choices.values():
        each.add_argument("--runs", type=int, default=3)
        each.add_argument(
            "--longest", type=float, default=LONGEST, help="seconds after which a command is killed"
        )
    wish = parser.parse_args()
    wish.run(wish)


if __name__ == "__main__":
    main()
