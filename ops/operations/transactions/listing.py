"""Transactional ids with their transactions and their owners, as far as filters let them through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.transactional_ids import LEADER, TaskRef, TransactionalIdIndex, ambiguities
from connectctl.ops.core.errors import BadInput, ConnectctlError, did_you_mean
from connectctl.ops.kafka.acls import ANY
from connectctl.ops.kafka.error_handling import DESCRIBE, Code, ErrorAction, failure, verdict
from connectctl.ops.kafka.transactions import STATES, Transaction
from connectctl.ops.kafka.visibility import Gap, Reason, describe_topic, gap_findings, whole
from connectctl.ops.operations.fencing.observe import describe_ids
from connectctl.ops.operations.fencing.planning import incomplete
from connectctl.ops.operations.transactions.pending import PendingOffsets, pending_offsets

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import GroupOffsetWrites, TransactionCalls
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.kafka.visibility import Observation


@dataclass(frozen=True)
class Criteria:
    """Which transactions to list. ``longer_than`` is in seconds; ``connectors`` are those of ``group_id``; empty: all."""

    states: tuple[str, ...] = ()
    longer_than: float | None = None
    prefixes: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    open_only: bool = False


def known_states(given: Iterable[str]) -> tuple[str, ...]:
    """The states as Kafka writes them. Raises ``BadInput`` for what is none."""
    by_name = {state.lower(): state for state in STATES}
    names = {state: by_name.get(state.lower().replace("-", "")) for state in given}
    if unknown := [state for state, name in names.items() if name is None]:
        raise BadInput(f"Unknown state: {unknown[0]}", next_step=f"Known states: {', '.join(STATES)}.")
    return tuple(filter(None, names.values()))


@dataclass(frozen=True)
class Owned:
    """A transaction and the tasks whose id it has. ``pending`` are the offsets of consumer groups that it may hold."""

    transaction: Transaction
    owners: tuple[TaskRef, ...]
    leader_of: str | None = None
    pending: tuple[PendingOffsets, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the owner is known: a task or the leader of a group."""
        return bool(self.owners) or self.leader_of is not None

    @property
    def owner(self) -> TaskRef | None:
        return self.owners[0] if self.owners else None

    def as_json(self, now: float) -> dict[str, Any]:
        """The transaction as scripts get it; ``now`` in seconds since the epoch."""
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
            "topicPartitions": [{"topic": p.topic, "partition": p.partition} for p in found.partitions],
            "pendingOffsets": [each.as_json() for each in self.pending],
        }


@dataclass(frozen=True)
class Transactions:
    """What was found, with findings about what is missing or ambiguous."""

    found: tuple[Owned, ...]
    findings: tuple[Finding, ...]


def owned(transaction: Transaction, directory: TransactionalIdIndex) -> Owned:
    id = transaction.id
    leader = id.removeprefix(LEADER) if directory.is_leader(id) else None
    return Owned(transaction, directory.owners(id), leader)


def with_pending(calls: TransactionCalls, groups: GroupOffsetWrites, found: Iterable[Owned]) -> tuple[Owned, ...]:
    """Return ``found`` with the pending offsets that the open transactions hold."""
    found = tuple(found)
    pending = pending_offsets(calls, groups, (each.transaction for each in found))
    return tuple(replace(each, pending=pending.get(each.transaction.id, ())) for each in found)


def find(
    calls: TransactionCalls, directory: TransactionalIdIndex, criteria: Criteria, group_id: str | None, now: float
) -> Transactions:
    """All transactions that pass the filter; ``now`` in seconds since the epoch."""
    prefixes = criteria.prefixes or tuple(f"{group_id}-{connector}-" for connector in criteria.connectors)
    listed = calls.listed(states=criteria.states, prefixes=prefixes)
    silent = [gap for gap in listed.gaps if gap.reason is Reason.NO_ANSWER]
    if not listed.seen and silent:
        code = silent[0].detail or ""
        raise ConnectctlError("No broker lists its transactions", why=code, code=code)
    if not listed.seen:
        # Nothing at all, and something that may not be seen: that is not an answer.
        whole(listed, "the transactional ids", proven=False)
    described = describe_ids(calls, [listing.id for listing in listed.seen])
    denied = {id: what for id, what in described.items() if not isinstance(what, Transaction)}
    if denied and len(denied) == len(described):
        id_, reason = next((id, what) for id, what in described.items() if isinstance(what, Code))
        raise failure("No transaction can be described", verdict(DESCRIBE, reason, id_), reason)
    found = [owned(what, directory) for what in described.values() if isinstance(what, Transaction)]
    chosen = tuple(sorted(filter_(found, criteria, now), key=lambda each: each.transaction.id))
    hidden = gap_findings(gap for each in chosen for gap in hidden_topics(each.transaction))
    doubts = ambiguities(directory, (each.transaction.id for each in chosen))
    return Transactions(chosen, (*incomplete(listed), *hidden, *doubts))


def hidden_topics(transaction: Transaction) -> tuple[Gap, ...]:
    """What is missing where a transaction that is open shows no partition: coordinators leave out what may not be seen.

    An open transaction has one at least (``TransactionMetadata``); one of which some are left out cannot be told.
    """
    if transaction.state != "Ongoing" or transaction.partitions:
        return ()
    return (Gap(f"partitions of {transaction.id}", Reason.NOT_AUTHORIZED, describe_topic(ANY)),)


def check_connectors(
    found: Transactions, directory: Observation[TransactionalIdIndex], criteria: Criteria, group_id: str | None
) -> None:
    """Raises ``BadInput`` for a connector of which there is no trace, ``NotAuthorized`` where that cannot be said."""
    known = directory.seen.connectors.get(str(group_id), frozenset())
    traces = {owner.connector for each in found.found for owner in each.owners}
    unknown = [name for name in criteria.connectors if name not in known and name not in traces]
    if unknown:
        whole(directory, "the connectors", proven=False)
        hint = did_you_mean(unknown[0], known, "See connectctl connectors list.")
        raise BadInput(f"Connector not found: {', '.join(unknown)}", next_step=hint, code="unknown-connector")


def filter_(found: Iterable[Owned], criteria: Criteria, now: float) -> Iterable[Owned]:
    """Those that pass what coordinators do not filter by themselves, and their state once more: it changes meanwhile."""
    for each in found:
        seconds = each.transaction.seconds_open(now)
        if criteria.states and each.transaction.state not in criteria.states:
            continue
        if criteria.open_only and not each.transaction.is_open:
            continue
        if criteria.longer_than is not None and (seconds is None or seconds < criteria.longer_than):
            continue
        if criteria.connectors and not any(owner.connector in criteria.connectors for owner in each.owners):
            continue
        yield each


def show(calls: TransactionCalls, directory: TransactionalIdIndex, id: str) -> Owned:
    """One transaction. Raises ``ConnectctlError`` where no coordinator knows it."""
    found = describe_ids(calls, [id])[id]
    if isinstance(found, Transaction):
        return owned(found, directory)
    said = verdict(DESCRIBE, found, id)
    if said.move is ErrorAction.ABSENT:
        hint = "It never existed, or expired (transactional.id.expiration.ms). See connectctl transactions list."
        raise ConnectctlError(f"No coordinator knows the transactional id {id}", next_step=hint, code="not-found")
    raise failure(f"The transactional id {id} cannot be described", said, found)
