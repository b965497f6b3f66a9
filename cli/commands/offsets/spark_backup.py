"""A backup of big offsets topics: lines streamed from Spark, or a directory of part files that its tasks write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from connectctl.cli.commands.offsets.execution import engine_of
from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.output import terminal
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.jobs.offsets_engine import Spark

if TYPE_CHECKING:
    from connectctl.cli.session import Session


def backup(session: Session, names: tuple[str, ...], out: Path) -> bool:
    """Save the offsets of ``names``, of all connectors for none, if it is Spark that reads them; says whether it did."""
    sources, _, _ = sources_of(session, PATIENCE)
    engine = engine_of(session, sources)
    if not isinstance(engine, Spark):
        if out.is_dir():
            raise BadInput(f"{out} is a directory", next_step="Name a file, or give --engine spark.")
        return False
    with engine.backup(sources, names) as lines:
        if out.is_dir():
            if any(out.iterdir()):
                raise BadInput(f"{out} is not empty", next_step="Name an empty directory or a file.")
            lines.write.mode("append").text(str(out.absolute()))
            terminal.note(f"Part files in {out}")
            return True
        found = (row.value + "\n" for row in lines.toLocalIterator(prefetchPartitions=True))
        count = save(_some(found, names), out)
    if str(out) != "-":
        terminal.note(f"{count} records in {out}")
    return True


def _some(lines: Iterator[str], names: tuple[str, ...]) -> Iterator[str]:
    """``lines``. Raises ``BadInput`` where there are none of the connectors that were named: a name may be misspelled."""
    first = next(lines, None)
    if first is None and names:
        raise BadInput(
            f"There are no source offsets of {' and '.join(names)}", next_step="See connectctl offsets show."
        )
    if first is not None:
        yield first
    yield from lines


def save(lines: Iterable[str], out: Path) -> int:
    """Write ``lines`` to ``out``, which is there whole or not at all, or to standard output for ``-``; gives how many."""
    if str(out) == "-":
        return _write(lines, sys.stdout)
    draft = out.with_name(f".{out.name}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            count = _write(lines, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(out)
    except OSError as e:
        raise ConnectctlError(f"{out} cannot be written", why=e.strerror) from e
    return count


def _write(lines: Iterable[str], file: TextIO) -> int:
    number = 0
    for number, line in enumerate(lines, start=1):  # noqa: B007  # the count is what is asked for
        file.write(line)
    return number
