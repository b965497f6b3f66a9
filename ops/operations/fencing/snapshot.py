"""The request, the snapshot, the selection and the results of fencing: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import Problem
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Gap


@dataclass(frozen=True)
class FenceRequest:
    """The ids to fence. ``leader`` adds the id of the group's leader and allows leaders' ids;
    ``create`` allows unknown ids.
    """

    connectors: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    leader: bool = False
    create: bool = False
    force: bool = False


@dataclass(frozen=True)
class TaskIdRange:
    """The number of task ids of a connector: by its task count record, and by its current task
    configs.
    """

    record: int = 0
    configs: int = 0

    @property
    def tasks(self) -> int:
        return max(self.record, self.configs)


@dataclass(frozen=True)
class Snapshot:
    """The input of the planner.

    ``skipped`` are ids that matched but are not fenced, with the reason. ``taken_at`` is in seconds
    since the epoch. ``gaps`` are groups that could not be described; their tasks may use the ids.
    ``unsettled`` are groups that are rebalancing, whose running tasks are unknown. ``unlisted``:
    there may be more ids.
    """

    cluster_id: str
    group_id: str | None
    taken_at: float
    ids: tuple[str, ...]
    described: Mapping[str, Transaction | Code]
    directory: TransactionalIdIndex
    running: frozenset[TaskRef]
    skipped: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unlisted: bool = False
    unsettled: frozenset[str] = frozenset()
    without_ids: tuple[str, ...] = ()
    """Connectors of the request without exactly-once: see ``planning.without_ids``."""


class FenceAction(StrEnum):
    FENCE = "fence"
    CREATE = "create"
    LEAVE = "leave alone"
    SKIP = "skip"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class FenceTarget:
    """An id in the plan: its owners, its transaction, the running tasks that use it, and the
    action, or the problem.
    """

    id: str
    action: FenceAction
    owners: tuple[TaskRef, ...] = ()
    transaction: Transaction | None = None
    running: tuple[TaskRef, ...] = ()
    problem: Problem | None = None

    @property
    def connector(self) -> str | None:
        """Return the connector of the id, the first if it is ambiguous."""
        return self.owners[0].connector if self.owners else None

    @property
    def task(self) -> int | None:
        return self.owners[0].task if self.owners else None

    def as_json(self, now: float) -> dict[str, Any]:
        """Return the JSON of the target in a dry run; ``now`` in seconds since the epoch."""
        found = self.transaction
        seconds = found.seconds_open(now) if found else None
        return {
            "action": self.action.value,
            "state": found.state if found else None,
            "openSeconds": None if seconds is None else round(seconds, 3),
            "topicPartitions": [
                {"topic": p.topic, "partition": p.partition} for p in found.partitions
            ]
            if found
            else [],
            "running": bool(self.running),
        }


@dataclass(frozen=True)
class FenceSelection:
    """The selection of a request: its targets in its order, with findings; ``taken_at`` in seconds
    since the epoch.

    ``gaps`` are groups that could not be described; their tasks may use ids without an owner here.
    ``unlisted``: a coordinator did not list its ids, or this principal may lack the right to
    describe some that match the request.
    """

    cluster_id: str
    taken_at: float
    rows: tuple[FenceTarget, ...]
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unlisted: bool = False
    unsettled: frozenset[str] = frozenset()
    """Groups that are rebalancing, whose running tasks are unknown."""

    @cached_property
    def to_fence(self) -> tuple[FenceTarget, ...]:
        return tuple(
            row for row in self.rows if row.action in (FenceAction.FENCE, FenceAction.CREATE)
        )

    def connectors_of(self, group_id: str | None) -> tuple[str, ...]:
        """Return the connectors of the group with an id that will be fenced."""
        owners = [owner for row in self.to_fence for owner in row.owners if owner.group == group_id]
        return tuple(dict.fromkeys(owner.connector for owner in owners))

    @property
    def essence(self) -> frozenset[tuple[str, FenceAction, tuple[TaskRef, ...]]]:
        """Return the part that the user confirms, without the epochs and transactions of running
        tasks, which change continuously.
        """
        return frozenset((row.id, row.action, row.running) for row in self.rows)


class FenceOutcome(StrEnum):
    FENCED = "fenced"
    UNKNOWN = "unknown"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class IdResult:
    """The result of one id. Epochs are None if there was none or it is unknown."""

    id: str
    outcome: FenceOutcome
    connector: str | None = None
    task: int | None = None
    producer_id: int | None = None
    epoch_before: int | None = None
    epoch_after: int | None = None
    aborted: bool = False
    problem: Problem | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "transactionalId": self.id,
            "connector": self.connector,
            "task": self.task,
            "outcome": self.outcome.value,
            "producerId": self.producer_id,
            "epochBefore": self.epoch_before,
            "epochAfter": self.epoch_after,
            "abortedTransaction": self.aborted,
            "error": {"code": self.problem.code, "message": self.problem.message}
            if self.problem
            else None,
        }
