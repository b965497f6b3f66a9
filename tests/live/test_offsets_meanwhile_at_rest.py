"""Plans on a source that its workers have stopped, beside what somebody commits all the same:
nothing twice or lost.

Somebody is a worker of a release before 3.3, which knows no dedicated topic and no transactional
id; or a task that did not hear of the stop. Migration 0008 has no row of a source that runs: on
workers from 3.5 on it commits to the dedicated topic, which is not stale then, and older ones
cannot stop it. ``-m 'slow or not slow' -s`` runs every cell, and prints the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.meanwhiletable import MeanwhileTable, printed_table
from live.real import Ran
from live.runningsource import Lines, at_the_answer, broken_off, file_lines

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NUMBER = re.compile(r"\d+ source partitions?|open transaction")


def stale(lines: Lines) -> None:
    """As an older release leaves it: its dedicated topic is behind the global one."""
    lines.merge("dedicated")
    lines.merge("global")
    lines.commit()
    lines.stop()
    lines.configure(lines.own)


def renamed(lines: Lines) -> None:
    """The connector goes on under the name to which its offsets were copied."""
    config = {name: value for name, value in lines.config().items() if name != "name"}
    lines.name = f"{lines.data}-renamed"
    lines.rest.create(lines.name, config)


@dataclass(frozen=True)
class Row:
    """A plan; ``start`` is how the source goes on after it, ``again`` how the plan is carried out
    once it was refused.

    ``old``: a worker of an older release commits meanwhile.
    """

    words: Callable[[Lines], Sequence[str]]
    prepare: Callable[[Lines], None]
    start: Callable[[Lines], None] = Lines.resume
    again: Callable[[Row, Lines], Ran] = lambda row, lines: lines.asked(
        "runs", "resume", lines.run()
    )
    old: bool = True

    def act(self, lines: Lines) -> Ran:
        return lines.asked(*self.words(lines))

    def commit(self, lines: Lines) -> None:
        if self.old:
            lines.older_worker.commits()
        else:
            lines.zombie.commits()


ROWS = {
    "0008 stale=merge": Row(
        lambda lines: lines.words_of_migration("stale-offsets-topics", "stale=merge"), stale
    ),
    "0008 stale=unset": Row(
        lambda lines: lines.words_of_migration("stale-offsets-topics", "stale=unset"), stale
    ),
    "copy": Row(
        lambda lines: ("offsets", "copy", lines.data, f"{lines.data}-renamed"),
        Lines.stop,
        renamed,
        Row.act,
        old=False,
    ),
}


def between_plan_and_answer(lines: Lines, row: Row) -> Ran:
    with at_the_answer(lambda: row.commit(lines)):
        return row.act(lines)


def a_zombie_over_the_write(lines: Lines, row: Row) -> Ran:
    """Its transaction is open while offsets are written, and is committed afterwards."""
    with at_the_answer(lines.zombie.begin):
        ran = row.act(lines)
    lines.zombie.commit()
    return ran


def between_interruption_and_resume(lines: Lines, row: Row) -> Ran:
    with broken_off():
        broken = row.act(lines)
    assert broken.code in (5, 7), broken
    row.commit(lines)
    return lines.asked("runs", "resume", lines.run())


def between_run_and_undo(lines: Lines, row: Row) -> Ran:
    done = row.act(lines)
    assert done.code == 0, done
    run = lines.run()
    row.start(lines)
    lines.commit()
    return lines.asked("offsets", "undo", run, "--stop")


COLUMNS: dict[str, Callable[[Lines, Row], Ran]] = {
    "plan to answer": between_plan_and_answer,
    "zombie over the write": a_zombie_over_the_write,
    "interruption to resume": between_interruption_and_resume,
    "run to undo": between_run_and_undo,
}
PLAN, ZOMBIE, RESUME, UNDO = COLUMNS
REFUSED = {("0008 stale=merge", PLAN), *(("copy", column) for column in COLUMNS)}
"""The cells that are refused, or where an open transaction hides the offsets of the source from a
copy.
"""
CELLS = [pytest.param(row, column, marks=pytest.mark.slow) for row in ROWS for column in COLUMNS]


@pytest.fixture(scope="module")
def table() -> Iterator[MeanwhileTable]:
    with printed_table(ROWS, COLUMNS) as found:
        yield found


@pytest.fixture
def lines(cluster: Sandbox, tmp_path: Path) -> Iterator[Lines]:
    with file_lines(cluster, tmp_path) as found:
        try:
            yield found
        finally:
            found.rest.delete(found.name)


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_what_is_committed_beside_a_stopped_source_is_neither_lost_nor_written_twice(
    lines: Lines, table: MeanwhileTable, name: str, column: str
) -> None:
    row = ROWS[name]
    row.prepare(lines)
    ran = COLUMNS[column](lines, row)
    refused = (name, column) in REFUSED
    assert ran.code in ((1, 4, 7) if refused else (0,)), ran
    number = NUMBER.search(ran.err) if refused else None
    assert bool(number) == refused, ran
    if refused and column != UNDO:
        again = row.again(row, lines)
        assert again.code == 0, again
    if column != UNDO:
        row.start(lines)
    twice = lines.twice()
    table.tell(name, column, f"{f'refused: {number[0]}; then ' if number else ''}{twice} twice")
    assert twice == 0, ran
