"""What ``connectors apply --prune`` deletes: connectors that were applied from the same place, and are no longer there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Noop

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.config_origins import ConfigOrigin


@dataclass(frozen=True)
class PruneRequest:
    """``paths`` are what ``-f`` names; ``applied``: what was applied from there is deleted; ``globs``: and what matches."""

    paths: tuple[str, ...]
    applied: bool
    globs: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: Sequence[Path], applied: bool, globs: Sequence[str]) -> PruneRequest | None:
        """What was asked for, None for nothing. Raises ``BadInput`` where nothing could be known of what was applied."""
        if not applied and not globs:
            return None
        paths = tuple(normpath(file.absolute()) for file in files if str(file) != "-")
        if not paths and not globs:
            raise BadInput(
                "--prune deletes what was applied from the same file or directory, and standard input is neither",
                next_step="Give the directory with -f, or say what to delete: --prune-match GLOB.",
            )
        return cls(paths, applied, tuple(globs))

    def covers(self, file: str) -> bool:
        """Whether ``file`` is one of the files, or in one of the directories."""
        path = normpath(file)
        return path in self.paths or str(Path(path).parent) in self.paths


@dataclass(frozen=True)
class Pruned:
    """The connectors to delete, and the others with the reason why they are left alone."""

    delete: tuple[str, ...]
    left: tuple[Noop, ...]


def pruned(
    there: Collection[str],
    origins: Mapping[str, ConfigOrigin],
    request: PruneRequest,
    another_one: Callable[[str], str | None],
) -> Pruned:
    """What becomes of the connectors ``there`` that no file has. ``another_one`` says why one of them may not be the one
    that was applied, None where it is.
    """
    delete, left = [], []
    for name in sorted(there):
        if (why := _why_left(name, origins.get(name), request, another_one)) is None:
            delete.append(name)
        else:
            left.append(Noop(name, f"left alone: {why}"))
    return Pruned(tuple(delete), tuple(left))


def _why_left(
    name: str, origin: ConfigOrigin | None, request: PruneRequest, another_one: Callable[[str], str | None]
) -> str | None:
    if any(fnmatchcase(name, glob) for glob in request.globs):
        return None
    if not request.applied:
        return "it does not match --prune-match"
    last = origin.applied if origin else None
    if last is None or last.file is None:
        return "no run in this machine's journal applied it from a file"
    return another_one(name) if request.covers(last.file) else f"it was applied from {last.file}"
