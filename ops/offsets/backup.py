"""All that a backup saves, from one look at the topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model import oddities
from connectctl.ops.offsets.assemble import check_names
from connectctl.ops.offsets.decide import by_connector
from connectctl.ops.offsets.observe import observe
from connectctl.ops.offsets.places import places_of
from connectctl.ops.offsets.snapshot import Wish as Look

if TYPE_CHECKING:
    from connectctl.ops.offsets.decide import Place
    from connectctl.ops.offsets.observe import Sources
    from connectctl.ops.offsets.snapshot import OffsetsSnapshot

_HIDDEN = ("OFFSETS009", "OFFSETS011")
"""Findings of an open transaction, and of a topic that could not be read."""


def everything(sources: Sources, names: tuple[str, ...]) -> dict[str, list[Place]]:
    """The places of the connectors in ``names``, of all for none, by name.

    Raises ``BadInput`` for a sink and for a name that nobody knows, ``ConnectctlError`` where not all can be seen.
    """
    snapshot = observe(sources, Look(names))
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) != 1 else None
    configs = snapshot.configs.connectors if snapshot.configs else {}
    sources_there = {name for name, configured in configs.items() if configured.looks_like != "sink"}
    chosen = names or tuple(sorted({*(known or ()), *snapshot.dedicated, *sources_there}))
    found = {name: places_of(sources, snapshot, name, known=known) for name in chosen}
    for name in names:
        if name not in sources_there and (name in configs or not any(place.records for place in found[name])):
            check_names(name, snapshot)
    _check_whole(snapshot, found, every=not names)
    return found


def _check_whole(snapshot: OffsetsSnapshot, found: dict[str, list[Place]], *, every: bool) -> None:
    problems = [place.problem for places in found.values() for place in places if place.problem]
    if every and not problems:
        topics = [topic for topic in (snapshot.global_topic, *snapshot.dedicated.values()) if topic is not None]
        open_ = (f for t in topics for f in oddities.of_open_transactions(t.image.topic, t.image.held_back))
        problems = [finding.reason for finding in (*snapshot.findings, *open_) if finding.id in _HIDDEN]
    if problems:
        why = "; ".join(dict.fromkeys(problems))
        raise ConnectctlError("The offsets cannot be seen whole", why=why, code="hidden")
