"""How the memory of a run grows while it works.

    python tests/bench/memory.py [--minutes 60] [--warm 10] [--rate 1000]

One broker, a source and a transform of its topic at once, each a run of two tasks on ``local[2]``,
exactly once, all else by its defaults. The source gives ``--rate`` records of 256 bytes a second.
The resident memory of each process is read every ten seconds, by role: the driver, its JVM, and the
processes in which tasks work. Printed is what it is after ``--warm`` minutes and at the end, and
the growth between them: a straight line through all samples, in MB for each minute.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import linear_regression

import psutil

# beside this file
from benchbroker import broker, create_topic, running  # type: ignore[import-not-found]

NAME, PAUSE, EVERY = "memory", 0.1, 10.0
PLUGIN = """
import time

from connectctl.source import SourceConnector, SourceRecord, SourceTask
from connectctl.transform import Record, Transform


class TickTask(SourceTask):
    def start(self, configs):
        self.topic, self.count = configs["topic"], int(configs["count"])
        self.source = {"task": configs["task"]}
        self.next = (self.context.offsets.offset(self.source) or {"n": 0})["n"]

    def poll(self):
        time.sleep(0.1)
        first, self.next = self.next, self.next + self.count
        return [
            SourceRecord(self.source, {"n": n}, self.topic, f"{n:0256}")
            for n in range(first, self.next)
        ]


class Tick(SourceConnector):
    task = TickTask

    def task_configs(self, max_tasks):
        return [{**self.configs, "task": str(n)} for n in range(max_tasks)]


class Copy(Transform):
    def process(self, records):
        return [Record(record.key, record.value) for record in records]
"""
Samples = dict[tuple[str, str], list[tuple[float, float]]]
"""Minutes and MB, by run and role."""


def sample(run: str, process: subprocess.Popen[str], began: float, samples: Samples) -> None:
    """Add the largest resident memory of each role. A run has one driver and one JVM."""
    largest: dict[str, float] = defaultdict(float)
    driver = psutil.Process(process.pid)
    for each in (driver, *driver.children(recursive=True)):
        try:
            role = (
                "driver" if each == driver else "JVM" if each.name() == "java" else "task process"
            )
            largest[role] = max(largest[role], each.memory_info().rss / (1 << 20))
        except psutil.NoSuchProcess:
            continue
    for role, megabytes in largest.items():
        samples[run, role].append(((time.monotonic() - began) / 60, megabytes))


def show(samples: Samples, warm: float) -> None:
    for (run, role), those in samples.items():
        late = [each for each in those if each[0] >= warm]
        slope = linear_regression(*zip(*late, strict=True)).slope
        print(
            f"{run:9} {role:12} {late[0][1]:6.0f} MB after {warm:g} minutes, {late[-1][1]:6.0f} "
            f"after {late[-1][0]:.0f}: {slope:+.3f} MB a minute",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--warm", type=float, default=10)
    parser.add_argument("--rate", type=int, default=1000)
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.rate} records/s", flush=True
    )
    samples: Samples = defaultdict(list)
    with ExitStack() as stack:
        sandbox = stack.enter_context(broker(NAME))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (topic, copy) = (create_topic(sandbox.bootstrap_servers, n, 2) for n in ("ticks", "copy"))
        count = str(int(given.rate * PAUSE) // 2)
        jobs = {
            "source": {"connector.class": "ticks:Tick", "topic": topic, "count": count},
            "transform": {"connector.class": "ticks:Copy", "topics": topic, "topic": copy},
        }
        runs = {}
        for name, config in jobs.items():
            (home := directory / name).mkdir()
            (home / "ticks.py").write_text(PLUGIN)
            config |= {"tasks.max": "2"}
            runs[name] = stack.enter_context(running(sandbox, home, name, config))
        began = time.monotonic()
        while time.monotonic() - began < given.minutes * 60:
            time.sleep(EVERY)
            for name, run in runs.items():
                assert run.poll() is None, (directory / name / "run.log").read_text()
                sample(name, run, began, samples)
    show(samples, given.warm)


if __name__ == "__main__":
    main()
