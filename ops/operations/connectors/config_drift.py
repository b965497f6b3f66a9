"""Drift: from what a connector is, what its file says, and what runs and the config topic tell, to who is newer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connectctl.ops.core.times import iso_utc
from connectctl.ops.operations.connectors.config_history import CLOCKS_MS, ConfigVersion
from connectctl.ops.operations.connectors.config_values import Config, difference, digest, shown
from connectctl.ops.operations.connectors.drift import ANOTHER_CLIENT, Drift, Newer

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.config_origins import ConfigOrigin


def drift_of(
    now: Config,
    wanted: Config | None,
    origin: ConfigOrigin | None,
    applied: Config | None,
    versions: Sequence[ConfigVersion],
    hidden: frozenset[str] = frozenset(),
    unseen: str | None = None,
) -> Drift | None:
    """Who changed a connector that is ``now`` another one than ``wanted``, which is None where it is to be deleted.

    ``applied`` is the configuration that a run last applied from a file, None where it is not kept any more; ``versions``
    are those of the config topic, the oldest first. None where it is to be deleted and nobody changed it.
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
        return found if wanted is not None else None
    drifted, edited = digest(now) != last.digest, wanted is not None and digest(wanted) != last.digest
    if not drifted:
        return Drift(Newer.FILE, *_sides(now, wanted, applied, hidden), last.run, iso_utc(last.at)) if edited else None
    newer = Newer.BOTH if edited else Newer.CLUSTER
    cluster, file, values = _sides(now, wanted, applied, hidden)
    return replace(
        found, newer=newer, cluster=cluster, file=file, applied=values, run=last.run, applied_at=iso_utc(last.at)
    )


def another_one(now: Config, origin: ConfigOrigin, versions: Sequence[ConfigVersion], unseen: str | None) -> str | None:
    """Why a connector that is ``now`` may not be the one that was applied, but one of somebody else's with its name.

    None where it is. ``versions`` are those of the config topic, the oldest first; ``unseen`` is why it was not read.
    """
    last = origin.applied
    if last is None or digest(now) in {each.digest for each in origin.writes[origin.writes.index(last) :]}:
        return None
    own = [
        number
        for number, each in enumerate(versions)
        if each.config is not None and digest(each.config) == last.digest and abs((each.at or 0) - last.at) <= CLOCKS_MS
    ]
    if not own:
        why = unseen or "the config topic no longer has its history"
        return f"another client changed it; unknown whether it is the connector that was applied ({why})"
    deleted = next((each.at for each in reversed(versions[own[0] :]) if each.config is None), None)
    return None if deleted is None else f"another client deleted it at {iso_utc(deleted)}, and created it again"


def _sides(
    now: Config, wanted: Config | None, applied: Config | None, hidden: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, str | None] | None]:
    """The properties that the cluster, and that the file, changed of ``applied``, and their values in it, masked."""
    if applied is None:
        return (), (), None
    cluster = tuple(difference(applied, now))
    file = tuple(difference(applied, wanted)) if wanted is not None else ()
    names = dict.fromkeys((*cluster, *file))
    return cluster, file, shown({name: applied.get(name) for name in names}, hidden)


def _time_of(now: Config, versions: Sequence[ConfigVersion]) -> int | None:
    """Since when the config topic has the configuration ``now``; None where its newest is another one."""
    at, wanted = None, digest(now)
    for each in reversed(versions):
        if each.config is None or digest(each.config) != wanted:
            break
        at = each.at
    return at


def _author(now: Config, origin: ConfigOrigin | None, at: int | None) -> str | None:
    """Who wrote ``now`` at ``at``: a run of this machine, or another client; None where nothing tells."""
    wanted = digest(now)
    own = [each for each in (origin.writes if origin else ()) if each.digest == wanted]
    near = [each for each in own if at is None or abs(each.at - at) <= CLOCKS_MS]
    if near:
        return f"run {near[-1].run}"
    return None if at is None and own else ANOTHER_CLIENT
