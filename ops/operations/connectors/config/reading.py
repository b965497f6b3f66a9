"""Reads connector configurations from files and directories, for every command that takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from connectctl.ops.config.connector_file import Contents, Given, read_contents
from connectctl.ops.config.documents import FORMS
from connectctl.ops.config.foreign_file import refuse_directory
from connectctl.ops.config.placeholders import assignments, environment_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import some_of

MOST_NAMED = 10
"""Resources and directories that a line names; the others are counted."""
Reveal = Callable[[str, Any], Any]
"""``ops.clients.secrets.reveal``: returns the secret of a reference; the name is for errors."""


@dataclass(frozen=True)
class Reading:
    """How files are read. ``values`` replace placeholders ``${NAME}``; None keeps them.

    ``recursive``: directories with their subdirectories. ``tell`` gets a line about what is
    ignored.
    """

    recursive: bool = False
    values: Mapping[str, str] | None = None
    tell: Callable[[str], object] = lambda line: None


DEFAULT_READING = Reading()


def reading_of(
    env_files: Sequence[Path] | None,
    assigned: Sequence[str] | None,
    tell: Callable[[str], object],
    *,
    recursive: bool = False,
) -> Reading:
    """Return how files are read. Values of ``NAME=VALUE`` come before those of ``env_files``; of two
    files, those of the last one. Raises ``BadInput``.
    """
    if not env_files and not assigned:
        return Reading(recursive, None, tell)
    values: dict[str, str] = {}
    for file in env_files or ():
        values |= environment_of(file)
    return Reading(recursive, values | assignments(assigned or ()), tell)


def read(
    paths: Sequence[Path], reveal: Reveal | None = None, reading: Reading = DEFAULT_READING
) -> list[Given]:
    """Return the configurations in ``paths``, ``-`` for standard input. Raises ``BadInput`` with
    file and line.

    A directory stands for its files with a suffix of ``FORMS``, in the order of their names. Files
    that have only other resources of Kubernetes are ignored beside others.

    ``reveal`` resolves references to secrets; None keeps them.
    """
    ignored: list[str] = []
    files = [file for path in paths for file in _files(path, reading, ignored)]
    names = [str(file) for file in files]
    if names.count("-") > 1:
        raise BadInput("Standard input can be read only once", next_step="Give -f - once.")
    contents = [_contents(file, reading) for file in files]
    found = [given for each in contents for given in each.given]
    if not found and (refused := next((each.refused for each in contents if each.refused), None)):
        raise refused
    ignored += (
        f"{name}: ignored {some_of(each.skipped, MOST_NAMED)}: no KafkaConnector"
        for name, each in zip(names, contents, strict=True)
        if each.skipped
    )
    for line in ignored:
        reading.tell(line)
    return found if reveal is None else [revealed(config, reveal) for config in found]


def _contents(file: Path, reading: Reading) -> Contents:
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as e:
        raise BadInput(f"{file} cannot be read", why=e.strerror) from e
    return read_contents(raw, str(file), reading.values)


def revealed(file_config: Given, reveal: Reveal) -> Given:
    """Return ``file_config`` with the secrets instead of their references. Raises ``BadInput`` with
    file and property.
    """
    secrets = {
        name: reveal(f"{file_config.file}: {name}", source)
        for name, source in file_config.secrets.items()
    }
    return replace(file_config, config={**file_config.config, **secrets})


def _files(path: Path, reading: Reading, lines: list[str]) -> Sequence[Path]:
    """Return the files that ``path`` stands for. ``lines`` receives what is ignored."""
    try:
        if str(path) == "-" or not path.is_dir():
            return [path]
        directories = list(_tree(path)) if reading.recursive else [path]
        found, ignored = [], []
        for directory in directories:
            entries = sorted(directory.iterdir())
            refuse_directory(frozenset(entry.name for entry in entries), str(directory))
            found += [e for e in entries if e.suffix.lower() in FORMS and e.is_file()]
            ignored += [] if reading.recursive else [e.name for e in entries if _is_visible(e)]
    except OSError as e:
        raise BadInput(f"{path} cannot be read", why=e.strerror) from e
    if not found:
        more = f" Its subdirectories are read with --recursive: {', '.join(ignored)}."
        raise BadInput(
            f"{path} has no configuration of a connector",
            next_step=f"Files must end in {', '.join(FORMS)}.{more if ignored else ''}",
        )
    if ignored:
        named = some_of(ignored, MOST_NAMED)
        lines.append(f"{path}: subdirectories are read with --recursive only: {named}")
    return found


def _tree(directory: Path) -> Iterator[Path]:
    yield directory
    for entry in sorted(directory.iterdir()):
        if _is_visible(entry) and not entry.is_symlink():
            yield from _tree(entry)


def _is_visible(entry: Path) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")
