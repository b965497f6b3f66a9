"""What a person wants fenced, what was seen, and what becomes of each id: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from connectctl.ops.connect.transactional_ids import Directory, Owner
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import Problem
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Gap


@dataclass(frozen=True)
class Wish:
    """What to fence. ``leader`` allows leaders' ids, and wishes for the group's own; ``create`` allows unknown ids."""

    connectors: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    leader: bool = False
    create: bool = False
    force: bool = False


@dataclass(frozen=True)
class Reach:
    """For how many tasks a connector has ids: by the task count record, and by its current task configs."""

    record: int = 0
    configs: int = 0

    @property
    def tasks(self) -> int:
        """The further of the two."""
        return max(self.record, self.configs)


@dataclass(frozen=True)
class Snapshot:
    """All that the planner may look at.

    ``left_alone`` are ids that a prefix matched and must not, with the reason. ``taken_at`` is in seconds since the epoch.
    ``gaps`` are groups that were not seen, whose tasks may run with the ids. ``unlisted``: more ids than these may be meant.
    """

    cluster_id: str
    group_id: str | None
    taken_at: float
    ids: tuple[str, ...]
    described: Mapping[str, Transaction | Code]
    directory: Directory
    running: frozenset[Owner]
    left_alone: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unlisted: bool = False


class Action(StrEnum):
    """What the plan has for an id."""

    FENCE = "fence"
    CREATE = "create"
    LEAVE = "leave alone"
    SKIP = "skip"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class Row:
    """An id in the plan: whose it is, its transaction, the tasks that run with it, what will be done or why nothing will."""

    id: str
    action: Action
    owners: tuple[Owner, ...] = ()
    transaction: Transaction | None = None
    running: tuple[Owner, ...] = ()
    problem: Problem | None = None

    @property
    def connector(self) -> str | None:
        """The connector that the id belongs to, the first where it is ambiguous."""
        return self.owners[0].connector if self.owners else None

    @property
    def task(self) -> int | None:
        """The task that the id belongs to."""
        return self.owners[0].task if self.owners else None

    def as_json(self, now: float) -> dict[str, Any]:
        """The row as a dry run gives it to scripts; ``now`` in seconds since the epoch."""
        found = self.transaction
        seconds = found.seconds_open(now) if found else None
        return {
            "action": self.action.value,
            "state": found.state if found else None,
            "openSeconds": None if seconds is None else round(seconds, 3),
            "topicPartitions": [{"topic": p.topic, "partition": p.partition} for p in found.partitions]
            if found
            else [],
            "running": bool(self.running),
        }


@dataclass(frozen=True)
class FencePlan:
    """The rows in the order they were asked for, with findings; ``taken_at`` in seconds since the epoch.

    ``gaps`` are groups that were not seen, whose tasks may run with ids that have no owner here. ``unlisted``: a coordinator
    did not list its ids, or this principal may not see some that begin as they were asked for.
    """

    cluster_id: str
    taken_at: float
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unlisted: bool = False

    @cached_property
    def to_fence(self) -> tuple[Row, ...]:
        """The rows for which a request will be sent."""
        return tuple(row for row in self.rows if row.action in (Action.FENCE, Action.CREATE))

    @property
    def essence(self) -> frozenset[tuple[str, Action, tuple[Owner, ...]]]:
        """What a person agrees to. Epochs and transactions of live tasks change all the time and are no part of it."""
        return frozenset((row.id, row.action, row.running) for row in self.rows)


class Fate(StrEnum):
    """What became of an id."""

    FENCED = "fenced"
    UNKNOWN = "unknown"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class IdResult:
    """What became of one id. Epochs are None where there was none, or none is known."""

    id: str
    fate: Fate
    connector: str | None = None
    task: int | None = None
    producer_id: int | None = None
    epoch_before: int | None = None
    epoch_after: int | None = None
    aborted: bool = False
    problem: Problem | None = None

    def as_json(self) -> dict[str, Any]:
        """The result as scripts get it."""
        return {
            "transactionalId": self.id,
            "connector": self.connector,
            "task": self.task,
            "outcome": self.fate.value,
            "producerId": self.producer_id,
            "epochBefore": self.epoch_before,
            "epochAfter": self.epoch_after,
            "abortedTransaction": self.aborted,
            "error": {"code": self.problem.code, "message": self.problem.message} if self.problem else None,
        }
