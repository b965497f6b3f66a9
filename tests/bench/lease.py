"""The longest time without a record of a source that has one every tenth of a second.

    python tests/bench/lease.py [--seconds 100] [--leases 30,3600]

One broker, one task on ``local[2]``, exactly once, for each length of the lease in turn. The gap is
that between the broker's times of two records after each other; those of the first five seconds do
not count. With ``--lease 30`` all tasks begin anew every 30 s.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

# beside this file
from benchbroker import broker, committed, create_topic, result, running  # type: ignore[import-not-found]

NAME, WARM = "lease", 5000
PLUGIN = """
import time

from connectctl.source import SourceConnector, SourceRecord, SourceTask


class TickTask(SourceTask):
    def start(self, configs):
        self.topic = configs["topic"]
        self.next = (self.context.offsets.offset({}) or {"n": 0})["n"]

    def poll(self):
        time.sleep(0.1)
        self.next += 1
        return [SourceRecord({}, {"n": self.next}, self.topic, str(self.next))]


class Tick(SourceConnector):
    task = TickTask

    def task_configs(self, max_tasks):
        return [dict(self.configs)]
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=100)
    parser.add_argument("--leases", default="30,3600")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs", flush=True)
    with broker(NAME) as sandbox, tempfile.TemporaryDirectory() as home:
        directory, bootstrap = Path(home), sandbox.bootstrap_servers
        (directory / "ticks.py").write_text(PLUGIN)
        for lease in given.leases.split(","):
            topic = create_topic(bootstrap, f"{NAME}-{lease}", 1)
            config = {"connector.class": "ticks:Tick", "topic": topic}
            until = {"duration": f"{given.seconds}s"}
            with running(sandbox, directory, topic, config, ["--lease", lease], until=until) as run:
                (task,) = result(directory, run, given.seconds)["tasks"]
            times = [message.timestamp()[1] for message in committed(bootstrap, topic, 1)]
            gaps = sorted(b - a for a, b in pairwise(times) if a > times[0] + WARM)
            print(
                f"--lease {lease}: {len(times)} records, longest gaps "
                f"{', '.join(f'{gap} ms' for gap in gaps[-4:][::-1])}; {task['producers']} "
                f"producers, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
