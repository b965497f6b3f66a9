"""Operations that end one transaction: an open one through its coordinator, a hanging one by a
marker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from connectctl.ops.clients.protocols import Clients
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import Complete, Gap, Observation, gap_findings
from connectctl.ops.operations.fencing.snapshot import FenceRequest
from connectctl.ops.operations.operation import Operation, Planned, R
from connectctl.ops.operations.transactions.abort import (
    AbortOpen,
    EndContext,
    fence_of,
    plan_abort_open,
)
from connectctl.ops.operations.transactions.hanging import Hanging, Search, search
from connectctl.ops.operations.transactions.sources import group_of, sources_of, visible_roles_of
from connectctl.ops.operations.transactions.write_marker import (
    AbortHanging,
    CommitHanging,
    MarkHanging,
    plan_abort_hanging,
    plan_commit_hanging,
    warnings_of,
)


@dataclass(frozen=True)
class TransactionAccess:
    """The coordinators of the session's cluster."""

    clients: Clients

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        return self.clients.transactions.cluster_id()

    @property
    def group_id(self) -> str:
        """Return the Connect group in the settings, empty without one."""
        return group_of(self.clients) or ""


@dataclass(frozen=True)
class OpenTransaction:
    """The transaction of a transactional id. ``force``: it is aborted even if a task may use the
    id.
    """

    id: str
    force: bool = False


@dataclass(frozen=True)
class HangingTransaction:
    """The hanging transaction of a partition; the first offset and the producer id distinguish
    several.

    ``force``: it is aborted even if its commit was decided, or if it is not proven to hang.
    """

    partition: TopicPartition
    start_offset: int | None = None
    producer_id: int | None = None
    force: bool = False


class EndTransaction(Operation[R, TransactionAccess]):
    """The base of both operations."""

    independent = True
    irreversible = "the markers of an ended transaction stay in its partitions"

    def access(self, clients: Clients, request: R) -> TransactionAccess:
        """Return the coordinators."""
        return TransactionAccess(clients)

    def context(self, access: TransactionAccess, planned: Planned) -> EndContext:
        """Return the context of the steps."""
        clients = access.clients
        return EndContext(clients.transactions, clients.timeout, clients.transaction_log)


class Abort(EndTransaction[OpenTransaction | HangingTransaction]):
    """``transactions abort``."""

    name = "transactions abort"
    steps = (AbortOpen, AbortHanging)

    def plan(
        self, access: TransactionAccess, request: OpenTransaction | HangingTransaction
    ) -> Planned:
        """Return the plan. Raises ``Refused`` if a task uses the id, or the coordinator may still
        end the transaction.
        """
        if isinstance(request, OpenTransaction):
            selection = fence_of(sources_of(access.clients, FenceRequest()), request.id)
            plan = plan_abort_open(selection, force=request.force, group_id=access.group_id)
            return Planned(plan, findings=tuple(selection.findings))
        found, gaps, notes = _hanging(access.clients, request)
        plan = plan_abort_hanging(
            access.cluster_id(), found, force=request.force, gaps=gaps, group_id=access.group_id
        )
        return Planned(plan, (*notes, *warnings_of(found)))

    def request_of(self, plan: Plan) -> OpenTransaction | HangingTransaction | None:
        """Return the transaction of the plan. An abort of a hanging one was confirmed with its
        warnings.
        """
        step = next(iter(plan.steps), None)
        if step is None:
            return None
        if isinstance(step, AbortOpen):
            return OpenTransaction(step.subject, step.force)
        return replace(_request_of(step), force=True)


class Commit(EndTransaction[HangingTransaction]):
    """``transactions commit``."""

    name = "transactions commit"
    steps = (CommitHanging,)

    def plan(self, access: TransactionAccess, request: HangingTransaction) -> Planned:
        """Return the plan. Raises ``Refused`` unless the coordinator provably decided to commit."""
        found, gaps, notes = _hanging(access.clients, request)
        return Planned(
            plan_commit_hanging(access.cluster_id(), found, gaps=gaps, group_id=access.group_id),
            notes,
        )

    def request_of(self, plan: Plan) -> HangingTransaction | None:
        """Return the transaction of the plan."""
        return _request_of(plan.steps[0]) if plan.steps else None


def _request_of(step: Step[Any]) -> HangingTransaction:
    assert isinstance(step, MarkHanging)
    producer = step.hanging.producer
    return HangingTransaction(
        step.hanging.topic_partition, producer.start_offset, producer.producer_id
    )


def _hanging(
    clients: Clients, request: HangingTransaction
) -> tuple[Hanging, tuple[Gap, ...], tuple[str, ...]]:
    """Return the hanging transaction, the gaps because of which it may still be active, and notes.

    Raises ``Refused`` if none hangs, ``BadInput`` if several do.
    """
    found, notes = searched(clients, [request.partition.topic])
    return (
        found.exactly_one(request.partition, request.start_offset, request.producer_id),
        found.gaps,
        notes,
    )


def searched(clients: Clients, topics: list[str] | None) -> tuple[Search, tuple[str, ...]]:
    """Return the hanging transactions on ``topics``, or on all, with notes on unknown roles.

    Raises ``BadInput`` for a topic that does not exist.
    """
    calls = clients.transactions
    if topics:
        missing = sorted(
            set(topics) - {partition.topic for partition in calls.topic_partitions(topics)}
        )
        if missing:
            raise BadInput(f"Topic not found: {', '.join(missing)}", code="unknown-topic")
    roles: Observation[dict[str, str]] = Complete({})
    notes: tuple[str, ...] = ()
    if group_of(clients):
        try:
            roles = visible_roles_of(clients)
        except BadInput as e:
            notes = (f"the internal topics of the workers are unknown: {e}",)
    found = search(calls, topics, roles.seen, clients.transaction_log)
    # The result for named topics is complete without the roles of other topics.
    unknown = () if topics else gap_findings(roles.gaps)
    return replace(found, findings=(*unknown, *found.findings)), notes
