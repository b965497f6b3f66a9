"""The transaction boundaries of source connectors, and the state that their coordinators report: read only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.types import Unseen, unseen_by
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.connector import Connector, State
from connectctl.ops.connect.fenced_task_diagnosis import FailedTask
from connectctl.ops.connect.health import parts_in
from connectctl.ops.connect.offset_store import TOPIC, client_bootstrap, connects_to
from connectctl.ops.connect.source_transactions import (
    BOUNDARY,
    DEFAULT_INTERVAL_MS,
    DEFAULT_TIMEOUT_MS,
    INTERVAL,
    TIMEOUT,
    Boundary,
)
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.bootstrap import servers
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.connectors.fencing_diagnosis import Case, failed_tasks
from connectctl.ops.operations.fencing.observe import describe_ids

BROKER_LIMIT_MS = 900_000
"""``transaction.max.timeout.ms`` of brokers that report no other value."""


@dataclass(frozen=True)
class TransactionPacing:
    """A source connector's transactions. Times are in milliseconds.

    ``interval_configured`` and ``timeout_configured`` are False where Kafka's default is assumed. ``tasks`` have their
    transactions by number, and ``running`` are those that say so; ``failed`` may have failed by their producers, and come
    with what the coordinator says.
    ``store`` is the offsets topic, with the Kafka cluster's bootstrap servers, that their transactions write to.
    """

    name: str
    boundary: Boundary
    interval_ms: int
    interval_configured: bool
    timeout_ms: int
    timeout_configured: bool
    tasks: Mapping[int, Transaction] = field(default_factory=dict)
    running: frozenset[int] = frozenset()
    failed: tuple[tuple[FailedTask, Transaction | Code], ...] = ()
    store: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class TransactionFacts:
    """All that was seen; ``taken_at`` is in seconds since the epoch."""

    connectors: tuple[TransactionPacing, ...]
    enabled: bool | None
    taken_at: float
    unseen: tuple[Unseen, ...] = ()

    @cached_property
    def by_store(self) -> Counter[tuple[str, str]]:
        """The number of connectors that store offsets in each topic."""
        return Counter(each.store for each in self.connectors)


def observe(context: CheckContext, now: float) -> TransactionFacts:
    """Observe the transactions of all connectors of ``context``; ``now`` in seconds since the epoch."""
    failed = {each.name: _failed(context, each) for each in context.sources}
    seen, unseen = _described(context, [task for tasks in failed.values() for task in tasks])
    found = []
    for each in context.sources:
        tasks = {
            n: known
            for n in each.tasks
            if isinstance(known := seen.get(task_id(context.group.id, each.name, n)), Transaction)
        }
        reported = tuple((task, seen[task.id]) for task in failed[each.name] if task.id in seen)
        found.append(paced(context, each, tasks, reported))
    return TransactionFacts(tuple(found), context.enabled, now, unseen)


def paced(
    context: CheckContext,
    each: Connector,
    tasks: Mapping[int, Transaction],
    failed: tuple[tuple[FailedTask, Transaction | Code], ...] = (),
) -> TransactionPacing:
    """What the configuration of ``each`` makes of its transactions, and what its coordinators say of its time-out."""
    boundary = each.config.get(BOUNDARY, Boundary.POLL).strip().lower()
    interval, timeout = _number(each.config.get(INTERVAL)), _number(each.config.get(TIMEOUT))
    if interval is None:
        interval = _number(context.worker_property("offset.flush.interval.ms"))
    live = {known.timeout_ms for n, known in tasks.items() if _is_its_own(each, n, known)}
    if timeout is None:
        # The coordinator stores the value that the producer requested, wherever that was set.
        timeout = min(live) if live else _number(context.worker_property("producer.transaction.timeout.ms"))
    return TransactionPacing(
        name=each.name,
        boundary=Boundary(boundary) if boundary in set(Boundary) else Boundary.POLL,
        interval_ms=DEFAULT_INTERVAL_MS if interval is None else interval,
        interval_configured=interval is not None,
        timeout_ms=DEFAULT_TIMEOUT_MS if timeout is None else timeout,
        timeout_configured=timeout is not None,
        tasks=tasks,
        running=frozenset(n for n in each.tasks if n in parts_in(each, State.RUNNING)),
        failed=failed,
        store=(each.config.get(TOPIC) or context.internal.get("offsets", ""), _home(context, each)),
    )


def _home(context: CheckContext, each: Connector) -> str:
    """The Kafka cluster of its transactions, in a spelling that can be compared."""
    return ",".join(sorted(servers(client_bootstrap(each.config, "producer", context.edges.bootstrap))))


def _is_its_own(each: Connector, task: int, known: Transaction) -> bool:
    """Whether the time-out is the task's: the fencing client leaves another one, until the task begins to write."""
    return task in parts_in(each, State.RUNNING) and known.state != "Empty" and known.timeout_ms > 0


def _number(text: str | None) -> int | None:
    return whole_number(text)


def _failed(context: CheckContext, each: Connector) -> Sequence[FailedTask]:
    known = context.state.connectors.get(each.name) if context.state else None
    return failed_tasks(Case(context.group.id, each, known, context.written, context.directory))


def _described(
    context: CheckContext, failed: Sequence[FailedTask]
) -> tuple[dict[str, Transaction | Code], tuple[Unseen, ...]]:
    """What the coordinators say of the tasks' ids; of those that are on the workers' Kafka cluster."""
    if context.enabled is False and not failed:
        return {}, ()
    away = [
        each.name
        for each in context.sources
        if context.enabled and not connects_to(each.config, "producer", context.edges.bootstrap)
    ]
    unseen = tuple(
        Unseen(f"the transactions of {name}", "they are on another Kafka cluster", f"connectctl fence {name} --dry-run")
        for name in away
    )
    ids = [
        task_id(context.group.id, each.name, n) for each in context.sources if each.name not in away for n in each.tasks
    ]
    if not ids:
        return {}, unseen
    try:
        return describe_ids(context.edges.transactions(), ids), unseen
    except ConnectctlError as e:
        return {}, (*unseen, unseen_by("the transactions of source tasks", e))
