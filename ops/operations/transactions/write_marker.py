"""Ends a hanging transaction with the marker of its decision, which its coordinator will never
write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.core.wait import observe_until
from connectctl.ops.kafka.error_handling import MARKER, Code, ErrorAction, failure, verdict
from connectctl.ops.kafka.visibility import Gap, not_authorized, refused
from connectctl.ops.operations.transactions.hanging import (
    Hanging,
    matching,
    open_transactions,
    search,
)
from connectctl.ops.operations.transactions.outcome import TransactionResult

if TYPE_CHECKING:
    from connectctl.ops.kafka.transactions import PartitionProducer
    from connectctl.ops.operations.transactions.abort import EndContext

PAUSE = 0.2
"""Seconds before a marker that a leader could not write is sent again."""
_FINAL = (ErrorAction.DONE, ErrorAction.FAIL, ErrorAction.ABSENT)


@dataclass(frozen=True)
class MarkHanging(ResourceStep["EndContext"]):
    """Write the marker that the coordinator will never write. ``hanging`` is the transaction in the
    plan.
    """

    hanging: Hanging
    outcome: ClassVar[TransactionResult]
    done: ClassVar[str]

    def describe(self) -> str:
        producer = self.hanging.producer
        what = f"{self.outcome} the transaction of producer {producer.producer_id}"
        return f"{what} that hangs on {self.subject} since offset {producer.start_offset}"

    def is_done(self, context: EndContext) -> str | None:
        return None if self._open(context) else "it is no longer open"

    def apply(self, context: EndContext) -> str | None:
        self._check_unchanged(context)

        def mark() -> Code:
            commit = self.outcome is TransactionResult.COMMIT
            return context.calls.mark(
                self.hanging.topic_partition, self.hanging.producer, commit=commit
            )

        def is_final(code: Code) -> bool:
            # If a marker was written in spite of the error, the transaction is no longer open.
            return verdict(MARKER, code).move in _FINAL or not self._open(context)

        code = observe_until(
            mark, is_final, context.timeout, PAUSE, now=context.now, sleep=context.sleep
        )
        answer = verdict(MARKER, code, self.hanging.topic_partition.topic)
        if answer.move is not ErrorAction.DONE:
            raise failure(self._not_done, answer, code)
        if self._open(context):
            raise self._failure(
                "not-proven", "the marker was taken, and the transaction is still open", None
            )
        return f"{self.done}; no transaction is open there any more"

    def _check_unchanged(self, context: EndContext) -> None:
        """Raise ``ConnectctlError`` unless the same transaction still hangs: with version 1 a new
        one may have the same epoch.

        The marker would end the new transaction as well.
        """
        partition, producer = self.hanging.topic_partition, self.hanging.producer
        found = search(context.calls, [partition.topic], {}, context.log)
        transactions = found.found if self.hanging.proven else (*found.found, *found.unproven)
        (now,) = matching(transactions, partition, producer.start_offset, producer.producer_id) or (
            None,
        )
        # A commit is decided for the records of the plan; an abort is also correct for later
        # records.
        same = now is not None and (
            now.producer == producer or self.outcome is TransactionResult.ABORT
        )
        if now is None or not same or now.producer.epoch != producer.epoch:
            why = (
                "it changed since the plan was made"
                if now
                else "its coordinator knows it now, or does not answer"
            )
            raise self._failure("changed", why, "Check again: connectctl transactions hanging.")

    def _open(self, context: EndContext) -> PartitionProducer | None:
        partition, producer = self.hanging.topic_partition, self.hanging.producer
        now = open_transactions(context.calls.producers([partition])).get(
            (partition, producer.producer_id)
        )
        return now if now is not None and now.start_offset == producer.start_offset else None

    def _failure(self, code: str, why: str, advice: str | None) -> ConnectctlError:
        return ConnectctlError(self._not_done, why=why, next_step=advice, code=code)

    @property
    def _not_done(self) -> str:
        return f"The transaction that hangs on {self.subject} is not {self.done}"


@dataclass(frozen=True)
class AbortHanging(MarkHanging):
    """Abort a hanging transaction, which hides its records from read_committed consumers."""

    outcome = TransactionResult.ABORT
    done = "aborted"


@dataclass(frozen=True)
class CommitHanging(MarkHanging):
    """Commit a hanging transaction, which delivers its records to read_committed consumers."""

    outcome = TransactionResult.COMMIT
    done = "committed"


OVERRIDDEN = "a transaction that its producer is about to commit loses its records"
"""The risk of ``--force`` if it is not proven that a transaction hangs."""


def warnings_of(found: Hanging) -> Iterator[str]:
    if not found.proven:
        yield f"Not proven to hang; with --force {OVERRIDDEN}."
    if found.decision.outcome is None:
        yield (
            "The abort hides its records from read_committed consumers. A broker that restarted "
            "may have lost the marker of a commit (KAFKA-20734): see with connectctl audit "
            "--headers-only whether its other partitions have one. The decided outcome is "
            f"unknown: {found.decision.why}."
        )


def plan_abort_hanging(
    cluster_id: str,
    found: Hanging,
    *,
    force: bool = False,
    gaps: tuple[Gap, ...] = (),
    group_id: str = "",
) -> Plan:
    """Return the plan that aborts one hanging transaction.

    Raises ``Refused`` if its coordinator decided to commit it, and if it is not proven to hang
    because of ``gaps``.
    """
    if not found.proven and not force:
        what = (
            f"The transaction on {found.topic_partition} was not aborted, because it is not proven "
            "to hang"
        )
        raise refused(gaps, what, force=OVERRIDDEN)
    if found.decision.outcome is TransactionResult.COMMIT and not force:
        raise Refused(
            f"The transaction that hangs on {found.topic_partition} was not aborted, because "
            "committed records would be lost",
            why=found.decision.why,
            next_step=f"Commit it: {found.command}, or give --force.",
            code="commit-decided",
        )
    steps = (AbortHanging(str(found.topic_partition), found, now=found.why),)
    return Plan("transactions abort", cluster_id, steps, group_id=group_id, independent=True)


def plan_commit_hanging(
    cluster_id: str, found: Hanging, *, gaps: tuple[Gap, ...] = (), group_id: str = ""
) -> Plan:
    """Return the plan that commits one hanging transaction. Raises ``Refused`` unless its commit is
    proven to be decided.

    ``gaps`` are the reasons if it is not proven to hang.
    """
    if not found.proven:
        raise refused(
            gaps,
            f"The transaction on {found.topic_partition} was not committed, because it is not "
            "proven to hang",
        )
    decision = found.decision
    if decision.outcome is TransactionResult.COMMIT:
        steps = (CommitHanging(str(found.topic_partition), found, now=found.why),)
        return Plan("transactions commit", cluster_id, steps, group_id=group_id, independent=True)
    aborted = decision.outcome is TransactionResult.ABORT
    reason = "it is to be aborted" if aborted else "nothing proves that this was decided"
    what = (
        f"The transaction that hangs on {found.topic_partition} was not committed, because {reason}"
    )
    if decision.right is not None:
        raise not_authorized(what, decision.right)
    raise Refused(
        what,
        why=decision.why,
        next_step=f"Abort it: {found.command}."
        if aborted
        else "See with connectctl audit --headers-only whether its other partitions have a commit "
        "marker.",
        code="abort-decided" if aborted else "not-decided",
    )
