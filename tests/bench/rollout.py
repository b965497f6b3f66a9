"""``connectctl upgrade apply`` beside the workers' own stops and starts, and what a connector wrote
meanwhile.

    python tests/bench/rollout.py [--workers 2,4] [--svg FILE]

One roll from disabled through preparing to enabled on a real sandbox, whole command. Its floor is
the time from each worker's first word of stopping to the moment when it has joined its group again,
by the workers' own logs of the same run. A connector writes 200 records per second throughout; what
reached the topic is drawn as a line, half a second a sign. Fails where the roll takes more than 1.5
times the floor.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from connectctl.ops.sandbox import cluster

LIMIT = 1.5
NAME, TOPIC = "bench", "rollout-records"
RATE = 200
SIGN = 0.5
"""Seconds of one sign of the line."""
STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
STOPS, STOPPED, STARTED = (
    "Kafka Connect stopping",
    "Kafka Connect stopped",
    "Finished starting connectors and tasks",
)
SIGNS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Away:
    """One restart by a worker's own log, in seconds since the epoch."""

    stops: float
    stopped: float
    started: float


@dataclass(frozen=True)
class Rollout:
    """One roll: when it began and ended, the seconds of each kind of step, the restarts, the
    records' times.
    """

    began: float
    ended: float
    steps: dict[str, float]
    away: tuple[Away, ...]
    records: tuple[float, ...]

    @property
    def floor(self) -> float:
        """The sum of the workers' own stops and starts."""
        return sum(one.started - one.stops for one in self.away)

    @property
    def ratio(self) -> float:
        """The roll beside its floor."""
        return (self.ended - self.began) / self.floor

    def rates(self) -> list[float]:
        """Records per second, one number for each sign of the line."""
        count = int((self.ended - self.began) / SIGN) + 1
        buckets = Counter(int((at - self.began) // SIGN) for at in self.records)
        return [buckets[n] / SIGN for n in range(count)]


def restarts(log: Path) -> Iterator[Away]:
    """The restarts in a worker's log. Its clock is that of this machine."""
    stops = stopped = 0.0
    for line in log.read_text(errors="replace").splitlines():
        stamp = STAMP.match(line)
        if stamp is None:
            continue
        at = datetime.strptime(stamp.group(1), "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
        if STOPS in line:
            stops = at
        elif STOPPED in line:
            stopped = at
        elif STARTED in line and stopped:
            yield Away(stops, stopped, at)
            stopped = 0.0


def told(command: Sequence[str]) -> tuple[float, float, dict[str, float]]:
    """Run the roll: begun, ended, and the seconds from one word of it to the next, by kind of
    step.
    """
    began = last = time.time()
    steps: dict[str, float] = defaultdict(float)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            now = time.time()
            steps[kind(line)] += now - last
            last = now
    assert process.returncode == 0, process.returncode
    return began, time.time(), steps


def kind(line: str) -> str:
    """What kind of step a line tells of."""
    found = next(
        (
            word
            for word in ("set exactly", "restart", "is back", "is healthy", "verify that")
            if word in line
        ),
        "",
    )
    names = {
        "set exactly": "change",
        "restart": "restart",
        "is back": "rejoin",
        "is healthy": "gate",
        "verify that": "modes",
    }
    return names.get(found, "rest")


def records(bootstrap: str) -> tuple[float, ...]:
    """When each committed record was written, in seconds since the epoch; up to those that are
    there now.
    """
    client = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "isolation.level": "read_committed",
    }
    consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
    times, place = [], TopicPartition(TOPIC, 0, 0)
    end = consumer.get_watermark_offsets(place, timeout=30)[1]
    consumer.assign([place])
    while True:
        for message in consumer.consume(10_000, timeout=1):
            error = message.error()
            if error is None:
                times.append(message.timestamp()[1] / 1000)
            if message.offset() >= end - 1 or (error and error.code() == KafkaError._PARTITION_EOF):
                consumer.close()
                return tuple(times)


def writes(bootstrap: str) -> bool:
    """Whether the connector writes."""
    if TOPIC not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics:
        return False
    return bool(records(bootstrap))


def measure(workers: int) -> Rollout:
    """A sandbox with a connector, rolled out."""
    sandbox = cluster.up(cluster.SandboxSpec(name=NAME, workers=workers))
    try:
        config = {
            "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
            "topic": TOPIC,
            "tasks.max": "1",
            "throughput": str(RATE),
            "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": "100",
        }
        httpx.put(
            f"{sandbox.rest_urls[0]}/connectors/rollout/config", json=config, timeout=60
        ).raise_for_status()
        while not writes(sandbox.bootstrap_servers):
            time.sleep(0.2)
        time.sleep(3)
        logs = [sandbox.layout.log(worker.name) for worker in sandbox.group.workers]
        command = [
            sys.executable,
            "-m",
            "connectctl.cli",
            "--context",
            f"sandbox-{NAME}",
            "upgrade",
            "apply",
            "--yes",
        ]
        began, ended, steps = told(command)
        time.sleep(2)
        away = sorted((one for log in logs for one in restarts(log)), key=lambda one: one.stops)
        assert len(away) == 2 * workers, away
        return Rollout(began, ended, steps, tuple(away), records(sandbox.bootstrap_servers))
    finally:
        cluster.down(NAME)


def drawn(rates: Sequence[float]) -> str:
    """Records per second as a line of signs."""
    most = max(rates, default=0) or 1
    return "".join(SIGNS[round(rate / most * (len(SIGNS) - 1))] for rate in rates)


def marked(roll: Rollout) -> str:
    """Under the line: where a worker was away."""
    count = len(roll.rates())
    signs = [" "] * count
    for one in roll.away:
        first, last = (int((at - roll.began) / SIGN) for at in (one.stops, one.started))
        for n in range(max(0, first), min(count, last + 1)):
            signs[n] = "x"
    return "".join(signs)


def svg(roll: Rollout) -> str:
    """The same as a picture."""
    rates, height, width = roll.rates(), 160, 8
    most = max(rates, default=0) or 1
    points = " ".join(
        f"{n * width},{height - rate / most * (height - 20):.0f}" for n, rate in enumerate(rates)
    )
    bars = "".join(
        f'<rect x="{(one.stops - roll.began) / SIGN * width:.0f}" y="0" height="{height}" '
        f'fill="#ddd" width="{(one.started - one.stops) / SIGN * width:.0f}"/>'
        for one in roll.away
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -20 {len(rates) * width} '
        f'{height + 40}">{bars}<polyline fill="none" stroke="#06c" stroke-width="2" '
        f'points="{points}"/><text x="0" y="-6" font-size="12">records per second, at most '
        f'{most:.0f}; grey: a worker is away</text><text x="0" y="{height + 16}" '
        f'font-size="12">{roll.ended - roll.began:.0f} s</text></svg>\n'
    )


def report(workers: int, roll: Rollout) -> None:
    """Print one roll."""
    took = roll.ended - roll.began
    stops = sum(one.stopped - one.stops for one in roll.away) / len(roll.away)
    starts = sum(one.started - one.stopped for one in roll.away) / len(roll.away)
    print(
        f"{workers} workers: {took:.1f} s, floor {roll.floor:.1f} s ({len(roll.away)} restarts, "
        f"on average {stops:.1f} s to stop and {starts:.1f} s to start), {roll.ratio:.2f} ×"
    )
    print(
        "  "
        + ", ".join(
            f"{name} {seconds:.1f} s"
            for name, seconds in sorted(roll.steps.items(), key=lambda step: -step[1])
        )
    )
    rates = roll.rates()
    print(
        f"  records per second, median {sorted(rates)[len(rates) // 2]:.0f}, at most "
        f"{max(rates):.0f}:"
    )
    print(f"  |{drawn(rates)}|\n  |{marked(roll)}| x: a worker is away", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--svg", type=Path, help="a picture of the last roll")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs", flush=True)
    slow = []
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        for workers in map(int, given.workers.split(",")):
            roll = measure(workers)
            report(workers, roll)
            if given.svg:
                given.svg.write_text(svg(roll))
            if roll.ratio > LIMIT:
                slow.append(
                    f"{workers} workers: {roll.ratio:.2f} × the floor, and at most {LIMIT} × is "
                    "wanted"
                )
    sys.exit("\n".join(slow) or 0)


if __name__ == "__main__":
    main()
