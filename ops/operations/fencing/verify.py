"""Verifies a fence: the coordinators have the returned producer and epoch, and no older transaction
is open.

A higher epoch alone proves nothing: with transaction version 2 it is bumped at every commit, and
the producer id changes when epochs are exhausted. The fence is verified if the coordinator's entry
for the id is the one that fencing returned, and if the partitions of the older producer have no
open transaction of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from connectctl.ops.clients.protocols import TransactionCalls
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.core.wait import observe_until
from connectctl.ops.kafka.error_handling import Code, name_of
from connectctl.ops.kafka.fence_attempt import Problem
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.operations.fencing.snapshot import FenceOutcome, IdResult

Held = Mapping[str, Sequence[Transaction]]
VERIFY_TIMEOUT = 5.0
"""Seconds within which coordinators and partitions must show the fence; it is in effect when
InitProducerId returns.
"""
_PAUSE = 0.1

NEWER_PRODUCER = Rule("FENCE005", Severity.WARNING)
UNVERIFIED = Rule("FENCE006", Severity.WARNING)


@dataclass(frozen=True)
class Verification:
    """The results, where unverified ones are failures, and the findings."""

    results: tuple[IdResult, ...]
    findings: tuple[Finding, ...]


def verify(
    calls: TransactionCalls,
    results: Sequence[IdResult],
    held: Held,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Verification:
    """Describe every fenced id and the partitions of its transaction, until verified or
    ``VERIFY_TIMEOUT``.
    """
    fenced = {result.id: result for result in results if result.outcome is FenceOutcome.FENCED}
    partitions = sorted(
        {partition for id in fenced for older in held.get(id, ()) for partition in older.partitions}
    )

    def verified() -> dict[str, Finding | Problem | None]:
        described = calls.describe(list(fenced)) if fenced else {}
        producers = calls.producers(partitions)
        return {
            id: verify_id(result, described.get(id, Code.NO_ANSWER), held.get(id, ()), producers)
            for id, result in fenced.items()
        }

    def clear(verdicts: dict[str, Finding | Problem | None]) -> bool:
        return not any(isinstance(verdict, Problem) for verdict in verdicts.values())

    verdicts = observe_until(verified, clear, VERIFY_TIMEOUT, _PAUSE, now=now, sleep=sleep)
    proven = [_after(result, verdicts.get(result.id)) for result in results]
    return Verification(
        tuple(proven), tuple(v for v in verdicts.values() if isinstance(v, Finding))
    )


def verify_id(
    result: IdResult,
    found: Transaction | Code,
    held: Sequence[Transaction],
    producers: Mapping[TopicPartition, tuple[PartitionProducer, ...] | Code],
) -> Problem | Finding | None:
    """Return the problem if the fence of one id is not verified, or a finding on a fence that is in
    effect; else None.
    """
    if not isinstance(found, Transaction):
        message = f"Fenced, but not verified: the coordinator returned {name_of(found)} for the id."
        return Problem("not-proven", message)
    for older in held:
        for partition in older.partitions:
            known = producers.get(partition, Code.NO_ANSWER)
            if isinstance(known, Code):
                if known is not Code.UNKNOWN_TOPIC_OR_PARTITION:
                    return _unverified(result.id, partition, known)
            elif any(_is_older(producer, older, result) for producer in known):
                message = (
                    f"Fenced, but a transaction of the older producer is still open on {partition}."
                )
                hint = f"See connectctl transactions hanging --topic {partition.topic}."
                return Problem("transaction-still-open", f"{message} {hint}")
    if found.who == (result.producer_id, result.epoch_after):
        return None
    return _moved_on(result, found)


def _is_older(producer: PartitionProducer, older: Transaction, result: IdResult) -> bool:
    if producer.start_offset is None or producer.producer_id != older.producer_id:
        return False
    return producer.producer_id != result.producer_id or producer.epoch < (result.epoch_after or 0)


def _moved_on(result: IdResult, found: Transaction) -> Problem | Finding:
    """Return the finding of a newer producer of the id (FENCE005), or the problem of an older
    epoch.
    """
    if found.producer_id == result.producer_id and found.epoch < (result.epoch_after or 0):
        message = (
            f"Fenced at epoch {result.epoch_after}, but the coordinator now has the older "
            f"epoch {found.epoch}."
        )
        return Problem("not-proven", f"{message} Fence it again.")
    message = (
        "A newer producer has used this id since it was fenced (now producer "
        f"{found.producer_id}, epoch {found.epoch}, {found.state}). Older producers stay fenced."
    )
    return NEWER_PRODUCER.found(
        result.id, message, "If its task should be stopped, find out which process runs it."
    )


def _unverified(id: str, partition: TopicPartition, code: Code) -> Finding:
    message = f"Could not verify that its open transaction ended on {partition} ({code.name})."
    return UNVERIFIED.found(id, message, "Grant this principal Read on the topic.")


def _after(result: IdResult, verdict: Problem | Finding | None) -> IdResult:
    if not isinstance(verdict, Problem):
        return result
    return replace(result, outcome=FenceOutcome.FAILED, problem=verdict)
