"""Looks at everything that a plan to fence depends on: the config topic, the groups, the coordinators."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.transactional_ids import Directory, Owner, of_connector
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, Move, verdict
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Reason, answer_of, gap_findings, gap_of, whole
from connectctl.ops.operations.fencing.planning import candidates, incomplete
from connectctl.ops.operations.fencing.snapshot import Reach, Snapshot, Wish

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Record, TransactionCalls
    from connectctl.ops.connect.config_topic import ConfigState
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.kafka.transactions import Listing
    from connectctl.ops.kafka.visibility import Answer, Gap

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between looks at an id whose coordinator is loading or moving, before it counts as not to be seen."""


@dataclass(frozen=True)
class Configured:
    """What the config topic says: its state, and how far each connector's ids reach, deleted ones included."""

    state: ConfigState
    reach: Mapping[str, Reach]


@dataclass(frozen=True)
class Sources:
    """Where to look. ``group`` tells of any group of workers; ``running`` which of a group's tasks say that they run.

    ``configured`` reads the config topic; it is asked only where ids may be those of connectors.
    """

    calls: TransactionCalls
    group_id: str | None
    group: Callable[[str], ConnectGroup]
    running: Callable[[ConnectGroup], frozenset[Owner]]
    configured: Callable[[], Configured] | None = None


def observe(sources: Sources, wish: Wish) -> Snapshot:
    """All that ``plan_fence`` needs, of one moment as far as that can be had."""
    seen = visible_groups(sources)
    groups = seen.seen
    listed = _listed(sources, wish)
    names = [listing.id for listing in listed.seen] if listed else []
    configured, unread = _configured(sources, wish, names)
    directory = Directory(_connectors(groups, sources.group_id, configured, wish))
    reach = configured.reach if configured else {}
    _check_connectors(configured, sources.group_id, wish, names)
    ids, left_alone = candidates(wish, sources.group_id, reach, names, directory)
    if listed and not ids:
        # Nothing to fence, as far as that can be seen: not an answer where more may be there.
        whole(listed, "the transactional ids", proven=False)
    described = look(sources.calls, ids)
    return Snapshot(
        cluster_id=sources.calls.cluster_id(),
        group_id=sources.group_id,
        taken_at=time.time(),
        ids=ids,
        described=described,
        directory=directory,
        running=_running(sources, groups, {owner for id in ids for owner in directory.owners(id)}),
        left_alone=left_alone,
        findings=(*gap_findings(unread), *(incomplete(listed) if listed else ())),
        gaps=seen.gaps,
        unlisted=listed is not None and any(gap.reason is not Reason.NOT_PROVEN for gap in listed.gaps),
    )


def look(calls: TransactionCalls, ids: Sequence[str]) -> dict[str, Transaction | Code]:
    """Every id as its coordinator has it, with patience for coordinators that are loading or moving."""
    found = calls.describe(ids) if ids else {}
    for pause in PAUSES:
        again = [
            id
            for id, what in found.items()
            if isinstance(what, Code) and verdict(DESCRIBE, what).move in (Move.AGAIN, Move.MOVED)
        ]
        if not again:
            break
        time.sleep(pause)
        found.update(calls.describe(again))
    return found


def reach_of(records: Iterable[Record]) -> dict[str, Reach]:
    """How far each connector's ids reach by the newest records of the config topic, deleted connectors included."""
    from connectctl.ops.connect.config_topic import COMMIT, FENCING

    found: dict[str, Reach] = {}
    for record in sorted(records, key=lambda r: r.offset):
        key = (record.key or b"").decode(errors="replace")
        for prefix, name, field in ((FENCING, "task-count", "record"), (COMMIT, "tasks", "configs")):
            if key.startswith(prefix):
                try:
                    value = read_json(record.value or b"{}")
                except ValueError:
                    continue
                connector = key.removeprefix(prefix)
                number = value.get(name, 0) if isinstance(value, dict) else 0
                found[connector] = replace(found.get(connector, Reach()), **{field: number})
    return found


def visible_groups(sources: Sources) -> Answer[dict[str, ConnectGroup]]:
    """Every group of Connect workers, ours first. Raises what keeps ours from being seen."""
    listed = sources.calls.connect_groups()
    ours = [sources.group_id] if sources.group_id else []
    found: dict[str, ConnectGroup] = {}
    gaps = list(listed.gaps)
    for name in [*ours, *sorted(listed.seen - set(ours))]:
        try:
            found[name] = sources.group(name)
        except ConnectctlError as e:
            if name == sources.group_id:
                raise
            gaps.append(gap_of(e, f"group {name}"))
    return answer_of(found, gaps)


def visible_connectors(sources: Sources) -> Answer[Directory]:
    """All connectors: of our group by its config topic, of others by what their workers run."""
    configured = None
    gaps: list[Gap] = []
    if sources.configured is not None:
        try:
            configured = sources.configured()
        except ConnectctlError as e:
            gaps.append(gap_of(e, "connectors of the config topic"))
    groups = visible_groups(sources)
    directory = Directory(_connectors(groups.seen, sources.group_id, configured, Wish()))
    return answer_of(directory, (*gaps, *groups.gaps))


def _configured(sources: Sources, wish: Wish, listed: Sequence[str]) -> tuple[Configured | None, tuple[Gap, ...]]:
    """The config topic, where connectors are named or ids look like those of the group's tasks; and why it was not read."""
    if sources.configured is None:
        return None, ()
    if wish.connectors:
        return sources.configured(), ()
    if not any(id.startswith(f"{sources.group_id}-") for id in (*wish.ids, *listed)):
        return None, ()
    try:
        return sources.configured(), ()
    except ConnectctlError as e:
        # Then the ids of connectors that no worker runs stay without a name; they are fenced all the same.
        return None, (gap_of(e, "connectors of the config topic"),)


def _connectors(
    groups: Mapping[str, ConnectGroup], group_id: str | None, configured: Configured | None, wish: Wish
) -> dict[str, frozenset[str]]:
    found = {name: frozenset(connector for connector, _ in group.owners) for name, group in groups.items()}
    if group_id:
        own = {*wish.connectors, *(configured.reach if configured else ())}
        own |= set(configured.state.connectors) if configured else set()
        found[group_id] = found.get(group_id, frozenset()) | own
    return found


def _listed(sources: Sources, wish: Wish) -> Answer[tuple[Listing, ...]] | None:
    prefixes = [f"{sources.group_id}-{connector}-" for connector in wish.connectors] + list(wish.prefixes)
    return sources.calls.listed(prefixes=prefixes) if prefixes else None


def _check_connectors(configured: Configured | None, group_id: str | None, wish: Wish, listed: Sequence[str]) -> None:
    """Raises ``BadInput`` for a connector of which there is no trace, and for a sink."""
    from difflib import get_close_matches

    known = configured.state.connectors if configured else {}
    reach = configured.reach if configured else {}
    for name in wish.connectors:
        if name in known and known[name].looks_like == "sink":
            raise BadInput(f"{name} is a sink connector, whose tasks have no transactional producers")
        if name not in known and name not in reach and not of_connector(listed, str(group_id), name):
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else "See connectctl connectors list."
            raise BadInput(f"There is no connector {name}", next_step=hint, code="unknown-connector")


def _running(sources: Sources, groups: Mapping[str, ConnectGroup], owners: set[Owner]) -> frozenset[Owner]:
    """Those of ``owners`` that run. Of another cluster only the assignment is known, and an assigned task may run."""
    found: set[Owner] = set()
    for name, group in groups.items():
        assigned = {Owner(name, connector, task) for connector, task in group.owners} & owners
        if assigned:
            found |= assigned & sources.running(group) if name == sources.group_id else assigned
    return frozenset(found)
