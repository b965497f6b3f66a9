"""Plans the action for each id, from the snapshot and the request. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from connectctl.ops.connect.transactional_ids import (
    LEADER,
    TransactionalIdIndex,
    ambiguities,
    leader_id,
    may_be_task_id,
    of_connector,
    task_id,
)
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, Severity, some_of
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, ErrorAction, verdict
from connectctl.ops.kafka.fence_attempt import Problem, problem
from connectctl.ops.kafka.transactions import Listing, Transaction
from connectctl.ops.kafka.visibility import (
    Gap,
    Observation,
    Reason,
    gap_findings,
    not_authorized,
    refused,
)
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceRequest,
    FenceSelection,
    FenceTarget,
    IdResult,
    Snapshot,
    TaskIdRange,
)

RUNNING_TASKS = Rule("FENCE002", Severity.WARNING)
RUNNING_LEADER = Rule("FENCE003", Severity.INFO)
UNLISTED = Rule("FENCE004", Severity.WARNING)
NO_IDS = Rule("FENCE013", Severity.INFO)
_LEADER_SKIPPED = "This is a leader's id; fence it with --leader."
_MAX_NAMED = 5
"""The number of tasks that a message names."""


def candidates(
    request: FenceRequest,
    group_id: str | None,
    reach: Mapping[str, TaskIdRange],
    listed: Iterable[str],
    directory: TransactionalIdIndex,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the ids to fence, and the skipped ids with the reasons, without duplicates, in the
    order of the request.

    A connector's id range is the largest of its task count record, its task configs and the ids
    that the coordinators know, so that the ids of removed tasks are fenced too (KIP-618).
    ``listed`` are the ids that the coordinators know and that match a connector or prefix of the
    request.
    """
    known = list(listed)
    ids: list[str] = []
    skipped: dict[str, str] = {}
    for connector in request.connectors:
        group = str(group_id)
        ids += [
            task_id(group, connector, n) for n in range(reach.get(connector, TaskIdRange()).tasks)
        ]
        ids += of_connector(known, group, connector)
    for id in request.ids:
        if directory.is_leader(id) and not request.leader:
            skipped[id] = _LEADER_SKIPPED
        else:
            ids.append(id)
    for prefix in request.prefixes:
        for id in known:
            if not id.startswith(prefix):
                continue
            if directory.is_leader(id):
                skipped[id] = (
                    "This is a leader's id, which prefixes do not match; fence it with --leader."
                )
            else:
                ids.append(id)
    if request.leader and group_id:
        ids.append(leader_id(group_id))
    chosen = tuple(dict.fromkeys(ids))
    return chosen, {id: why for id, why in skipped.items() if id not in chosen}


def select(snapshot: Snapshot, request: FenceRequest) -> FenceSelection:
    rows = [_row(snapshot, request, id) for id in snapshot.ids]
    rows += [
        FenceTarget(id, FenceAction.SKIP, problem=Problem("leader", why))
        for id, why in snapshot.skipped.items()
    ]
    fenced = [row for row in rows if row.action in (FenceAction.FENCE, FenceAction.CREATE)]
    findings = [*snapshot.findings, *map(has_no_ids, snapshot.without_ids)]
    findings += ambiguities(snapshot.directory, (row.id for row in fenced))
    findings += filter(
        None, [leader_running(snapshot, fenced), running_tasks(fenced) if request.force else None]
    )
    return FenceSelection(
        snapshot.cluster_id,
        snapshot.taken_at,
        tuple(rows),
        tuple(findings),
        snapshot.gaps,
        snapshot.unlisted,
        snapshot.unsettled,
    )


def _row(snapshot: Snapshot, request: FenceRequest, id: str) -> FenceTarget:
    found = snapshot.described[id]
    owners = snapshot.directory.owners(id)
    running = tuple(owner for owner in owners if owner in snapshot.running)
    if isinstance(found, Transaction):
        return FenceTarget(id, FenceAction.FENCE, owners, found, running)
    answer = verdict(DESCRIBE, found, id)
    if answer.move is not ErrorAction.ABSENT:
        return FenceTarget(id, FenceAction.CANNOT, owners, None, running, problem(found, answer))
    if request.create:
        return FenceTarget(id, FenceAction.CREATE, owners, None, running)
    message = (
        "The id is unknown to the coordinators, so no producer can be using it. Use "
        "--create to create it."
    )
    return FenceTarget(
        id,
        FenceAction.LEAVE,
        owners,
        None,
        running,
        Problem(Code.TRANSACTIONAL_ID_NOT_FOUND.name, message),
    )


def without_ids(
    connectors: Iterable[str],
    group_id: str | None,
    reach: Mapping[str, TaskIdRange],
    known: Sequence[str],
) -> tuple[str, ...]:
    """Return the connectors that have no task count record, and no id among the ``known`` ones of
    the coordinators.
    """
    return tuple(
        name
        for name in connectors
        if not reach.get(name, TaskIdRange()).record
        and not of_connector(known, str(group_id), name)
    )


def has_no_ids(connector: str) -> Finding:
    message = (
        "Its tasks have no transactional ids: exactly-once source support is off for it, or it is "
        "a sink. There is no producer to fence."
    )
    return NO_IDS.found(connector, message)


def refuse_denied(found: Sequence[FenceTarget] | Sequence[IdResult]) -> None:
    """Raise ``NotAuthorized`` with the missing right of the first id, if a right is missing for
    every id.
    """
    rights = [
        target.problem.right
        for target in found
        if target.problem is not None and target.problem.right is not None
    ]
    if rights and len(rights) == len(found):
        raise not_authorized("Not authorized to fence any of the ids", rights[0])


def check(selection: FenceSelection, request: FenceRequest) -> None:
    """Raise ``Refused`` without ``--force`` if fencing would, or may, fail running tasks."""
    if not request.force:
        refuse_running_tasks(selection.to_fence, selection.unsettled, selection.gaps)
        _check_unobserved(selection)


def refuse_running_tasks(
    rows: Sequence[FenceTarget], unsettled: Collection[str], gaps: Sequence[Gap]
) -> None:
    """Raise ``Refused`` if tasks run with the ids of ``rows``, or may run: those of the groups
    ``unsettled``.
    """
    if named := _running(rows):
        connectors = " ".join(
            dict.fromkeys(owner.connector for row in rows for owner in row.running)
        )
        raise Refused(
            "Fencing refused: running tasks would fail",
            why=named,
            next_step=f"Stop them first (connectctl connectors stop {connectors} --wait), or use "
            "--force.",
            code="running-tasks",
        )
    unknown = [row.id for row in rows if any(owner.group in unsettled for owner in row.owners)]
    if unknown:
        raise refused(
            gaps,
            f"Fencing refused: a running task may use {unknown[0]}",
            force="it would fail then",
        )


def _check_unobserved(selection: FenceSelection) -> None:
    """Raise ``Refused`` for ids without a known owner, if they may belong to a group that could not
    be described.
    """
    unowned = (
        row.id for row in selection.to_fence if not row.owners and not row.id.startswith(LEADER)
    )
    unowned_tasks = [id_ for id_ in unowned if may_be_task_id(id_)]
    if unowned_tasks and selection.gaps:
        what = f"Fencing refused: running tasks may use {unowned_tasks[0]}"
        raise refused(selection.gaps, what, force="tasks that run with these ids fail")


def running_tasks(rows: Sequence[FenceTarget]) -> Finding | None:
    if not (named := _running(rows)):
        return None
    message = f"Running tasks that will fail: {named}."
    return RUNNING_TASKS.found("tasks", message, "Use --restart-failed to restart them afterwards.")


def _running(rows: Sequence[FenceTarget]) -> str:
    """Return the names of the tasks that run with the ids of ``rows``; empty for none."""
    owners = [owner for row in rows for owner in row.running]
    return some_of([f"{owner.connector} task {owner.task}" for owner in owners], _MAX_NAMED)


def leader_running(snapshot: Snapshot, rows: Sequence[FenceTarget]) -> Finding | None:
    if snapshot.group_id is None or leader_id(snapshot.group_id) not in {row.id for row in rows}:
        return None
    message = (
        "The leader's next write to the config topic fails once; the worker then recovers "
        "by itself."
    )
    return RUNNING_LEADER.found(leader_id(snapshot.group_id), message)


def incomplete(listed: Observation[tuple[Listing, ...]]) -> list[Finding]:
    silent = [gap for gap in listed.gaps if gap.reason is Reason.NO_ANSWER]
    findings = [
        UNLISTED.found(
            gap.subject,
            f"Could not list its transactional ids: {gap.detail}. Ids of this coordinator may be "
            "missing.",
            "Check the broker, then fence again.",
        )
        for gap in silent
    ]
    return [*findings, *gap_findings(gap for gap in listed.gaps if gap not in silent)]


def check_request(request: FenceRequest, group_id: str | None) -> None:
    """Raise ``BadInput`` for an empty request, and for connectors or a leader without a group
    id.
    """
    if not (request.connectors or request.ids or request.prefixes or request.leader):
        hint = "Name connectors, or use --transactional-id, --prefix, --from-file or --leader."
        raise BadInput("Nothing to fence specified", next_step=hint, code="usage")
    if "" in request.prefixes:
        raise BadInput(
            "An empty prefix matches every transactional id", next_step="Use a longer --prefix."
        )
    if "" in request.ids:
        raise BadInput(
            "Empty transactional id", next_step="List the ids: connectctl transactions list."
        )
    if group_id is None and (request.connectors or request.leader):
        raise BadInput(
            "group_id is required for connectors and --leader (it is part of their ids)",
            next_step="Set --group-id.",
        )
