"""Task processes for the campaign: forked from one that has all modules loaded, each a process to be killed or stopped.

Reads a task per line of its input, and reports per line of its output. When its input ends, all of its processes end.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.delivery_settings import Boundary
from connectctl.ops.task_runtime.spi.transaction_batch import TaskStats
from connectctl.ops.task_runtime.task import offset_store
from connectctl.ops.task_runtime.task.columnar_producer import ColumnarProducer
from connectctl.ops.task_runtime.task.exactly_once_task import ExactlyOnceTask
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.offset_store import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.transactional_producer import TransactionalProducer
from fakes import silentadmin

SOCKET_TIMEOUT_MS = 1500


@dataclass(frozen=True)
class Attempt:
    """One attempt of one task. ``generation`` counts for as long as the file ``generations`` says no other."""

    bootstrap: str
    group: str
    connector: str
    topic: str
    offsets: str
    task: int
    sources: Sequence[int]
    generation: int
    generations: str
    seed: int
    timeout_ms: int
    boundary: str = "poll"
    strict: bool = False
    hesitation: float = 0.0
    """Seconds to wait at most between initialisation, reading and sending."""
    silent: bool = False
    """Every other question for ends is answered with no offset, as of leaders that have just died."""
    believes: bool = False
    """What comes as an end is taken for one."""


class Counting(SourceTask):
    """0, 1, 2 … of each of its sources, with the source as the key; a few of one source at a time."""

    def start(self, configs: Mapping[str, str]) -> None:
        self._topic = configs["topic"]
        self._chance = random.Random(int(configs["seed"]))
        self._next = {n: self._stored(n) for n in json.loads(configs["sources"])}

    def _stored(self, source: int) -> int:
        return int((self.context.offsets.offset({"source": source}) or {"next": 0})["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        time.sleep(self._chance.uniform(0.0, 0.03))
        records: list[SourceRecord] = []
        for source in self._chance.sample(sorted(self._next), self._chance.randint(0, len(self._next))):
            start = self._next[source]
            self._next[source] = start + self._chance.randint(1, 40)
            records += [
                SourceRecord({"source": source}, {"next": n + 1}, self._topic, n, key=str(source))
                for n in range(start, self._next[source])
            ]
        return records or None


class Told(TransactionalProducer):
    """librdkafka's producer, which tells of its first commit, and may be slow to begin."""

    hesitate: Callable[[], None]
    first = True

    def initialise(self, patience: float) -> None:
        super().initialise(patience)
        self.hesitate()

    def begin(self) -> None:
        if self.first:
            self.hesitate()
        super().begin()

    def commit(self, patience: float) -> None:
        super().commit(patience)
        if self.first:
            self.first = False
            report("commits")


class ToldBatches(Told, ColumnarProducer):
    """The same of the producer that writes whole batches."""


class Reported(CommittedOffsets):
    """Tells how far it has read, and what it found."""

    def refresh(self, patience: float) -> None:
        super().refresh(patience)
        known = {key.decode(): (self.value(key) or b"").decode() for key in sorted(self.known())}
        report("reads", to={str(p): n for p, n in self._positions.items()}, known=known)


class Telling(list[str]):
    """Doubts, each told as it comes: their owner may be killed before its end."""

    def append(self, doubt: str, /) -> None:
        super().append(doubt)
        report("doubt", why=doubt)


def report(what: str, **more: Any) -> None:
    """One line, in one piece, for the campaign."""
    os.write(1, json.dumps({"pid": os.getpid(), "what": what, **more}).encode() + b"\n")


def run(attempt: Attempt, stop: Sequence[int]) -> None:
    """The attempt, to its end, or until ``stop`` has something."""
    faulthandler.register(signal.SIGUSR1)
    chance = random.Random(attempt.seed)
    if attempt.silent:
        silentadmin.install()
    if attempt.believes:
        vars(offset_store)["end_offsets"] = silentadmin.believed
    kafka = Kafka({"bootstrap.servers": attempt.bootstrap}, timeout=30)

    kind = chance.choice([Told, ToldBatches])  # the attempts of a task meet each other's

    def open_producer() -> Told:
        properties = {"socket.timeout.ms": SOCKET_TIMEOUT_MS, "linger.ms": 2}
        id_ = task_id(attempt.group, attempt.connector, attempt.task)
        handle = kind(kafka, id_, timeout_ms=attempt.timeout_ms, properties=properties)
        handle.hesitate = lambda: time.sleep(chance.uniform(0, attempt.hesitation))
        return handle

    def stale() -> str | None:
        newest = int(Path(attempt.generations).read_text())
        return None if newest == attempt.generation else f"generation {newest} is newer than {attempt.generation}"

    configs = {"topic": attempt.topic, "seed": str(attempt.seed), "sources": json.dumps(attempt.sources)}
    supply = PolledSource(
        Counting,
        attempt.connector,
        configs,
        lambda: Boundaries(Boundary(attempt.boundary), interval=0.2),
        converters({}),
        attempt.offsets,
    )
    kernel = ExactlyOnceTask(
        open_producer,
        SourceOffsetsLedger(attempt.offsets, OffsetStore(Reported(kafka, attempt.offsets, attempt.connector))),
        stale_because=stale,
        stopped=lambda: bool(stop),
        patience=120.0,
        strict=attempt.strict,
        stats=TaskStats(doubts=Telling()),
    )
    try:
        how, why = kernel.run(supply).reason.value, None
    except ConnectctlError as e:
        how, why = "failed", f"{e.code}: {e}"
    report("ended", how=how, why=why)


def _stopped() -> list[int]:
    """Gets the number of a SIGTERM when that comes."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    return stop


def main() -> None:
    """Fork an attempt for each line, until there is none."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number, line in enumerate(sys.stdin, 1):
        if os.fork() == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                # Before anybody knows of it: who is told to stop at once is to stop, and not to die without a word.
                stop = _stopped()
                report("begins", number=number)
                run(Attempt(**json.loads(line)), stop)
            except BaseException as e:  # noqa: BLE001  # whatever it was, the campaign is to hear of it
                with suppress(BaseException):
                    report("ended", how="failed", why=repr(e))
            finally:
                os._exit(0)
    os.killpg(0, signal.SIGKILL)


def line_of(attempt: Attempt) -> str:
    """``attempt`` as ``main`` reads it."""
    return json.dumps(asdict(attempt)) + "\n"


if __name__ == "__main__":
    main()
