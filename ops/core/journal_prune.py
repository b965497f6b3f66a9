"""Removes old runs that ended from a journal, and configurations that no other run needs.

A run that can be resumed is never removed. The configurations that a run changed stay, secrets
included, as long as the journal has the run: they are what ``runs undo`` restores.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.journal import Journal, Run, RunState

KEPT = "kept"
BEGINNING = 3600.0
"""Seconds for which files without a run are left alone: those of a run that is about to begin."""
_DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")
_RUN = "[0-9]*-[0-9]*-*"
_AGE = re.compile(r"([1-9]\d{0,5})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class PrunePlan:
    """The runs to remove, the newest first, and the files and directories that no remaining run
    needs.
    """

    runs: tuple[Run, ...]
    files: tuple[Path, ...]

    @property
    def size(self) -> int:
        """Return the bytes of ``files``."""
        return sum(each.stat().st_size for each in _files(self.files))


def age(text: str) -> timedelta:
    """Return the time that ``30d`` means. Raises ``BadInput``."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise BadInput(
            f"{text!r} is not an age",
            next_step="Write a number and s, m, h, d or w, as 30d.",
            code="usage",
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def plan_prune(
    journal: Journal, *, older_than: timedelta | None, keep: int | None, now: datetime | None = None
) -> PrunePlan:
    """Return what to remove: of the runs that ended, those ``older_than`` that, and not among the
    newest ``keep``.
    """
    runs = journal.runs()
    limit = None if older_than is None else (now or datetime.now(UTC)) - older_than
    old = {
        run.id
        for at, run in enumerate(runs)
        if _ended(run)
        and (keep is None or at >= keep)
        and (limit is None or datetime.fromisoformat(run.ended_at or run.started_at) < limit)
    }
    left = [run.id for run in runs if run.id not in old]
    removed = tuple(run for run in runs if run.id in old)
    directories = [journal.path(run.id, "") for run in removed]
    return PrunePlan(
        removed, (*directories, *_unneeded(journal, left, removed, {run.id for run in runs}))
    )


def prune(journal: Journal, plan: PrunePlan) -> None:
    """Remove what ``plan`` names. Raises ``Refused`` if a cluster of one of its runs is just being
    changed.
    """
    with ExitStack() as locks:
        for cluster_id, group_id in sorted({(run.cluster_id, run.group_id) for run in plan.runs}):
            locks.enter_context(journal.locked(cluster_id, group_id))
        journal.remove([run.id for run in plan.runs])
        for path in plan.files:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _ended(run: Run) -> bool:
    """Return whether there is nothing left to resume."""
    return run.state in (RunState.DONE, RunState.UNDONE, RunState.REFUSED) or (
        run.state is RunState.FAILED and not run.changed
    )


def _unneeded(
    journal: Journal, left: Iterable[str], removed: Iterable[Run], known: set[str]
) -> Iterator[Path]:
    """Yield the kept files that no run in ``left`` names, and the directories of runs that the
    journal does not have.

    A file that was written since the last of the ``removed`` runs with it ended may be that of a
    run that is about to begin.
    """
    needed = {digest.decode() for run in left for digest in _named(journal.path(run, ""))}
    began = time.time() - BEGINNING
    last: dict[str, float] = {}
    for run in removed:
        ended = datetime.fromisoformat(run.ended_at or run.started_at).timestamp()
        for digest in _named(journal.path(run.id, "")):
            last[digest.decode()] = max(ended, last.get(digest.decode(), 0.0))
    for path in sorted(journal.path(KEPT, "").glob("[0-9a-f]*")):
        digest_of = path.name.partition(".")[0]
        if digest_of not in needed and path.stat().st_mtime < max(began, last.get(digest_of, 0.0)):
            yield path
    for path in sorted(journal.path("", "").glob(_RUN)):
        if path.name not in known and path.stat().st_mtime < began:
            yield path


def _named(directory: Path) -> Iterator[bytes]:
    """Yield the digests in the plan and the other JSON files of a run."""
    for path in directory.glob("*.json"):
        yield from _DIGEST.findall(path.read_bytes())


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (each for each in path.rglob("*") if each.is_file())
        elif path.is_file():
            yield path
