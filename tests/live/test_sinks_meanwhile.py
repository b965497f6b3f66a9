"""Every change of a sink's offsets, beside what the sink delivers meanwhile: nothing twice or lost
but what was asked for.

``pytest tests/live/test_sinks_meanwhile.py -m 'slow or not slow' -s`` runs every cell, and prints
the table. Sinks have no transactional ids: what keeps a task that is no more from committing is
that a group with members is not changed.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer
from live.filesink import entries, sink
from live.meanwhiletable import MeanwhileTable, printed_table
from live.offsetchanges import ctl, journal, stopped
from live.real import Ran, Workers, connectctl, connector, create_topic, eventually, write
from live.runningsource import MORE, after_the_stop, at_the_answer, at_the_stop, broken_off

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NUMBER = re.compile(r"\d+ partitions? of the group")


class Delivered:
    """A FileStreamSink with the numbered records of a topic; ``count`` of them are delivered to its
    file.
    """

    def __init__(self, cluster: Sandbox, name: str, file: Path, rest: Workers):
        self.cluster, self.name, self.file, self.rest, self.count = cluster, name, file, rest, 0
        self.zombies: list[Consumer] = []

    def deliver(self) -> None:
        """Write some records, and wait until the sink has them; it commits their offsets when it
        stops, at the latest.
        """
        records = [(None, f"line {n}") for n in range(self.count, self.count + MORE)]
        write(self.cluster.bootstrap_servers, self.name, *records, partition=0)
        self.count += MORE
        eventually(lambda: f"line {self.count - 1}" in self.lines())

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def twice(self) -> int:
        """How many lines are in the file more than once, once it has all of them; none may be
        missing.
        """
        self.rest.call("PUT", f"/connectors/{self.name}/resume")
        self.deliver()
        assert set(self.lines()) == {f"line {n}" for n in range(self.count)}
        return len(self.lines()) - self.count

    def join(self) -> None:
        """A task that did not hear of the stop is in the group."""
        options = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "group.id": f"connect-{self.name}",
        }
        zombie = Consumer(options | {"enable.auto.commit": False})
        self.zombies.append(zombie)
        zombie.subscribe([self.name])

        def assigned() -> bool:
            zombie.poll(0.1)
            return bool(zombie.assignment())

        eventually(assigned)

    def leave(self) -> None:
        while self.zombies:
            self.zombies.pop().close()

    def asked(self, *args: str, stdin: str | None = None) -> Ran:
        return connectctl(
            "--context", f"sandbox-{self.cluster.spec.name}", *args, "--yes", stdin=stdin
        )


@dataclass(frozen=True)
class Row:
    """A change; ``given`` is the record at which a person wants the sink to start."""

    words: Sequence[str]
    given: int

    def act(self, sink: Delivered) -> Ran:
        backup = sink.file.with_name("backup.jsonl")
        words = (
            "offsets",
            self.words[0],
            sink.name,
            *(word.format(backup=backup) for word in self.words[1:]),
        )
        return sink.asked(*words, "--stop", stdin=entries(sink.name, self.given))


ROWS = {
    "set": Row(("set", "-f", "-"), 20),
    "set by the coordinator": Row(("set", "-f", "-", "--via", "kafka"), 20),
    "reset": Row(("reset",), 0),
    "restore": Row(("restore", "-f", "{backup}"), MORE),
}


def between_plan_and_answer(sink: Delivered, row: Row) -> Ran:
    with at_the_answer(sink.deliver):
        return row.act(sink)


def between_answer_and_stop(sink: Delivered, row: Row) -> Ran:
    with at_the_stop(sink.deliver):
        return row.act(sink)


def a_zombie_in_the_group(sink: Delivered, row: Row) -> Ran:
    """Nothing is written until it has left."""
    with after_the_stop(sink.join):
        refused = row.act(sink)
    assert refused.code == 7, refused
    assert f"The group connect-{sink.name} has members" in refused.err
    sink.leave()
    return sink.asked("runs", "resume", journal().runs()[0].id)


def between_interruption_and_resume(sink: Delivered, row: Row) -> Ran:
    with broken_off():
        broken = row.act(sink)
    assert broken.code in (5, 7), broken
    sink.rest.call("PUT", f"/connectors/{sink.name}/resume")
    sink.deliver()
    return sink.asked("runs", "resume", journal().runs()[0].id)


def between_run_and_undo(sink: Delivered, row: Row) -> Ran:
    done = row.act(sink)
    assert done.code == 0, done
    sink.deliver()
    return sink.asked("offsets", "undo", journal().runs()[0].id, "--stop")


COLUMNS: dict[str, Callable[[Delivered, Row], Ran]] = {
    "plan to answer": between_plan_and_answer,
    "answer to stop": between_answer_and_stop,
    "zombie in the group": a_zombie_in_the_group,
    "interruption to resume": between_interruption_and_resume,
    "run to undo": between_run_and_undo,
}
UNDO = list(COLUMNS)[-1]
OFTEN = ("set", UNDO)
"""The cell that runs by default."""
CELLS = [
    pytest.param(row, column, marks=() if (row, column) == OFTEN else pytest.mark.slow)
    for row in ROWS
    for column in COLUMNS
]


@pytest.fixture(scope="module")
def table() -> Iterator[MeanwhileTable]:
    with printed_table(ROWS, COLUMNS) as found:
        yield found


@pytest.fixture
def delivered(cluster: Sandbox, tmp_path: Path) -> Iterator[Delivered]:
    """A sink that has been backed up after its first records, and has delivered more."""
    name, file = f"sink-{uuid.uuid4().hex[:8]}", tmp_path / "lines.txt"
    create_topic(cluster.bootstrap_servers, name, 1, "delete")
    with connector(cluster, name, sink(name, file)) as rest:
        found = Delivered(cluster, name, file, rest)
        found.deliver()
        stopped(cluster, name)
        file.with_name("backup.jsonl").write_text(ctl(cluster, "offsets", "backup", name).out)
        rest.call("PUT", f"/connectors/{name}/resume")
        found.deliver()
        try:
            yield found
        finally:
            found.leave()


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_what_a_sink_delivers_meanwhile_is_neither_lost_nor_delivered_again(
    delivered: Delivered, table: MeanwhileTable, name: str, column: str
) -> None:
    row = ROWS[name]
    again = delivered.count - row.given
    ran = COLUMNS[column](delivered, row)
    assert ran.code in ((4, 7) if column == UNDO else (0,)), ran
    number = NUMBER.search(ran.err) if ran.code else None
    assert bool(number) == (column == UNDO), ran
    if column != UNDO:
        again = delivered.count - row.given
    twice = delivered.twice() - again
    table.tell(
        name, column, f"refused: {number[0]}" if number else f"{twice} twice, {again} as asked"
    )
    assert twice == 0, ran
