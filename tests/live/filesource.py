"""A FileStreamSource whose file grows all the while, and what readers find of it afterwards."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, TopicPartition
from live.real import FILE_SOURCE, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

PAUSE = 0.1
"""Seconds between two lines: each is a transaction of the worker that reads it."""


class Writer:
    """Appends a numbered line to a file again and again, until it is told to stop. ``count`` lines
    are in the file.
    """

    def __init__(self, path: Path):
        self.count = 0
        self._path = path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._path.open("a") as file:
            while not self._stop.wait(PAUSE):
                file.write(f"line {self.count:08}\n")
                file.flush()
                self.count += 1

    def stop(self) -> int:
        """Stop, and give the number of lines."""
        self._stop.set()
        self._thread.join()
        return self.count


@contextmanager
def growing(sandbox: Sandbox, name: str, path: Path) -> Iterator[Writer]:
    """A connector called like its topic that reads a file which grows until the end."""
    path.touch()
    config = {"connector.class": FILE_SOURCE, "topic": name, "file": str(path), "tasks.max": "1"}
    rest = workers(sandbox)
    assert rest.call("PUT", f"/connectors/{name}/config", config).status_code == 201
    eventually(lambda: rest.call("GET", f"/connectors/{name}/status").status_code == 200)
    writer = Writer(path)
    try:
        yield writer
    finally:
        writer.stop()
        workers(sandbox).delete(name)


@contextmanager
def reading(sandbox: Sandbox, topic: str) -> Iterator[Callable[[], Counter[int]]]:
    """A reader of the committed lines in a topic of one partition, which reads on to the end at
    each call.

    It returns the numbers of all lines so far, and how often each is there.
    """
    client = {
        "bootstrap.servers": sandbox.bootstrap_servers,
        "group.id": f"{topic}-readers",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    consumer, numbers = Consumer(client), Counter[int]()
    consumer.assign([TopicPartition(topic, 0, 0)])
    ended = False

    def read() -> Counter[int]:
        nonlocal ended
        late = time.monotonic() + 600
        while time.monotonic() < late:
            messages = consumer.consume(1000, timeout=0.1)
            for message in messages:
                error = message.error()
                if error is None:
                    numbers[int(str(json.loads(message.value())).split()[1])] += 1
                ended = error is not None and error.code() == KafkaError._PARTITION_EOF
            if ended:  # which is told once for each end
                break
        return numbers

    try:
        yield read
    finally:
        consumer.close()


def all_there(
    sandbox: Sandbox, topic: str, count: int, meanwhile: Callable[[], None] = lambda: None
) -> Counter[int]:
    """The lines, once each of the first ``count`` is there; ``meanwhile`` is called until then."""
    with reading(sandbox, topic) as read:

        def look() -> Counter[int] | None:
            numbers = read()
            if all(n in numbers for n in range(count)):
                return numbers
            meanwhile()
            return None

        numbers: Counter[int] = eventually(look)
        return numbers


def written_on(
    sandbox: Sandbox, topic: str, writer: Writer, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """The cluster serves: a line that is written now reaches the topic."""
    now = writer.count + 1
    eventually(lambda: writer.count > now)
    all_there(sandbox, topic, now, meanwhile)
