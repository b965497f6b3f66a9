"""Observes the transaction boundaries of source connectors, and the transactions that their
coordinators report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from connectctl.ops.checks.context import CheckContext
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
from connectctl.ops.core.unseen import Unseen, unseen_by
from connectctl.ops.kafka.bootstrap import servers
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.connectors.fencing_diagnosis import Case, failed_tasks
from connectctl.ops.operations.fencing.observe import describe_ids

BROKER_LIMIT = "transaction.max.timeout.ms"


@dataclass(frozen=True)
class TransactionPacing:
    """A source connector's transactions. Times are in milliseconds.

    ``interval_configured`` and ``timeout_configured`` are False if Kafka's default is assumed.
    ``tasks`` have their transactions by number, and ``running`` are those with the status RUNNING.
    ``failed`` may have failed because of their producers, and have the coordinator's answer.
    ``store`` is the offsets topic that their transactions write to, with the bootstrap servers of
    its Kafka cluster. ``broker_limit_ms`` is the longest time-out that all of its brokers accept,
    None if it is unknown.
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
    broker_limit_ms: int | None = None


@dataclass(frozen=True)
class TransactionFacts:
    """The observations; ``taken_at`` is in seconds since the epoch."""

    connectors: tuple[TransactionPacing, ...]
    enabled: bool | None
    taken_at: float
    unseen: tuple[Unseen, ...] = ()

    @cached_property
    def by_store(self) -> Counter[tuple[str, str]]:
        """Return the number of connectors that store offsets in each topic."""
        return Counter(connector.store for connector in self.connectors)


def observe(context: CheckContext, now: float) -> TransactionFacts:
    """Observe the transactions of all connectors of ``context``; ``now`` in seconds since the
    epoch.
    """
    failed = {source.name: _failed(context, source) for source in context.sources}
    described, unseen = _described(context, [task for tasks in failed.values() for task in tasks])
    limit = _broker_limit(context) if context.enabled is not False or any(failed.values()) else None
    found = []
    for source in context.sources:
        tasks = {
            n: known
            for n in source.tasks
            if isinstance(
                known := described.get(task_id(context.group.id, source.name, n)), Transaction
            )
        }
        reported = tuple(
            (task, described[task.id]) for task in failed[source.name] if task.id in described
        )
        here = connects_to(source.config, "producer", context.edges.bootstrap)
        pacing = paced(context, source, tasks, reported)
        found.append(replace(pacing, broker_limit_ms=limit if here else None))
    return TransactionFacts(tuple(found), context.enabled, now, unseen)


def _broker_limit(context: CheckContext) -> int | None:
    """Return the smallest ``transaction.max.timeout.ms`` of the brokers of the workers; None if one
    of them does not report it, which the area of the brokers reports.
    """
    if not context.sources:
        return None
    try:
        answers = context.edges.brokers().settings([BROKER_LIMIT])
    except ConnectctlError:
        return None
    limits = [
        None if isinstance(answer, ConnectctlError) else whole_number(answer.get(BROKER_LIMIT))
        for answer in answers.values()
    ]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known and len(known) == len(limits) else None


def paced(
    context: CheckContext,
    connector: Connector,
    tasks: Mapping[int, Transaction],
    failed: tuple[tuple[FailedTask, Transaction | Code], ...] = (),
) -> TransactionPacing:
    """Return the transactions of ``connector`` by its configuration, and by the time-outs that
    coordinators report.
    """
    boundary = connector.config.get(BOUNDARY, Boundary.POLL).strip().lower()
    interval, timeout = (
        whole_number(connector.config.get(INTERVAL)),
        whole_number(connector.config.get(TIMEOUT)),
    )
    if interval is None:
        interval = whole_number(context.worker_property("offset.flush.interval.ms"))
    reported = {known.timeout_ms for n, known in tasks.items() if _is_its_own(connector, n, known)}
    if timeout is None:
        # The coordinator stores the value that the producer requested, wherever that was set.
        timeout = (
            min(reported)
            if reported
            else whole_number(context.worker_property("producer.transaction.timeout.ms"))
        )
    return TransactionPacing(
        name=connector.name,
        boundary=Boundary(boundary) if boundary in set(Boundary) else Boundary.POLL,
        interval_ms=DEFAULT_INTERVAL_MS if interval is None else interval,
        interval_configured=interval is not None,
        timeout_ms=DEFAULT_TIMEOUT_MS if timeout is None else timeout,
        timeout_configured=timeout is not None,
        tasks=tasks,
        running=frozenset(n for n in connector.tasks if n in parts_in(connector, State.RUNNING)),
        failed=failed,
        store=(
            connector.config.get(TOPIC) or context.internal.get("offsets", ""),
            _cluster_of(context, connector),
        ),
    )


def _cluster_of(context: CheckContext, connector: Connector) -> str:
    """Return the Kafka cluster of its transactions, in a spelling that can be compared."""
    return ",".join(
        sorted(servers(client_bootstrap(connector.config, "producer", context.edges.bootstrap)))
    )


def _is_its_own(connector: Connector, task: int, known: Transaction) -> bool:
    """Return whether the time-out is the task's.

    The client that fences leaves another time-out, until the task begins to write.
    """
    return (
        task in parts_in(connector, State.RUNNING)
        and known.state != "Empty"
        and known.timeout_ms > 0
    )


def _failed(context: CheckContext, connector: Connector) -> Sequence[FailedTask]:
    known = context.state.connectors.get(connector.name) if context.state else None
    return failed_tasks(
        Case(context.group.id, connector, known, context.written, context.directory)
    )


def _described(
    context: CheckContext, failed: Sequence[FailedTask]
) -> tuple[dict[str, Transaction | Code], tuple[Unseen, ...]]:
    """Return the coordinators' answers about the tasks' ids that are on the workers' Kafka
    cluster.
    """
    if context.enabled is False and not failed:
        return {}, ()
    elsewhere = [
        source.name
        for source in context.sources
        if context.enabled and not connects_to(source.config, "producer", context.edges.bootstrap)
    ]
    unseen = tuple(
        Unseen(
            f"the transactions of {name}",
            "they are on another Kafka cluster",
            f"connectctl fence {name} --dry-run",
        )
        for name in elsewhere
    )
    ids = [
        task_id(context.group.id, source.name, n)
        for source in context.sources
        if source.name not in elsewhere
        for n in source.tasks
    ]
    if not ids:
        return {}, unseen
    try:
        return describe_ids(context.edges.transactions(), ids), unseen
    except ConnectctlError as e:
        return {}, (*unseen, unseen_by("the transactions of source tasks", e))
