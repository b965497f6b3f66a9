"""Decides what to do with each id: from what was seen and what is wished, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.connect.transactional_ids import (
    LEADER,
    Directory,
    ambiguities,
    leader_id,
    may_be_a_tasks,
    of_connector,
    task_id,
)
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, Move, verdict
from connectctl.ops.kafka.fence_attempt import Problem, problem
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Reason, describe_id, gap_findings, grant, refused
from connectctl.ops.operations.fencing.snapshot import Action, FencePlan, Reach, Row, Snapshot, Wish

if TYPE_CHECKING:
    from connectctl.ops.kafka.transactions import Listing
    from connectctl.ops.kafka.visibility import Answer

_LEADER_LEFT = "It is the id of a leader, which only --leader fences."
_NAMED = 5
"""How many tasks a sentence names."""


def candidates(
    wish: Wish, group_id: str | None, reach: Mapping[str, Reach], listed: Iterable[str], directory: Directory
) -> tuple[tuple[str, ...], dict[str, str]]:
    """``(ids to fence, ids left alone with the reason)``, each id once, in the order of the wish.

    A connector's ids reach as far as its task count record, its task configs or what the coordinators know, whichever is
    furthest, so that a task set that shrank still has its old ids fenced (KIP-618). ``listed`` are the ids that the
    coordinators know, as far as a connector or prefix of the wish asks for them.
    """
    known = list(listed)
    ids: list[str] = []
    left: dict[str, str] = {}
    for connector in wish.connectors:
        group = str(group_id)
        ids += [task_id(group, connector, n) for n in range(reach.get(connector, Reach()).tasks)]
        ids += of_connector(known, group, connector)
    for id in wish.ids:
        if directory.is_leader(id) and not wish.leader:
            left[id] = _LEADER_LEFT
        else:
            ids.append(id)
    for prefix in wish.prefixes:
        for id in known:
            if not id.startswith(prefix):
                continue
            if directory.is_leader(id):
                left[id] = "It is the id of a leader, which no prefix matches; give --leader."
            else:
                ids.append(id)
    if wish.leader and group_id:
        ids.append(leader_id(group_id))
    chosen = tuple(dict.fromkeys(ids))
    return chosen, {id: why for id, why in left.items() if id not in chosen}


def plan_fence(snapshot: Snapshot, wish: Wish) -> FencePlan:
    """The plan: each id with what will be done to it."""
    rows = [_row(snapshot, wish, id) for id in snapshot.ids]
    rows += [Row(id, Action.SKIP, problem=Problem("leader", why)) for id, why in snapshot.left_alone.items()]
    fenced = [row for row in rows if row.action in (Action.FENCE, Action.CREATE)]
    findings = [*snapshot.findings, *ambiguities(snapshot.directory, (row.id for row in fenced))]
    findings += filter(None, [leader_running(snapshot, fenced), running_tasks(fenced) if wish.force else None])
    return FencePlan(
        snapshot.cluster_id, snapshot.taken_at, tuple(rows), tuple(findings), snapshot.gaps, snapshot.unlisted
    )


def _row(snapshot: Snapshot, wish: Wish, id: str) -> Row:
    found = snapshot.described[id]
    owners = snapshot.directory.owners(id)
    running = tuple(owner for owner in owners if owner in snapshot.running)
    if isinstance(found, Transaction):
        return Row(id, Action.FENCE, owners, found, running)
    said = verdict(DESCRIBE, found)
    if found is Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        right = describe_id(id)
        denied = Problem(found.name, f"Not authorized: {right} is missing. {grant(right)}")
        return Row(id, Action.CANNOT, owners, None, running, denied)
    if said.move is not Move.ABSENT:
        return Row(id, Action.CANNOT, owners, None, running, problem(found, said))
    if wish.create:
        return Row(id, Action.CREATE, owners, None, running)
    message = "No coordinator knows the id, so that no producer can be using it. --create would create it."
    return Row(id, Action.LEAVE, owners, None, running, Problem(Code.TRANSACTIONAL_ID_NOT_FOUND.name, message))


def check(plan: FencePlan, wish: Wish) -> None:
    """Raises ``Refused`` where fencing would fail running tasks, or may, and ``--force`` was not given."""
    finding = running_tasks(plan.to_fence)
    if wish.force:
        return
    if finding is None:
        _check_sight(plan)
        return
    connectors = " ".join(dict.fromkeys(owner.connector for row in plan.to_fence for owner in row.running))
    raise Refused(
        "Nothing was fenced, because running tasks would fail",
        why=finding.message,
        next_step=f"Stop them first (connectctl connectors stop {connectors} --wait), or give --force.",
        code="running-tasks",
    )


def _check_sight(plan: FencePlan) -> None:
    """Raises ``Refused`` for ids of no known task, where they may be those of a group that was not seen."""
    unowned = (row.id for row in plan.to_fence if not row.owners and not row.id.startswith(LEADER))
    nobodys = [id_ for id_ in unowned if may_be_a_tasks(id_)]
    if nobodys and plan.gaps:
        what = f"Nothing was fenced, because running tasks may use {nobodys[0]}"
        raise refused(plan.gaps, what, force="tasks that run with these ids fail")


def running_tasks(rows: Sequence[Row]) -> Finding | None:
    """FENCE002: ids of tasks that run now: their producers are fenced with the zombies', and the tasks fail."""
    owners = [owner for row in rows for owner in row.running]
    if not owners:
        return None
    named = ", ".join(f"{owner.connector} task {owner.task}" for owner in owners[:_NAMED])
    more = f" and {len(owners) - _NAMED:,} more" if len(owners) > _NAMED else ""
    message = f"These tasks run now, and will fail: {named}{more}."
    return Finding("FENCE002", Severity.WARNING, "tasks", message, "--restart-failed restarts them afterwards.")


def leader_running(snapshot: Snapshot, rows: Sequence[Row]) -> Finding | None:
    """FENCE003: the leader is fenced: its next write to the config topic fails once, and then it takes the id back."""
    if snapshot.group_id is None or leader_id(snapshot.group_id) not in {row.id for row in rows}:
        return None
    message = "The leader's next write to the config topic will fail once; the worker then takes its id back by itself."
    return Finding("FENCE003", Severity.INFO, leader_id(snapshot.group_id), message)


def incomplete(listed: Answer[tuple[Listing, ...]]) -> list[Finding]:
    """FENCE004: a coordinator did not list its ids, so that ids beyond the task counts may be missing."""
    silent = [gap for gap in listed.gaps if gap.reason is Reason.NO_ANSWER]
    findings = [
        Finding(
            "FENCE004",
            Severity.WARNING,
            gap.subject,
            f"Its transactional ids are not listed: {gap.detail}. Ids that only it knows may be missing here.",
            "Look at the broker, and fence again.",
        )
        for gap in silent
    ]
    return [*findings, *gap_findings(gap for gap in listed.gaps if gap not in silent)]


def check_wish(wish: Wish, group_id: str | None) -> None:
    """Raises ``BadInput`` for a wish of nothing, and for connectors or the leader of no group."""
    if not (wish.connectors or wish.ids or wish.prefixes or wish.leader):
        hint = "Name connectors, or give --transactional-id, --prefix, --from-file or --leader."
        raise BadInput("Nothing to fence is named", next_step=hint, code="usage")
    if "" in wish.prefixes:
        raise BadInput("An empty prefix matches every transactional id", next_step="Give a longer --prefix.")
    if "" in wish.ids:
        raise BadInput("A transactional id is empty", next_step="Give one: connectctl transactions list.")
    if group_id is None and (wish.connectors or wish.leader):
        raise BadInput(
            "group_id is not given, which names the ids of connectors and leaders", next_step="Give --group-id."
        )
