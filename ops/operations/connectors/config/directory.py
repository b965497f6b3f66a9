"""``connectors apply`` of a directory: the newer side, the order of the changes, and the deletions
of ``--prune``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from connectctl.ops.connect.partition_changes import shared
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.plan import Noop
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.core.times import iso_utc
from connectctl.ops.operations.connectors.config.history import (
    CLOCKS_MS,
    ConfigOrigin,
    ConfigVersion,
)
from connectctl.ops.operations.connectors.config.steps import (
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
)
from connectctl.ops.operations.connectors.config.values import (
    Config,
    difference,
    digest,
    read_config,
    shown,
)
from connectctl.ops.operations.connectors.drift import ANOTHER_CLIENT, Drift, Newer

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.context import StepContext
    from connectctl.ops.operations.connectors.steps import ConnectorStep


def drift_of(
    now: Config,
    file_config: Config | None,
    origin: ConfigOrigin | None,
    applied: Config | None,
    versions: Sequence[ConfigVersion],
    hidden: frozenset[str] = frozenset(),
    unseen: str | None = None,
) -> Drift | None:
    """Return the drift of a connector with the configuration ``now`` from ``file_config``, None for
    a deletion.

    ``applied`` is the configuration that a run last applied from a file, None if the journal no
    longer has it; ``versions`` are those of the config topic, the oldest first. The drift is None
    if an unchanged connector is deleted.
    """
    last = origin.applied if origin else None
    at = _time_of(now, versions)
    found = Drift(
        Newer.UNKNOWN,
        changed_at=None if at is None else iso_utc(at),
        changed_by=_author(now, origin, at),
        unseen=unseen if at is None else None,
    )
    if last is None:
        return found if file_config is not None else None
    cluster_changed, file_changed = (
        digest(now) != last.digest,
        file_config is not None and digest(file_config) != last.digest,
    )
    if not cluster_changed:
        return (
            Drift(
                Newer.FILE, *_sides(now, file_config, applied, hidden), last.run, iso_utc(last.at)
            )
            if file_changed
            else None
        )
    newer = Newer.BOTH if file_changed else Newer.CLUSTER
    cluster, file, values = _sides(now, file_config, applied, hidden)
    return replace(
        found,
        newer=newer,
        cluster=cluster,
        file=file,
        applied=values,
        run=last.run,
        applied_at=iso_utc(last.at),
    )


def why_not_applied(
    now: Config, origin: ConfigOrigin, versions: Sequence[ConfigVersion], unseen: str | None
) -> str | None:
    """Return the reason why a connector with the configuration ``now`` may not be the applied one,
    but another one of its name.

    None if it is the applied one. ``versions`` are those of the config topic, the oldest first;
    ``unseen`` is the reason if the topic was not read.
    """
    last = origin.applied
    if last is None or digest(now) in {
        version.digest for version in origin.writes[origin.writes.index(last) :]
    }:
        return None
    applied_at = [
        number
        for number, version in enumerate(versions)
        if version.config is not None
        and digest(version.config) == last.digest
        and abs((version.at or 0) - last.at) <= CLOCKS_MS
    ]
    if not applied_at:
        why = unseen or "the config topic no longer has its history"
        return (
            "another client changed it; unknown whether it is the connector that was applied "
            f"({why})"
        )
    deleted = next(
        (version.at for version in reversed(versions[applied_at[0] :]) if version.config is None),
        None,
    )
    return (
        None
        if deleted is None
        else f"another client deleted it at {iso_utc(deleted)}, and created it again"
    )


def _sides(
    now: Config, file_config: Config | None, applied: Config | None, hidden: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, str | None] | None]:
    """Return the properties that differ from ``applied`` on the cluster, those that differ in the
    file, and their applied values, masked.
    """
    if applied is None:
        return (), (), None
    cluster = tuple(difference(applied, now))
    file = tuple(difference(applied, file_config)) if file_config is not None else ()
    names = dict.fromkeys((*cluster, *file))
    return cluster, file, shown({name: applied.get(name) for name in names}, hidden)


def _time_of(now: Config, versions: Sequence[ConfigVersion]) -> int | None:
    """Return the time since which the config topic has the configuration ``now``, None if its
    newest version differs.
    """
    at, current = None, digest(now)
    for version in reversed(versions):
        if version.config is None or digest(version.config) != current:
            break
        at = version.at
    return at


def _author(now: Config, origin: ConfigOrigin | None, at: int | None) -> str | None:
    """Return the author of the configuration ``now`` at ``at``: a run of this machine, or another
    client; None if unknown.
    """
    current = digest(now)
    writes = [write for write in (origin.writes if origin else ()) if write.digest == current]
    concurrent = [write for write in writes if at is None or abs(write.at - at) <= CLOCKS_MS]
    if concurrent:
        return f"run {concurrent[-1].run}"
    return None if at is None and writes else ANOTHER_CLIENT


@dataclass(frozen=True)
class AwaitRelease(ResourceStep["StepContext"]):
    """Wait until the connector ``of`` no longer reads source partitions that ``subject`` will read.

    ``after`` is the digest of the new configuration of ``of``, None if ``of`` is deleted. If that
    change failed, the later steps of ``subject`` are not executed: two connectors would read the
    same source partitions.
    """

    read_only: ClassVar[bool] = True

    of: str
    after: str | None = None

    def describe(self) -> str:
        if self.after is not None:
            return (
                f"check that {self.of} no longer reads source partitions that {self.subject} "
                "is to read"
            )
        return f"wait until no worker runs {self.of}, whose source partitions {self.subject} reads"

    def apply(self, context: StepContext) -> str | None:
        found = read_config(context.calls, self.of)
        if (None if found is None else digest(found)) != self.after:
            raise Refused(
                f"{self.of} still reads source partitions that {self.subject} is to read; "
                f"{self.subject} is left as it is",
                next_step=f"See connectctl connectors show {self.of}, and apply again.",
                code="stale",
            )
        context.await_gone(self.of, deleted=self.after is None)
        return None


def takeovers(
    former: Mapping[str, Config], new: Mapping[str, Config]
) -> dict[str, tuple[str, ...]]:
    """Return by connector the connectors from which it takes over source partitions.

    ``former`` are the configurations of changed and deleted connectors, ``new`` those of created
    and changed ones.
    """
    released = {name: old for name, old in former.items() if _releases(name, old, new)}
    found: dict[str, tuple[str, ...]] = {}
    for name, config in new.items() if released else ():
        others = {other: old for other, old in released.items() if other != name}
        known = set(shared(former[name], others)) if name in former else set()
        if gained := [other for other in shared(config, others) if other not in known]:
            found[name] = tuple(gained)
    return found


def _releases(name: str, old: Config, new: Mapping[str, Config]) -> bool:
    """Return whether source partitions of a connector are known, and it no longer reads them."""
    itself = {name: old}
    return bool(shared(old, itself)) and not (name in new and shared(new[name], itself))


def ordered(
    steps: Sequence[ConnectorStep], after: Mapping[str, Sequence[str]]
) -> list[ConnectorStep]:
    """Return ``steps`` by connector: deletions that other connectors wait for, then creations and
    changes in the order of their names, then the other deletions.

    ``after`` is the result of ``takeovers``.
    """
    groups: dict[str, list[ConnectorStep]] = {}
    for step in steps:
        groups.setdefault(step.subject, []).append(step)
    results = {
        step.subject: step for step in steps if isinstance(step, CreateConnector | ChangeConnector)
    }
    awaited = {other for names in after.values() for other in names}
    remaining = {name: (_rank(group, name in awaited), name) for name, group in groups.items()}
    found: list[ConnectorStep] = []
    done: set[str] = set()
    while remaining:
        ready = [
            name for name in remaining if done.issuperset(set(after.get(name, ())) & groups.keys())
        ]
        # Two connectors that exchange their source partitions wait for each other: the order of
        # names decides.
        name = min(ready or remaining, key=remaining.__getitem__)
        del remaining[name]
        before = [other for other in after.get(name, ()) if other in done]
        found += [
            AwaitRelease(name, other, results[other].after if other in results else None)
            for other in before
        ]
        found += groups[name]
        done.add(name)
    return found


def _rank(steps: Iterable[ConnectorStep], awaited: bool) -> int:
    deletes = any(isinstance(step, DeleteConnector) for step in steps)
    return 0 if deletes and awaited else 2 if deletes else 1


@dataclass(frozen=True)
class PruneRequest:
    """``paths`` are the arguments of ``-f``. ``applied``: connectors that were applied from them
    are deleted, and connectors that match ``globs``. ``recursive``: from subdirectories, too.
    """

    paths: tuple[str, ...]
    applied: bool
    globs: tuple[str, ...] = ()
    recursive: bool = False

    @classmethod
    def of(
        cls,
        files: Sequence[Path],
        applied: bool,
        globs: Sequence[str],
        *,
        recursive: bool = False,
    ) -> PruneRequest | None:
        """Return the request, None without options. Raises ``BadInput`` if there is no path whose
        applied connectors are known.
        """
        if not applied and not globs:
            return None
        paths = tuple(normpath(file.absolute()) for file in files if str(file) != "-")
        if not paths and not globs:
            raise BadInput(
                "--prune deletes what was applied from the same file or directory, and standard "
                "input is neither",
                next_step="Give the directory with -f, or say what to delete: --prune-match GLOB.",
            )
        return cls(paths, applied, tuple(globs), recursive)

    def covers(self, file: str) -> bool:
        """Return whether ``file`` is one of the files, or in one of the directories."""
        path = normpath(file)
        parents = Path(path).parents
        return not {path, *map(str, parents if self.recursive else parents[:1])}.isdisjoint(
            self.paths
        )


@dataclass(frozen=True)
class Pruned:
    """The connectors to delete, and the other connectors with the reasons why they are not
    deleted.
    """

    delete: tuple[str, ...]
    unchanged: tuple[Noop, ...]


def pruned(
    missing: Collection[str],
    origins: Mapping[str, ConfigOrigin],
    request: PruneRequest,
    why_not_applied: Callable[[str], str | None],
) -> Pruned:
    """Return which of the connectors ``missing`` from the files are deleted. ``why_not_applied``
    returns the reason why one may not be the applied connector, None if it is.
    """
    delete, kept = [], []
    for name in sorted(missing):
        if (why := _why_not_deleted(name, origins.get(name), request, why_not_applied)) is None:
            delete.append(name)
        else:
            kept.append(Noop(name, f"left alone: {why}"))
    return Pruned(tuple(delete), tuple(kept))


def _why_not_deleted(
    name: str,
    origin: ConfigOrigin | None,
    request: PruneRequest,
    why_not_applied: Callable[[str], str | None],
) -> str | None:
    if any(fnmatchcase(name, glob) for glob in request.globs):
        return None
    if not request.applied:
        return "it does not match --prune-match"
    last = origin.applied if origin else None
    if last is None or last.file is None:
        return "no run in this machine's journal applied it from a file"
    return (
        why_not_applied(name) if request.covers(last.file) else f"it was applied from {last.file}"
    )
