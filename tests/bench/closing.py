"""KIP-275's story counted: four sink tasks, of which one keeps crashing, and the records that are
consumed again for it.

    python tests/bench/closing.py [--crashes 10] [--runs 3] [--plot docs/how-to/is-closing.svg]

One broker, a topic of eight partitions, four tasks that collect the records of each partition for
files of 5,000, in ``run``'s own sink loop and with its own members of a consumer group, on threads
instead of on Spark. One task raises in ``put`` whenever it has been given 2,500 records, writes
nothing of them, leaves, and is started again at once. After ten crashes it is well. It ends when
every record was put and none has to be put again.

The sides differ in ``pre_commit``: with ``is_closing`` it writes what it has when it is asked for
the last time before its partitions are taken, without it files are written when they are full, and
no offset before that can be committed. On these two sides members are as in the proposal: without
an instance id, so that each crash and each return takes all partitions from all tasks. ``static``
is without ``is_closing``, but with members as ``run`` has them: a crash takes no other task's.

What is counted does not depend on the machine's speed, but somewhat on its order of events: medians
of runs in turns. Each run is checked: the files and what is collected in the end have every record
once.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

# beside this file
from benchbroker import DEADLINE, LOOK, broker, fill, in_turns  # type: ignore[import-not-found]
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.group.member import TaskMember
from connectctl.ops.task_runtime.group.stable_offsets import StableOffsets
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkRecord, SinkTask
from connectctl.ops.task_runtime.task.at_least_once import GroupCommits
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from svgplot import plot  # type: ignore[import-not-found]  # beside this file

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

NAME, SOURCE, PARTITIONS, TASKS, CRASHING = "closing", "in", 8, 4, 3
BYTES = {f"{what}.converter": "ByteArrayConverter" for what in ("key", "value", "header")}
WITH, WITHOUT, STATIC = "with is_closing", "without is_closing", "static, without is_closing"
PER_FILE, PER_CRASH = 5_000, 2_500
PATIENCE = 60.0
PACE = 0.2
"""Seconds that a ``put`` takes, so that tasks get ahead side by side."""
NOBODY = 255
SETTLED = 4.0
"""Seconds in which nothing has to be put again, at the end."""


class Crashed(Exception):
    """As the time-out of a store that cannot be reached."""


class DynamicSettings(ConsumerSettings):
    """Members without ``group.instance.id``, which no job can ask for with the classic protocol."""

    @property
    def dynamic(self) -> bool:
        return True


class EagerMember(TaskMember):
    """A member from which each rebalance takes all partitions, as a worker's were when the proposal
    was written.
    """

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        super()._assigned(SimpleNamespace(incremental_assign=consumer.assign), partitions)


@dataclass
class Story:
    """What all tasks of one run have done; ``again`` are records that were put before, by crashes
    up to then.
    """

    records: int
    crashes: int
    aware: bool
    again: int = 0
    of_others: int = 0
    """Those of ``again`` that a task had taken which did not crash."""
    told: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    files: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    """By partition, the offset behind the last record that is collected or written."""

    ended: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._had_by = [
            bytearray([NOBODY]) * (self.records // PARTITIONS) for _ in range(PARTITIONS)
        ]

    def put(self, task: int, records: Sequence[SinkRecord]) -> None:
        """``task`` was given ``records``."""
        with self._lock:
            for each in records:
                before, self._had_by[each.partition][each.offset] = (
                    self._had_by[each.partition][each.offset],
                    task,
                )
                self.again += before != NOBODY
                self.of_others += before not in {NOBODY, CRASHING}
                self.taken[each.partition] = each.offset + 1

    def crashed(self) -> None:
        """The task that crashes did."""
        with self._lock:
            self.crashes -= 1
            self.told.append((len(self.told), self.again))

    def write(self, partition: int, first: int, end: int) -> None:
        """A file is written; those that are written for the end of the run do not count."""
        with self._lock:
            if self.ended:
                return
            self.files.setdefault(partition, []).append((first, end))

    def dropped(self, partition: int, first: int) -> None:
        """What was collected of ``partition`` is gone."""
        with self._lock:
            self.taken[partition] = first

    @property
    def over(self) -> bool:
        """Whether every record was put, and none has to be put again."""
        with self._lock:
            return self.crashes == 0 and all(
                self.taken.get(p) == self.records // PARTITIONS for p in range(PARTITIONS)
            )

    def check(self, collected: Mapping[int, tuple[int, int]]) -> None:
        """The files and what is ``collected`` have every record once."""
        for partition in range(PARTITIONS):
            at = 0
            for first, end in [
                *self.files.get(partition, []),
                collected.get(partition, (None, None)),
            ]:
                if first is not None and end is not None:
                    assert first == at, f"partition {partition} has {first} behind {at}"
                    at = end
            assert at == self.records // PARTITIONS, f"partition {partition} ends at {at}"


class Files(SinkTask):
    """Collects the records of each partition for a file."""

    def __init__(self, story: Story, number: int):
        self._story, self._number = story, number
        self._left = PER_CRASH if number == CRASHING and story.crashes else None
        self._broken = False
        self.collected: dict[int, tuple[int, int]] = {}
        """By partition, the offsets of the file that is not written: the first, and the one behind
        the last.
        """
        self._written: dict[int, int] = {}

    def start(self, configs: Mapping[str, str]) -> None:
        """There is nothing to start."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        time.sleep(PACE if records else 0)
        self._story.put(self._number, records)
        for each in records:
            first, _ = self.collected.get(each.partition, (each.offset, 0))
            self.collected[each.partition] = (first, each.offset + 1)
            if each.offset + 1 - first == PER_FILE and self._left is None:
                self._write(each.partition)
                self.context.request_commit()
        if self._left is not None:
            self._left -= len(records)
            if self._left <= 0:
                self._broken = True
                raise Crashed

    def pre_commit(self, offsets: GroupOffsets) -> GroupOffsets:
        if self._broken:
            return {}
        if self._story.aware and self.context.is_closing():
            for at in offsets:
                self._write(at.partition)
        written = {at: self._written.get(at.partition) for at in offsets}
        return {at: GroupOffset(end) for at, end in written.items() if end is not None}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for at in partitions:
            self._written.pop(at.partition, None)
            if at.partition in self.collected:
                first, _ = self.collected.pop(at.partition)
                self._story.dropped(at.partition, first)

    def _write(self, partition: int) -> None:
        if partition in self.collected:
            first, end = self.collected.pop(partition)
            self._story.write(partition, first, end)
            self._written[partition] = end


class Attempts(threading.Thread):
    """One task, started again after each crash, until the story is over."""

    def __init__(self, story: Story, kafka: Kafka, settings: ConsumerSettings, number: int):
        super().__init__(daemon=True)
        self._story, self._kafka, self._settings, self._number = story, kafka, settings, number
        self.over = threading.Event()
        self.collected: dict[int, tuple[int, int]] = {}
        self.error: Exception | None = None

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self._attempt()
            except Crashed:
                self._story.crashed()
            except UnknownOutcome as e:  # as on Spark, where a new member follows
                print(f"  task {self._number} in doubt: {e}", file=sys.stderr)
                time.sleep(1)
            except Exception as e:  # noqa: BLE001  # told by who waits
                self.error = e
                return

    def _attempt(self) -> None:
        instance = f"{self._settings.group}-{self._number}"
        stable = StableOffsets(
            self._kafka, self._settings.group, (), lambda line, endless=False: None
        )
        kind = EagerMember if self._settings.dynamic else TaskMember
        member = kind(
            self._kafka,
            self._settings,
            [SOURCE],
            instance,
            stable,
            self.over.is_set,
            patience=PATIENCE,
        )
        tasks: list[Files] = []

        def opened() -> Files:
            tasks.append(Files(self._story, self._number))
            return tasks[-1]

        def over() -> bool:
            self.collected = dict(tasks[-1].collected) if tasks else {}
            return self.over.is_set()

        errors = RecordErrors(ErrorSettings(), NAME, self._number)
        worker = WorkerSinkTask(opened, {}, reading_converters(BYTES), errors, longest_poll=0.1)
        ledger = GroupLedger(lambda: member, PATIENCE)
        loop = AttemptLoop(
            lambda: GroupCommits(self._kafka, instance, timeout_ms=60_000),
            ledger,
            stopped=over,
            patience=PATIENCE,
        )
        with closing(ledger), closing(worker):
            loop.run(worker)


def measure(sandbox: Sandbox, side: str, records: int, crashes: int) -> Story:
    """One run of one side, by a group of its own."""
    kafka = Kafka({"bootstrap.servers": sandbox.bootstrap_servers}, timeout=PATIENCE)
    story = Story(records, crashes, side == WITH)
    kind = ConsumerSettings if side == STATIC else DynamicSettings
    settings = kind(f"{NAME}-{secrets.token_hex(4)}", properties={"heartbeat.interval.ms": "500"})
    tasks = [Attempts(story, kafka, settings, number) for number in range(TASKS)]
    for each in tasks:
        each.start()
    late = time.monotonic() + DEADLINE
    over = 0.0
    while over < SETTLED:  # a task that comes back may take partitions once more
        for each in tasks:
            if each.error is not None:
                raise each.error
        assert time.monotonic() < late, (
            f"not over after {DEADLINE:g} s: {story.crashes} crashes left, {story.taken}"
        )
        time.sleep(LOOK)
        over = over + LOOK if story.over else 0.0
    story.ended = True
    for each in tasks:
        each.over.set()
    for each in tasks:
        each.join()
    story.told.append((len(story.told), story.again))
    story.check({p: span for each in tasks for p, span in each.collected.items()})
    return story


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=240_000)
    parser.add_argument("--crashes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--plot", type=Path, metavar="FILE")
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {given.records:,} records, {given.crashes} crashes of one "
        f"of {TASKS} tasks",
        flush=True,
    )
    with broker(NAME) as sandbox:
        fill(sandbox.bootstrap_servers, SOURCE, PARTITIONS, given.records)
        found = in_turns(
            (WITH, WITHOUT, STATIC),
            given.runs,
            lambda side, _: measure(sandbox, side, given.records, given.crashes),
            lambda one: (
                f"{one.again:9,} records again, {one.of_others:9,} of tasks that did not crash"
            ),
            warm=False,
        )
    middle = {
        side: statistics.median_low(one.again for one in those) for side, those in found.items()
    }
    for side, again in middle.items():
        others = statistics.median_low(one.of_others for one in found[side])
        print(
            f"{side:26} {again:9,} records consumed again, {again / given.records:.2f} of all; "
            f"{others:9,} of other tasks"
        )
    if given.plot:
        lines = {
            s: next(one.told for one in found[s] if one.again == middle[s]) for s in (WITHOUT, WITH)
        }
        title = (
            "Records consumed again by four sink tasks of which one crashes "
            f"({given.records:,} in all)"
        )
        given.plot.write_text(plot(title, "crashes", lines))


if __name__ == "__main__":
    main()
