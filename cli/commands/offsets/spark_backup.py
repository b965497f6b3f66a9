"""A backup of big offsets topics: lines streamed from Spark, or a directory of part files that its tasks write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TextIO

from connectctl.cli.commands.offsets.execution import engine_of
from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.jobs.offsets_engine import Spark
from connectctl.ops.operations.connectors.observe import is_glob, matching_names
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.sink_offsets.backup_file import group_lines

GROUPS_PART = "part-groups.jsonl"
"""The file of a directory's backup that has what sinks committed."""


def backup(session: Session, names: tuple[str, ...], out: Path) -> bool:
    """Save the offsets of ``names``, of all connectors for none, if it is Spark that reads them; says whether it did."""
    sources, group, _ = sources_of(session, PATIENCE)
    engine = engine_of(session, sources)
    if not isinstance(engine, Spark):
        if out.is_dir():
            raise BadInput(f"{out} is a directory", next_step="Name a file, or give --engine spark.")
        return False
    if any(map(is_glob, names)):  # the topics are Spark's to read, so that a glob means what is configured
        names = tuple(dict.fromkeys(matching_names(sorted(sources.facts(group.id).configured or {}), names)))
    sinks = [sink for sink in _sinks(sources, group.id) if not names or sink.name in names]
    groups = [line + "\n" for line in lines_of_sinks(session, sinks, named=bool(names))]
    with engine.backup(sources, names) as lines:
        if out.is_dir():
            if any(out.iterdir()):
                raise BadInput(f"{out} is not empty", next_step="Name an empty directory or a file.")
            lines.write.mode("append").text(str(out.absolute()))
            save(groups, out / GROUPS_PART)
            terminal.note(f"Part files in {out}")
            return True
        found = (row.value + "\n" for row in lines.toLocalIterator(prefetchPartitions=True))
        count = save(chain(_some(found, () if groups else names), groups), out)
    if str(out) != "-":
        terminal.note(f"{count} records in {out}")
    return True


def _sinks(sources: Sources, group_id: str) -> Iterable[ConfiguredConnector]:
    configured = sources.facts(group_id).configured or {}
    return (connector for _, connector in sorted(configured.items()) if connector.looks_like == "sink")


def lines_of_sinks(session: Session, sinks: Sequence[ConfiguredConnector], *, named: bool) -> Iterator[str]:
    """What the groups of ``sinks`` have committed, as lines of a backup.

    Raises for a group that cannot be read where its connector was ``named``; else that is a warning.
    """

    def failed(error: ConnectctlError) -> None:
        if named:
            raise error
        terminal.note(f"warning: not in the backup: {error}", style="yellow")

    return group_lines(lambda: session.group_offsets, sinks, failed)


def _some(lines: Iterator[str], names: tuple[str, ...]) -> Iterator[str]:
    """``lines``. Raises ``BadInput`` where there are none of the connectors that were named: a name may be misspelled."""
    first = next(lines, None)
    if first is None and names:
        raise BadInput(f"Source offsets not found: {' and '.join(names)}", next_step="See connectctl offsets show.")
    if first is not None:
        yield first
    yield from lines


def save(lines: Iterable[str], out: Path) -> int:
    """Write ``lines``, each or thousands of them in a text, to ``out``, which is there whole or not at all, or to standard
    output for ``-``; gives how many.
    """
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
    for some in lines:
        file.write(some)
        number += some.count("\n")
    return number
