"""Diagnoses a connector whose tasks failed because of their producers' epochs, or wait for a round
of fencing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectctl.ops.clients.protocols import TransactionCalls
from connectctl.ops.connect.config_topic import COMMIT, FENCING, ConfiguredConnector
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import Connector, State, Status, requested_state
from connectctl.ops.connect.fenced_task_diagnosis import (
    FailedTask,
    explain,
    may_be_fenced,
    round_failed,
)
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.connect.status_topic import TASK
from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex, task_id
from connectctl.ops.connect.zombie_fencing import Backoff, FencingRound, diagnose, ids_to_fence
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.fencing.observe import describe_ids

NOT_KNOWN = Rule("FENCE009", Severity.INFO)


@dataclass(frozen=True)
class Case:
    """A connector to diagnose: its state on the workers, its configuration in the config topic, and
    the times of its records.

    ``written`` has the time of the newest record of each key of the config and status topics, in
    seconds since the epoch. ``versions`` are the workers', none if they are unknown.
    """

    group: str
    connector: Connector
    configured: ConfiguredConnector | None
    written: Mapping[str, float]
    directory: TransactionalIdIndex
    workers: int = 1
    versions: Sequence[str] = ()


def write_times(records: Iterable[ConsumerRecord]) -> dict[str, float]:
    """Return the time of the newest record of each key, in seconds since the epoch."""
    newest = sorted(
        (r for r in records if r.key and r.timestamp is not None), key=lambda r: r.offset
    )
    return {(r.key or b"").decode(errors="replace"): (r.timestamp or 0) / 1000 for r in newest}


def needs_diagnosis(connector: Connector, configured: ConfiguredConnector | None) -> bool:
    """Return whether the connector needs a diagnosis; a healthy one causes no request."""
    traces = [status.trace for _, status in _failed_tasks(connector)]
    pending = configured is not None and configured.fencing_pending and configured.task_count > 0
    return pending or any(may_be_fenced(trace) or round_failed(trace) for trace in traces)


def _failed_tasks(connector: Connector) -> list[tuple[int, Status]]:
    return [
        (part, status)
        for part, status in failed_parts(connector).items()
        if part != CONNECTOR_INSTANCE
    ]


def findings(calls: TransactionCalls, case: Case, now: float) -> list[Finding]:
    """Return the findings on fenced tasks and on a round of fencing; ``now`` in seconds since the
    epoch.
    """
    failed = list(failed_tasks(case))
    described = describe_ids(calls, [task.id for task in failed])
    found = [explain(task, described[task.id]) for task in failed]
    round_ = round_of(calls, case, now)
    found.append(diagnose(round_) if round_ else None)
    return [finding for finding in found if finding is not None]


def unknown_finding(connector: str, error: ConnectctlError) -> Finding:
    message = f"Its transaction coordinators could not be read: {error}"
    return NOT_KNOWN.found(connector, message)


def failed_tasks(case: Case) -> Sequence[FailedTask]:
    """Return the FAILED tasks whose traces may be those of a fenced producer."""
    name = case.connector.name
    found = []
    for number, status in _failed_tasks(case.connector):
        if not may_be_fenced(status.trace):
            continue
        id = task_id(case.group, name, number)
        owner = TaskRef(case.group, name, number)
        others = tuple(other for other in case.directory.owners(id) if other != owner)
        found.append(
            FailedTask(
                owner,
                id,
                status.trace or "",
                failed_at=case.written.get(f"{TASK}{name}-{number}"),
                committed_at=case.written.get(COMMIT + name),
                round_at=case.written.get(FENCING + name),
                others=others,
            )
        )
    return found


def round_of(calls: TransactionCalls, case: Case, now: float) -> FencingRound | None:
    """Return the round of fencing that keeps the connector's tasks from starting, None if there is
    none.
    """
    configured = case.configured
    if configured is None or requested_state(case.connector) is not State.RUNNING:
        return None
    pending = configured.fencing_pending
    number = ids_to_fence(configured.task_count_record, configured.task_count, pending)
    failed = [n for n, status in _failed_tasks(case.connector) if round_failed(status.trace)]
    if not number:
        return None
    ids = [task_id(case.group, configured.name, n) for n in range(number)]
    described = [
        state for state in describe_ids(calls, ids).values() if isinstance(state, Transaction)
    ]
    by_coordinator = Counter(transaction.coordinator for transaction in described)
    # Stopped tasks left the state Complete…; only the InitProducerId of the round changes it to
    # Empty.
    unfenced = Counter(
        transaction.coordinator for transaction in described if transaction.state != "Empty"
    )
    began = case.written.get(COMMIT + configured.name)
    return FencingRound(
        connector=configured.name,
        ids=tuple(by_coordinator.values()) or (number,),
        left=tuple(unfenced[coordinator] for coordinator in by_coordinator),
        since=0.0 if began is None else max(0.0, now - began),
        backoff=Backoff.of(configured.config, case.versions),
        workers=case.workers,
        failed=tuple(failed),
        began=began,
    )
