"""Observes the state on which fencing depends: the config topic, the worker groups, the transaction
coordinators.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.connect import config_topic
from connectctl.ops.connect.config_topic import (
    COMMIT,
    FENCING,
    MEMBERS,
    ConfigState,
    ConfiguredConnector,
    newest,
)
from connectctl.ops.connect.connector import owners_of
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.connect.rest_membership import NotAMember
from connectctl.ops.connect.transactional_ids import (
    LeaderId,
    TaskRef,
    TransactionalIdIndex,
    leader_id,
    of_connector,
    task_id_prefix,
)
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    Unreachable,
    did_you_mean,
)
from connectctl.ops.core.saved_plan import stale
from connectctl.ops.core.wait import observe_again, observe_until
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, ErrorAction, verdict
from connectctl.ops.kafka.transactions import Listing, Transaction
from connectctl.ops.kafka.visibility import (
    Gap,
    Observation,
    Partial,
    Reason,
    gap_findings,
    gap_of,
    observation_of,
    whole,
)
from connectctl.ops.operations.cluster.config_state import with_former
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.observe import PATIENCE, Named, connector_listing
from connectctl.ops.operations.fencing.planning import (
    candidates,
    check,
    incomplete,
    refuse_running_tasks,
    select,
    without_ids,
)
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceRequest,
    FenceSelection,
    FenceTarget,
    Snapshot,
    TaskIdRange,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads, TransactionCalls
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.kafka.records import ConsumerRecord
    from connectctl.ops.operations.fencing.steps import FenceIds

PAUSE = 0.2
"""Seconds between two observations of a group that is rebalancing."""
LISTING = 3.0
"""Seconds to wait for the end of a rebalance, which hides the connectors of a group, in a list of
all connectors.
"""
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between describe requests for an id whose coordinator is loading or moving, before the id
is not observable.
"""


@dataclass(frozen=True)
class Configured:
    """The state of the config topic, and the task id range of each connector, deleted ones
    included.
    """

    state: ConfigState
    reach: Mapping[str, TaskIdRange]


@dataclass(frozen=True)
class FencingSources:
    """The clients to read from. ``group`` describes a worker group; ``running`` returns its tasks
    that have not failed.

    ``configured`` reads the config topic; it is called only if ids may belong to connectors.
    """

    calls: TransactionCalls
    group_id: str | None
    group: Callable[[str], ConnectGroup]
    running: Callable[[ConnectGroup], frozenset[TaskRef]]
    configured: Callable[[], Configured] | None = None
    patience: float = 10.0
    """Seconds to wait for the end of a rebalance, during which the running tasks are unknown."""


def observe(sources: FencingSources, request: FenceRequest) -> Snapshot:
    """Return the input of ``select``, read as close together in time as possible."""
    visible = visible_groups(sources)
    groups = visible.seen
    listed = _listed(sources, request)
    names = [listing.id for listing in listed.seen] if listed else []
    configured, unread = _configured(sources, request, names)
    directory = TransactionalIdIndex(_connectors(groups, sources.group_id, configured, request))
    reach = configured.reach if configured else {}
    _check_connectors(configured, sources.group_id, request, names)
    ids, skipped = candidates(request, sources.group_id, reach, names, directory)
    if listed and not ids:
        # An incomplete list without ids does not prove that there is nothing to fence.
        whole(listed, "the transactional ids", proven=False)
    unlisted = listed is not None and any(
        gap.reason is not Reason.NOT_PROVEN for gap in listed.gaps
    )
    described = describe_ids(sources.calls, ids)
    running = running_now(sources, {owner for id in ids for owner in directory.owners(id)})
    return Snapshot(
        cluster_id=sources.calls.cluster_id(),
        group_id=sources.group_id,
        taken_at=time.time(),
        ids=ids,
        described=described,
        directory=directory,
        running=running.seen.running,
        unsettled=running.seen.unsettled,
        skipped=skipped,
        findings=(*gap_findings(unread), *(incomplete(listed) if listed else ())),
        gaps=tuple(dict.fromkeys((*visible.gaps, *running.gaps))),
        unlisted=unlisted,
        without_ids=()
        if unread or unlisted
        else without_ids(request.connectors, sources.group_id, reach, names),
    )


def request_of(step: FenceIds) -> FenceRequest:
    """Return the request for the ids of ``step``, and for new ids of its connectors."""
    creates = any(row.action is FenceAction.CREATE for row in step.rows)
    return FenceRequest(
        connectors=step.connectors, ids=_ids(step), leader=True, create=creates, force=step.force
    )


def select_again(sources: FencingSources, step: FenceIds) -> FenceSelection:
    """Return the current state of the ids of ``step``. Their epochs may have changed, but neither
    their owners nor the set of ids.

    Raises ``Refused`` for a stale plan, and if tasks run with its ids.
    """
    request = request_of(step)
    selection = select(observe(sources, request), request)
    expected_ids = {
        *_ids(step),
        *(row.id for row in selection.rows if row.connector in step.connectors),
    }
    now = replace(
        selection, rows=tuple(row for row in selection.to_fence if row.id in expected_ids)
    )
    if now.essence != replace(now, rows=step.rows).essence:
        hint = "Make a new plan: connectctl fence … --dry-run -o json."
        raise stale("the ids to fence or their running tasks have changed", hint)
    check(now, request)
    return now


def _ids(step: FenceIds) -> tuple[str, ...]:
    return tuple(row.id for row in step.rows)


def refuse_running(sources: FencingSources, rows: Sequence[FenceTarget]) -> None:
    """Raise ``Refused`` if a task with one of the ids of ``rows`` runs, or if this is unknown."""
    running = running_now(sources, {owner for row in rows for owner in row.owners})
    now = [
        replace(row, running=tuple(o for o in row.owners if o in running.seen.running))
        for row in rows
    ]
    refuse_running_tasks(now, running.seen.unsettled, running.gaps)


def describe_ids(calls: TransactionCalls, ids: Sequence[str]) -> dict[str, Transaction | Code]:
    """Return the coordinator's state of every id, with retries while coordinators are loading or
    moving.
    """
    found: dict[str, Transaction | Code] = {}
    pending = list(ids)

    def described() -> bool:
        found.update(calls.describe(pending) if pending else {})
        passing = (ErrorAction.RETRY, ErrorAction.REDISCOVER)
        pending[:] = [
            i
            for i, state in found.items()
            if isinstance(state, Code) and verdict(DESCRIBE, state).move in passing
        ]
        return not pending

    observe_again(described, bool, PAUSES)
    return found


def id_gap(id: str, found: Transaction | Code, subject: str) -> Gap | None:
    """Return the gap of ``id``; None if its coordinator described it, or if no coordinator has
    it.
    """
    if (
        isinstance(found, Transaction)
        or (answer := verdict(DESCRIBE, found, id)).move is ErrorAction.ABSENT
    ):
        return None
    if answer.right is not None:
        return Gap(subject, Reason.NOT_AUTHORIZED, answer.right)
    return Gap(subject, Reason.NO_ANSWER, None, answer.meaning, answer.advice or None)


def observe_leader_id(calls: TransactionCalls, group_id: str) -> LeaderId | Gap:
    """Return the transactional id of the leader of ``group_id`` with its holder, or the gap if it
    could not be described.
    """
    id = leader_id(group_id)
    subject = f"the leader's transactional id {id}"
    try:
        found = describe_ids(calls, [id])[id]
    except ConnectctlError as e:
        return gap_of(e, subject)
    return id_gap(id, found, subject) or LeaderId(found if isinstance(found, Transaction) else None)


def read_config_topic(kafka: KafkaReads, group: ConnectGroup, named: Named) -> Configured:
    """Read the config topic of the group. Raises the errors of ``find_internal_topics``."""
    topic = find_internal_topics(kafka, group, named, needed=("config",)).config
    assert topic is not None
    image = kafka.image([topic], patience=PATIENCE)[topic]
    image = with_former(kafka, image, patience=PATIENCE)
    return Configured(
        config_topic.state_of(image), task_id_ranges([*image.latest, *image.superseded])
    )


def running_tasks(
    connect: Callable[[ConnectGroup], ConnectCalls],
    kafka: KafkaReads,
    group: ConnectGroup,
    named: Named,
) -> frozenset[TaskRef]:
    """Return the tasks that are assigned to workers of the group, without those whose worker
    reports FAILED.

    Raises ``NotAMember`` if the addresses in use are not the group's workers.
    """
    failed: set[tuple[str, int]] = set()
    with suppress(BadInput, NotAuthorized, Unreachable):
        listing = connector_listing(connect(group), kafka, group, named)
        if isinstance(listing.blind, NotAMember):
            raise listing.blind
        failed = {
            (health.name, part)
            for health in listing.connectors
            for part in failed_parts(health.connector)
        }
    assigned = owners_of(group)
    parts = assigned.by_part if assigned else {}
    return frozenset(
        TaskRef(group.id, connector, n) for connector, n in parts if (connector, n) not in failed
    )


@dataclass(frozen=True)
class RunningTasks:
    """The running tasks, and the groups whose running tasks are unknown, because they are
    rebalancing.
    """

    running: frozenset[TaskRef]
    unsettled: frozenset[str] = frozenset()


def running_now(sources: FencingSources, owners: Collection[TaskRef]) -> Observation[RunningTasks]:
    """Return which of ``owners`` are running, for a plan, and again for its execution.

    For other groups only the assignment is known, and an assigned task may run.
    """
    groups = settled(
        sources, {name: sources.group(name) for name in sorted({owner.group for owner in owners})}
    )
    found: set[TaskRef] = set()
    for name, group in groups.items():
        by_part = known.by_part if (known := owners_of(group)) else {}
        assigned = {TaskRef(name, connector, task) for connector, task in by_part} & set(owners)
        if assigned:
            found |= assigned & sources.running(group) if name == sources.group_id else assigned
    unsettled = frozenset(name for name, group in groups.items() if not group.settled)
    return observation_of(
        RunningTasks(frozenset(found), unsettled), map(_rebalancing, sorted(unsettled))
    )


def settled(
    sources: FencingSources, found: dict[str, ConnectGroup], patience: float | None = None
) -> dict[str, ConnectGroup]:
    """Return the groups, where rebalancing ones are read again until they have settled, or until
    ``patience`` has expired.
    """

    def settle() -> bool:
        found.update(
            {name: sources.group(name) for name, group in found.items() if not group.settled}
        )
        return all(group.settled for group in found.values())

    if not all(group.settled for group in found.values()):
        observe_until(settle, bool, sources.patience if patience is None else patience, PAUSE)
    return found


def _rebalancing(group: str) -> Gap:
    why = "it is rebalancing, so that its running tasks are unknown"
    return Gap(f"group {group}", Reason.NO_ANSWER, None, why)


def common_overrides(
    known: Mapping[str, ConfiguredConnector], names: Iterable[str]
) -> dict[str, str]:
    """Return the producer overrides of these connectors. Raises ``BadInput`` if they write to
    different clusters.
    """
    clusters: dict[str, dict[str, str]] = {}
    for name in names:
        overrides = client_overrides(known[name].config if name in known else {}, "producer")
        clusters[overrides.get("bootstrap.servers", "")] = overrides
    if len(clusters) > 1:
        hint = "Fence those of one Kafka cluster at a time."
        raise BadInput(
            "The connectors write to different Kafka clusters",
            why=", ".join(clusters),
            next_step=hint,
        )
    return next(iter(clusters.values()))


def task_id_ranges(records: Iterable[ConsumerRecord]) -> dict[str, TaskIdRange]:
    """Return the task id range of each connector from the latest records of the config topic, with
    deleted connectors.
    """
    found: dict[str, TaskIdRange] = {}
    for key, (_, value) in newest(records, lambda key: key.startswith((FENCING, COMMIT))).items():
        prefix, field = (FENCING, "record") if key.startswith(FENCING) else (COMMIT, "configs")
        connector, number = key.removeprefix(prefix), value.get(MEMBERS[prefix], 0)
        found[connector] = replace(found.get(connector, TaskIdRange()), **{field: number})
    return found


def visible_groups(sources: FencingSources) -> Observation[dict[str, ConnectGroup]]:
    """Return every group of Connect workers, the own group first. Raises the error if the own group
    cannot be described.
    """
    listed = sources.calls.connect_groups()
    own_group = [sources.group_id] if sources.group_id else []
    found: dict[str, ConnectGroup] = {}
    gaps = list(listed.gaps)
    for name in [*own_group, *sorted(listed.seen - set(own_group))]:
        try:
            found[name] = sources.group(name)
        except ConnectctlError as e:
            if name == sources.group_id:
                raise
            gaps.append(gap_of(e, f"group {name}"))
    settled(sources, found, min(sources.patience, LISTING))
    gaps += [_rebalancing(name) for name, group in found.items() if not group.settled]
    return observation_of(found, gaps)


def visible_connectors(sources: FencingSources) -> Observation[TransactionalIdIndex]:
    """Return all connectors: of the own group from its config topic, of other groups from their
    assignments.
    """
    configured = None
    gaps: list[Gap] = []
    if sources.configured is not None:
        try:
            configured = sources.configured()
        except ConnectctlError as e:
            gaps.append(gap_of(e, "connectors of the config topic"))
    try:
        groups = visible_groups(sources)
    except NotAuthorized as e:
        groups = Partial({}, (gap_of(e, f"group {sources.group_id}"),))
    directory = TransactionalIdIndex(
        _connectors(groups.seen, sources.group_id, configured, FenceRequest())
    )
    return observation_of(directory, (*gaps, *groups.gaps))


def _configured(
    sources: FencingSources, request: FenceRequest, listed: Sequence[str]
) -> tuple[Configured | None, tuple[Gap, ...]]:
    """Return the config topic, if the request needs it, and the gap if it could not be read.

    It is needed for connectors, and for ids that may belong to tasks of the group.
    """
    if sources.configured is None:
        return None, ()
    if request.connectors:
        return sources.configured(), ()
    if not any(id.startswith(f"{sources.group_id}-") for id in (*request.ids, *listed)):
        return None, ()
    try:
        return sources.configured(), ()
    except ConnectctlError as e:
        # Ids of connectors that no worker runs then have no connector name; they are still fenced.
        return None, (gap_of(e, "connectors of the config topic"),)


def _connectors(
    groups: Mapping[str, ConnectGroup],
    group_id: str | None,
    configured: Configured | None,
    request: FenceRequest,
) -> dict[str, frozenset[str]]:
    found = {
        name: frozenset(connector for connector, _ in group.owners)
        for name, group in groups.items()
    }
    if group_id:
        own_connectors = {*request.connectors, *(configured.reach if configured else ())}
        own_connectors |= set(configured.state.connectors) if configured else set()
        found[group_id] = found.get(group_id, frozenset()) | own_connectors
    return found


def _listed(
    sources: FencingSources, request: FenceRequest
) -> Observation[tuple[Listing, ...]] | None:
    group_id = str(sources.group_id)
    prefixes = [task_id_prefix(group_id, connector) for connector in request.connectors]
    prefixes += request.prefixes
    return sources.calls.listed(prefixes=prefixes) if prefixes else None


def _check_connectors(
    configured: Configured | None,
    group_id: str | None,
    request: FenceRequest,
    listed: Sequence[str],
) -> None:
    """Raise ``BadInput`` for an unknown connector, and for a sink without ids. A transform is a
    sink with ids.
    """
    known = configured.state.connectors if configured else {}
    reach = configured.reach if configured else {}
    for name in request.connectors:
        has_ids = bool(of_connector(listed, str(group_id), name))
        if name in known and known[name].looks_like == "sink":
            if known[name].task_count_record is None and not has_ids:
                raise BadInput(
                    f"{name} is a sink connector; its tasks have no transactional producers"
                )
            continue
        if name not in known and name not in reach and not has_ids:
            hint = did_you_mean(name, known, "See connectctl connectors list.")
            raise BadInput(f"Connector not found: {name}", next_step=hint, code="unknown-connector")
