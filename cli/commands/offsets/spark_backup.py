"""Backup of big offsets topics: lines streamed from Spark, or a directory of part files that its
tasks write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.ops.config import whole_file
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.finding import counted
from connectctl.ops.jobs.offsets_engine import Spark
from connectctl.ops.operations.connectors.observe import is_glob, matching_names
from connectctl.ops.operations.offsets.backup_seal import SEAL_LINES, seal_directory, sealed
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.sources import PATIENCE, sources_of
from connectctl.ops.operations.sink_offsets.steps import group_lines

GROUPS_PART = "part-groups.jsonl"
"""The file with the committed offsets of sinks, in a directory."""


def backup(session: Session, names: tuple[str, ...], out: Path) -> bool:
    """Save the offsets of ``names``, or of all connectors, if Spark reads them; returns whether it
    did.
    """
    sources, group, _ = sources_of(session, PATIENCE)
    engine = session.offsets_engine(sources.kafka, sources.offsets_topic)
    if not isinstance(engine, Spark):
        if out.is_dir():
            raise BadInput(
                f"{out} is a directory", next_step="Name a file, or give --engine spark."
            )
        return False
    # Spark reads the topics later, so a glob matches configured connectors
    if any(map(is_glob, names)):
        names = tuple(
            dict.fromkeys(matching_names(sorted(sources.facts(group.id).configured or {}), names))
        )
    sinks = [sink for sink in _sinks(sources, group.id) if not names or sink.name in names]
    groups = [line + "\n" for line in lines_of_sinks(session, sinks, named=bool(names))]
    with engine.backup(sources, names) as lines:
        if out.is_dir():
            if any(out.iterdir()):
                raise BadInput(
                    f"{out} is not empty", next_step="Name an empty directory or a file."
                )
            lines.write.mode("append").text(str(out.absolute()))
            save(groups, out / GROUPS_PART)
            seal_directory(out)
            terminal.note(f"Part files in {out}")
            return True
        found = (row.value + "\n" for row in lines.toLocalIterator(prefetchPartitions=True))
        count = (
            save(sealed(chain(_not_empty(found, () if groups else names), groups)), out)
            - SEAL_LINES
        )
    if str(out) != "-":
        terminal.note(f"{counted(count, 'record')} in {out}")
    return True


def _sinks(sources: Sources, group_id: str) -> Iterable[ConfiguredConnector]:
    configured = sources.facts(group_id).configured or {}
    return (
        connector for _, connector in sorted(configured.items()) if connector.looks_like == "sink"
    )


def lines_of_sinks(
    session: Session, sinks: Sequence[ConfiguredConnector], *, named: bool
) -> Iterator[str]:
    """Yield the committed offsets of the groups of ``sinks``, as lines of a backup.

    Raises for a group that cannot be read if its connector was ``named``; otherwise prints a
    warning.
    """

    def failed(error: ConnectctlError) -> None:
        if named:
            raise error
        terminal.note(f"warning: not in the backup: {error}", style="yellow")

    return group_lines(lambda: session.group_offsets, sinks, failed)


def _not_empty(lines: Iterator[str], names: tuple[str, ...]) -> Iterator[str]:
    """Yield ``lines``. Raises ``BadInput`` if named connectors have none: a name may be
    misspelled.
    """
    first = next(lines, None)
    if first is None and names:
        raise BadInput(
            f"Source offsets not found: {' and '.join(names)}",
            next_step="See connectctl offsets show.",
        )
    if first is not None:
        yield first
    yield from lines


def save(lines: Iterable[str], out: Path) -> int:
    """Write ``lines``, texts of one or thousands of lines, to ``out`` atomically, or to standard
    output for ``-``. Returns the count_ of lines.
    """
    if str(out) == "-":
        return _write(lines, terminal.standard_output().write)
    try:
        with whole_file.output(out, private=True) as file:
            count = _write(lines, lambda text: file.write(text.encode()))
    except OSError as e:
        raise ConnectctlError(f"{out} cannot be written", why=e.strerror) from e
    return count


def _write(lines: Iterable[str], write: Callable[[str], object]) -> int:
    count = 0
    for text in lines:
        write(text)
        count += text.count("\n")
    return count
