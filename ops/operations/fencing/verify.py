"""Proves a fence afterwards: the coordinators have what was returned, and nothing older is open where it was.

An epoch that grew proves nothing: with transaction version 2 it grows at every commit, and the producer id changes when
epochs run out. What proves the fence is that the coordinator's entry for the id is the very one that this fencing
returned, and that the partitions which the older producer held know of no open transaction of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.kafka.error_handling import Code, name_of
from connectctl.ops.kafka.fence_attempt import Problem
from connectctl.ops.kafka.transactions import PartitionProducer, Place, Transaction
from connectctl.ops.operations.fencing.snapshot import Fate, IdResult

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls

Held = Mapping[str, Sequence[Transaction]]
PATIENCE = 5.0
"""Seconds in which coordinators and partitions must show the fence; it is there when InitProducerId is answered."""
_PAUSE = 0.1


@dataclass(frozen=True)
class Proof:
    """The results, those unproven turned into failures, and what else is worth telling."""

    results: tuple[IdResult, ...]
    findings: tuple[Finding, ...]


def prove(
    calls: TransactionCalls,
    results: Sequence[IdResult],
    held: Held,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Proof:
    """Look at every fenced id and at the partitions it held, until all is proven or ``PATIENCE`` is over."""
    fenced = {result.id: result for result in results if result.fate is Fate.FENCED}
    places = sorted({place for id in fenced for older in held.get(id, ()) for place in older.partitions})
    deadline = now() + PATIENCE
    while True:
        described = calls.describe(list(fenced)) if fenced else {}
        producers = calls.producers(places)
        judged = {
            id: judge(result, described.get(id, Code.NO_ANSWER), held.get(id, ()), producers)
            for id, result in fenced.items()
        }
        if now() >= deadline or not any(isinstance(verdict, Problem) for verdict in judged.values()):
            break
        sleep(_PAUSE)
    proven = [_after(result, judged.get(result.id)) for result in results]
    return Proof(tuple(proven), tuple(v for v in judged.values() if isinstance(v, Finding)))


def judge(
    result: IdResult,
    found: Transaction | Code,
    held: Sequence[Transaction],
    producers: Mapping[Place, tuple[PartitionProducer, ...] | Code],
) -> Problem | Finding | None:
    """What keeps the fence of one id from being proven; a finding where it stands, and something is worth telling."""
    if not isinstance(found, Transaction):
        message = f"Fenced, but it cannot be proven: the coordinator answers {name_of(found)} when asked for the id."
        return Problem("not-proven", message)
    for older in held:
        for place in older.partitions:
            known = producers.get(place, Code.NO_ANSWER)
            if isinstance(known, Code):
                if known is not Code.UNKNOWN_TOPIC_OR_PARTITION:
                    return _unseen(result.id, place, known)
            elif any(_is_older(producer, older, result) for producer in known):
                message = f"Fenced, but a transaction of the older producer is still open on {place}."
                hint = f"See connectctl transactions hanging --topic {place.topic}."
                return Problem("transaction-still-open", f"{message} {hint}")
    if found.who == (result.producer_id, result.epoch_after):
        return None
    return _moved_on(result, found)


def _is_older(producer: PartitionProducer, older: Transaction, result: IdResult) -> bool:
    if producer.start_offset is None or producer.producer_id != older.producer_id:
        return False
    return producer.producer_id != result.producer_id or producer.epoch < (result.epoch_after or 0)


def _moved_on(result: IdResult, found: Transaction) -> Problem | Finding:
    """FENCE005: a newer producer has taken the id since; or a problem, where an older epoch is back."""
    if found.producer_id == result.producer_id and found.epoch < (result.epoch_after or 0):
        message = f"Fenced at epoch {result.epoch_after}, but the coordinator has fallen back to epoch {found.epoch}."
        return Problem("not-proven", f"{message} Fence it again.")
    message = (
        f"A newer producer has taken this id since it was fenced (now producer {found.producer_id}, epoch {found.epoch}, "
        f"{found.state}). The older ones stay fenced."
    )
    return Finding("FENCE005", Severity.WARNING, result.id, message, "If its task should be stopped, see who runs it.")


def _unseen(id: str, place: Place, code: Code) -> Finding:
    """FENCE006: a partition that the fenced transaction held cannot be looked at, so that its end is not proven."""
    message = f"Its open transaction held {place}, which cannot be looked at ({code.name}) to prove that it ended."
    return Finding("FENCE006", Severity.WARNING, id, message, "Give this principal the right Read on the topic.")


def _after(result: IdResult, verdict: Problem | Finding | None) -> IdResult:
    if not isinstance(verdict, Problem):
        return result
    return replace(result, fate=Fate.FAILED, problem=verdict)
