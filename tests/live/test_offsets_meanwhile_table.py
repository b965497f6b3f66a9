"""Every plan on a source that runs, beside what is committed meanwhile: nothing twice or lost, or
refused with the number.

``pytest tests/live/test_offsets_meanwhile_table.py -m 'slow or not slow' -s`` runs every cell, and
prints the table. ``tests/live/test_sinks_meanwhile.py`` has the rows of sinks,
``tests/live/test_run_takeover.py`` take-overs that are killed. Changes of tasks.max write no
offsets and stop nothing: the workers themselves start the tasks anew. A row shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.meanwhiletable import MeanwhileTable, printed_table
from live.offsetchanges import ctl
from live.real import Ran
from live.runningsource import (
    MORE,
    Lines,
    after_the_stop,
    at_the_answer,
    at_the_resume,
    at_the_stop,
    broken_off,
    file_lines,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("without_spark")]
AS_THE_WORKERS = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
NUMBER = re.compile(r"\d+ source partitions?")


# ----------------------------------------------------------------------------------------- the rows


@dataclass(frozen=True)
class Row:
    """A plan. ``given`` is the line at which a person wants the source to start, None for where it
    is.

    ``prepare`` is what was done earlier, and ``equal`` that nothing was committed since.
    """

    words: Callable[[Lines], Sequence[str]]
    prepare: Callable[[Lines], object] = lambda lines: None
    given: int | None = None
    stdin: Callable[[Lines], str] | None = None
    equal: bool = False
    undo: tuple[str, ...] = ("offsets", "undo", "{run}", "--stop")

    def act(self, lines: Lines, words: Sequence[str] = ()) -> Ran:
        return lines.asked(
            *(words or self.words(lines)), stdin=self.stdin(lines) if self.stdin else None
        )


def merge(into: str) -> Callable[[Lines], Sequence[str]]:
    return lambda lines: lines.words_of_merge(into)


def migrate(migration: str) -> Callable[[Lines], Sequence[str]]:
    return lambda lines: lines.words_of_migration(migration)


def change(verb: str, *words: str) -> Callable[[Lines], Sequence[str]]:
    return lambda lines: ("offsets", verb, lines.name, *words, "--stop")


def merged(lines: Lines) -> None:
    lines.merge("dedicated")


def merged_back(lines: Lines) -> None:
    merged(lines)
    lines.merge("global")


def moved(lines: Lines) -> None:
    lines.migrate("own-offsets-topic")


def moved_back(lines: Lines) -> None:
    moved(lines)
    lines.migrate("global-offsets-topic")


def restoring(lines: Lines) -> Sequence[str]:
    return change("restore", "-f", str(backup_of(lines)))(lines)


def backup_of(lines: Lines) -> Path:
    return lines.file.with_name("backup.jsonl")


def backed_up(lines: Lines) -> None:
    backup_of(lines).write_text(ctl(lines.cluster, "offsets", "backup", lines.name).out)


def undoing(lines: Lines) -> Sequence[str]:
    return ("offsets", "undo", lines.run(), "--stop")


def carrying(lines: Lines) -> Sequence[str]:
    """The file gets a second name, under which the connector goes on."""
    other = lines.file.with_name("other.txt")
    if not other.exists():
        other.hardlink_to(lines.file)
    return ("connectors", "patch", lines.name, f"file={other}", "--carry-offsets", "--wait")


def taking_over(lines: Lines) -> Sequence[str]:
    """A run of connectctl has the connector for a moment, and hands it back to its workers."""
    job = lines.file.with_name("job.yaml")
    config = {
        name: value for name, value in lines.config().items() if name != "name"
    } | AS_THE_WORKERS
    until = {"idle": "2s"}
    job.write_text(
        json.dumps(
            {"name": lines.name, "config": config, "spark": {"master": "local[2]"}, "until": until}
        )
    )
    return ("--timeout", "300", "run", str(job), "--take-over")


def downgrading(lines: Lines) -> Sequence[str]:
    """The merges of a hard downgrade alone, before its first worker is restarted."""
    words = ("--migration", "hard-downgrade-one-step")
    planned = ctl(lines.cluster, "upgrade", "plan", *words, "-o", "json").json["steps"]
    last = [step["description"] for step in planned].index(f"wait until {lines.name} is RUNNING")
    return ("upgrade", "apply", *words, "--by-hand-timeout", "600", "--pause-after", str(last + 1))


def at_line(lines: Lines) -> str:
    return lines.offsets(MORE)


ROWS = {
    "merge into dedicated": Row(merge("dedicated")),
    "merge into an equal topic": Row(merge("dedicated"), merged_back, equal=True),
    "merge into global": Row(merge("global"), merged),
    "0005 hard downgrade": Row(downgrading, merged, undo=("upgrade", "abort", "{run}")),
    "0006 own-offsets-topic": Row(migrate("own-offsets-topic"), moved_back),
    "0007 global-offsets-topic": Row(migrate("global-offsets-topic"), moved),
    "set": Row(change("set", "-f", "-"), given=MORE, stdin=at_line),
    "set through the workers": Row(
        change("set", "-f", "-", "--via", "rest"), given=MORE, stdin=at_line
    ),
    "reset": Row(change("reset"), given=0),
    "restore": Row(restoring, backed_up, given=MORE),
    "undo of 0006": Row(undoing, moved),
    "undo of 0007": Row(undoing, moved_back),
    "--carry-offsets": Row(carrying, undo=("runs", "undo", "{run}")),
    "run --take-over": Row(taking_over),
    "tasks.max": Row(lambda lines: ("connectors", "patch", lines.name, "tasks.max=2", "--wait")),
}


# -------------------------------------------------------------------------------------- the columns


def between_plan_and_answer(lines: Lines, row: Row) -> Ran:
    with at_the_answer(lines.commit):
        return row.act(lines)


def between_answer_and_stop(lines: Lines, row: Row) -> Ran:
    with at_the_stop(lines.commit):
        return row.act(lines)


def after_the_stop_by_a_zombie(lines: Lines, row: Row) -> Ran:
    with after_the_stop(lines.zombie.commits):
        return row.act(lines)


def after_the_write_by_a_zombie(lines: Lines, row: Row) -> Ran:
    """Its transaction is open while offsets are written, and is committed when the connector is
    started again.
    """
    with after_the_stop(lines.zombie.begin), at_the_resume(lines.zombie.commit):
        return row.act(lines)


def between_interruption_and_resume(lines: Lines, row: Row) -> Ran:
    words = row.words(lines)
    with broken_off():
        broken = row.act(lines, words)
    assert broken.code in (5, 7), broken
    run = lines.run()
    lines.resume()
    lines.commit()
    more = words[words.index("--by-hand-timeout") :] if "--by-hand-timeout" in words else ()
    return lines.asked("upgrade" if more else "runs", "resume", run, *more)


def between_run_and_undo(lines: Lines, row: Row) -> Ran:
    done = row.act(lines)
    assert done.code == 0, done
    run = lines.run()
    lines.runs()
    lines.again = 0 if row.given is None else lines.committed - row.given
    lines.commit()
    return lines.asked(*(word.format(run=run) for word in row.undo))


COLUMNS: dict[str, Callable[[Lines, Row], Ran]] = {
    "plan to answer": between_plan_and_answer,
    "answer to stop": between_answer_and_stop,
    "zombie after stop": after_the_stop_by_a_zombie,
    "zombie after write": after_the_write_by_a_zombie,
    "interruption to resume": between_interruption_and_resume,
    "run to undo": between_run_and_undo,
}
PLAN, STOP, STOPPED, WRITTEN, RESUME, UNDO = COLUMNS
NONE = {
    ("run --take-over", RESUME): "test_run_takeover.py kills it",
    ("run --take-over", UNDO): "has nothing to undo",
    **{("tasks.max", column): "stops and writes nothing" for column in COLUMNS if column != PLAN},
    **{(f"undo of {number}", UNDO): "is one" for number in ("0006", "0007")},
}
"""The cells that do not exist, and why."""
REFUSED = {(row, UNDO) for row in ("set", "set through the workers", "reset", "restore")}
"""The cells that are refused: an undo would set back what was committed since."""
BROKEN_OFF = {("set through the workers", WRITTEN), ("--carry-offsets", WRITTEN)}
"""The cells in which the open transaction hides the offsets, because workers fence later: the run
is resumed after it.
"""
OFTEN = {("merge into dedicated", WRITTEN), ("--carry-offsets", UNDO)}
"""The cells that run by default."""
CELLS = [
    pytest.param(row, column, marks=() if (row, column) in OFTEN else pytest.mark.slow)
    for row in ROWS
    for column in COLUMNS
    if (row, column) not in NONE
]


@pytest.fixture(scope="module")
def table() -> Iterator[MeanwhileTable]:
    with printed_table(ROWS, COLUMNS) as found:
        found.cells |= {cell: f"– ({why})" for cell, why in NONE.items()}
        yield found


@pytest.fixture
def lines(cluster: Sandbox, tmp_path: Path) -> Iterator[Lines]:
    with file_lines(cluster, tmp_path) as found:
        yield found


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_what_a_source_commits_meanwhile_is_neither_lost_nor_written_twice(
    lines: Lines, table: MeanwhileTable, name: str, column: str
) -> None:
    row = ROWS[name]
    row.prepare(lines)
    if not row.equal:
        lines.commit()
    ran = COLUMNS[column](lines, row)
    if (name, column) in BROKEN_OFF:
        assert ran.code in (6, 7), ran
        lines.zombie.commit()
        ran = lines.asked("runs", "resume", lines.run())
    assert ran.code == (4 if (name, column) in REFUSED else 0), ran
    number = NUMBER.search(ran.err) if ran.code else None
    assert bool(number) == bool(ran.code), ran
    if row.given is not None and column != UNDO:
        lines.again = lines.committed - row.given
    fenced = column == WRITTEN and (name, column) not in BROKEN_OFF
    assert "zombie" not in column or lines.zombie.outcome == ("fenced" if fenced else "committed")
    twice = lines.twice() - lines.again
    given = f", {lines.again} as asked" if lines.again else ""
    table.tell(name, column, f"refused: {number[0]}" if number else f"{twice} twice{given}")
    assert twice == 0, ran
