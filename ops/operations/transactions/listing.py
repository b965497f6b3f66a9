"""Lists transactional ids with their transactions and their owners, by filters."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from connectctl.ops.clients.protocols import GroupOffsetWrites, TransactionCalls
from connectctl.ops.connect.transactional_ids import (
    LEADER,
    TaskRef,
    TransactionalIdIndex,
    ambiguities,
    task_id_prefix,
)
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, did_you_mean
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.acls import ANY
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, ErrorAction, failure, verdict
from connectctl.ops.kafka.offset_commits import TOPIC as OFFSETS_TOPIC
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import STATES, Transaction
from connectctl.ops.kafka.visibility import (
    Gap,
    Observation,
    Reason,
    describe_topic,
    gap_findings,
    whole,
)
from connectctl.ops.operations.fencing.observe import describe_ids
from connectctl.ops.operations.fencing.planning import incomplete


@dataclass(frozen=True)
class PendingOffsets:
    """The ``partitions`` of which offsets of ``group`` are pending."""

    group: str
    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"{self.group}: {', '.join(map(str, self.partitions))}"

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        partitions = [{"topic": topic, "partition": number} for topic, number in self.partitions]
        return {"groupId": self.group, "topicPartitions": partitions}


def pending_offsets(
    calls: TransactionCalls, groups: GroupOffsetWrites, transactions: Iterable[Transaction]
) -> dict[str, tuple[PendingOffsets, ...]]:
    """Return the pending offsets by the transactional id that holds them, or that may hold them
    where several open transactions have the group's partition of ``__consumer_offsets``. Of groups
    that have committed nothing before, and that this principal may not describe, nothing is seen.
    """
    holders: dict[int, list[str]] = {}
    for each in transactions:
        for topic_partition in each.partitions if each.is_open else ():
            if topic_partition.topic == OFFSETS_TOPIC:
                holders.setdefault(topic_partition.partition, []).append(each.id)
    found: dict[str, tuple[PendingOffsets, ...]] = {}
    if not holders:
        return found
    with suppress(ConnectctlError):
        count = len(calls.topic_partitions([OFFSETS_TOPIC]))
        for group in sorted(groups.names()) if count else ():
            ids = holders.get(coordinator_partition(group, count), [])
            if ids and (topic_partitions := _pending(groups, group)):
                found |= {
                    id_: (*found.get(id_, ()), PendingOffsets(group, topic_partitions))
                    for id_ in ids
                }
    return found


def _pending(groups: GroupOffsetWrites, group: str) -> tuple[TopicPartition, ...]:
    try:
        return tuple(sorted(groups.pending(group, groups.committed(group))))
    except NotAuthorized:
        return ()


@dataclass(frozen=True)
class Criteria:
    """The filter of transactions. ``longer_than`` is in seconds; ``connectors`` belong to
    ``group_id``; empty: all.
    """

    states: tuple[str, ...] = ()
    longer_than: float | None = None
    prefixes: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    open_only: bool = False


def known_states(states: Iterable[str]) -> tuple[str, ...]:
    """Return the states in Kafka's spelling. Raises ``BadInput`` for an unknown state."""
    by_name = {state.lower(): state for state in STATES}
    names = {state: by_name.get(state.lower().replace("-", "")) for state in states}
    if unknown := [state for state, name in names.items() if name is None]:
        raise BadInput(
            f"Unknown state: {unknown[0]}", next_step=f"Known states: {', '.join(STATES)}."
        )
    return tuple(filter(None, names.values()))


@dataclass(frozen=True)
class Owned:
    """A transaction and the tasks with its transactional id. ``pending`` are the offsets of groups
    that it may hold.
    """

    transaction: Transaction
    owners: tuple[TaskRef, ...]
    leader_of: str | None = None
    pending: tuple[PendingOffsets, ...] = ()

    @property
    def known(self) -> bool:
        """Return whether the owner is known: a task or the leader of a group."""
        return bool(self.owners) or self.leader_of is not None

    @property
    def owner(self) -> TaskRef | None:
        return self.owners[0] if self.owners else None

    def as_json(self, now: float) -> dict[str, Any]:
        """Return the JSON of the transaction; ``now`` in seconds since the epoch."""
        found = self.transaction
        seconds = found.seconds_open(now)
        return {
            "transactionalId": found.id,
            "connector": self.owner.connector if self.owner else None,
            "task": self.owner.task if self.owner else None,
            "groupId": self.owner.group if self.owner else self.leader_of,
            "leader": self.leader_of is not None,
            "state": found.state,
            "producerId": found.producer_id,
            "producerEpoch": found.epoch,
            "timeoutMs": found.timeout_ms,
            "startedMs": found.started_ms,
            "openSeconds": None if seconds is None else round(seconds, 3),
            "coordinator": found.coordinator,
            "topicPartitions": [
                {"topic": p.topic, "partition": p.partition} for p in found.partitions
            ],
            "pendingOffsets": [each.as_json() for each in self.pending],
        }


@dataclass(frozen=True)
class Transactions:
    """The transactions, with findings about missing and ambiguous ones."""

    found: tuple[Owned, ...]
    findings: tuple[Finding, ...]


def owned(transaction: Transaction, directory: TransactionalIdIndex) -> Owned:
    id = transaction.id
    leader = id.removeprefix(LEADER) if directory.is_leader(id) else None
    return Owned(transaction, directory.owners(id), leader)


def with_pending(
    calls: TransactionCalls, groups: GroupOffsetWrites, found: Iterable[Owned]
) -> tuple[Owned, ...]:
    """Return ``found`` with the pending offsets that the open transactions hold."""
    found = tuple(found)
    pending = pending_offsets(calls, groups, (each.transaction for each in found))
    return tuple(replace(each, pending=pending.get(each.transaction.id, ())) for each in found)


def find(
    calls: TransactionCalls,
    directory: TransactionalIdIndex,
    criteria: Criteria,
    group_id: str | None,
    now: float,
) -> Transactions:
    """Return all transactions that match the filter; ``now`` in seconds since the epoch."""
    prefixes = criteria.prefixes or tuple(
        task_id_prefix(str(group_id), connector) for connector in criteria.connectors
    )
    listed = calls.listed(states=criteria.states, prefixes=prefixes)
    silent = [gap for gap in listed.gaps if gap.reason is Reason.NO_ANSWER]
    if not listed.seen and silent:
        code = silent[0].detail or ""
        raise ConnectctlError("No broker lists its transactions", why=code, code=code)
    if not listed.seen:
        # An empty list with gaps is not a result.
        whole(listed, "the transactional ids", proven=False)
    described = describe_ids(calls, [listing.id for listing in listed.seen])
    denied = {id: state for id, state in described.items() if not isinstance(state, Transaction)}
    if denied and len(denied) == len(described):
        id_, reason = next(
            (id, state) for id, state in described.items() if isinstance(state, Code)
        )
        raise failure("No transaction can be described", verdict(DESCRIBE, reason, id_), reason)
    found = [
        owned(state, directory) for state in described.values() if isinstance(state, Transaction)
    ]
    chosen = tuple(sorted(matching(found, criteria, now), key=lambda entry: entry.transaction.id))
    hidden = gap_findings(gap for entry in chosen for gap in hidden_topics(entry.transaction))
    doubts = ambiguities(directory, (entry.transaction.id for entry in chosen))
    return Transactions(chosen, (*incomplete(listed), *hidden, *doubts))


def hidden_topics(transaction: Transaction) -> tuple[Gap, ...]:
    """Return the gap of an open transaction without partitions: coordinators omit topics that may
    not be described.

    An open transaction has at least one partition (``TransactionMetadata``). A transaction with
    only some omitted cannot be recognised.
    """
    if transaction.state != "Ongoing" or transaction.partitions:
        return ()
    return (Gap(f"partitions of {transaction.id}", Reason.NOT_AUTHORIZED, describe_topic(ANY)),)


def check_connectors(
    found: Transactions,
    directory: Observation[TransactionalIdIndex],
    criteria: Criteria,
    group_id: str | None,
) -> None:
    """Raise ``BadInput`` for an unknown connector without transactions, ``NotAuthorized`` if this
    principal may not know it.
    """
    known = directory.seen.connectors.get(str(group_id), frozenset())
    traces = {owner.connector for transaction in found.found for owner in transaction.owners}
    unknown = [name for name in criteria.connectors if name not in known and name not in traces]
    if unknown:
        whole(directory, "the connectors", proven=False)
        hint = did_you_mean(unknown[0], known, "See connectctl connectors list.")
        raise BadInput(
            f"Connector not found: {', '.join(unknown)}", next_step=hint, code="unknown-connector"
        )


def matching(found: Iterable[Owned], criteria: Criteria, now: float) -> Iterable[Owned]:
    """Yield the transactions that match the criteria which coordinators do not filter, and their
    states, which may have changed.
    """
    for candidate in found:
        seconds = candidate.transaction.seconds_open(now)
        if criteria.states and candidate.transaction.state not in criteria.states:
            continue
        if criteria.open_only and not candidate.transaction.is_open:
            continue
        if criteria.longer_than is not None and (seconds is None or seconds < criteria.longer_than):
            continue
        if criteria.connectors and not any(
            owner.connector in criteria.connectors for owner in candidate.owners
        ):
            continue
        yield candidate


def describe_one(calls: TransactionCalls, directory: TransactionalIdIndex, id: str) -> Owned:
    """Return one transaction. Raises ``ConnectctlError`` if no coordinator knows it."""
    found = describe_ids(calls, [id])[id]
    if isinstance(found, Transaction):
        return owned(found, directory)
    answer = verdict(DESCRIBE, found, id)
    if answer.move is ErrorAction.ABSENT:
        hint = (
            "It never existed, or expired (transactional.id.expiration.ms). See connectctl "
            "transactions list."
        )
        raise ConnectctlError(
            f"No coordinator knows the transactional id {id}", next_step=hint, code="not-found"
        )
    raise failure(f"The transactional id {id} cannot be described", answer, found)
