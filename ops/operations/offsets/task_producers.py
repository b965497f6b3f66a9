"""The producers of a connector's tasks, which are fenced before its offsets are written.

With exactly-once a task commits its offsets in its own transactions, with its own transactional id.
Once the id is fenced, no task that started before, on a worker or in a ``connectctl run``, can
overwrite the offsets that are written next. It is fenced at its next transaction, and its successor
reads the offsets again (KIP-618).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.connect import config_topic
from connectctl.ops.connect.config_topic import COMMIT, FENCING
from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.kafka.acls import Right
from connectctl.ops.kafka.fence_attempt import NO_ANSWER, Problem
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.cluster.config_state import with_former
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.operations.fencing.observe import describe_ids, id_gap, task_id_ranges
from connectctl.ops.operations.fencing.snapshot import TaskIdRange

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.operations.offsets.context import OffsetContext, ProducerEpochs
    from connectctl.ops.operations.offsets.observe import Sources


@dataclass(frozen=True)
class Producers:
    """The transactional ids of a connector's tasks that coordinators know. ``unseen`` is the reason
    why there may be more.

    ``right`` is the missing right, if it is the reason.
    """

    ids: tuple[str, ...] = ()
    unseen: str | None = None
    right: Right | None = None


def producers_of(
    sources: Sources, group_id: str, connector: str
) -> tuple[Producers, TransactionCalls | None]:
    """Return the producers of the connector's tasks, and the client for their coordinators. A
    missing right is not an error.
    """
    if sources.coordinators is None or sources.config_topic is None:
        return Producers(), None
    image = sources.kafka.image([sources.config_topic], patience=sources.patience)[
        sources.config_topic
    ]
    image = with_former(sources.kafka, image, patience=sources.patience)
    records = [*image.latest, *image.superseded]
    found = config_topic.state_of(image).connectors.get(connector)
    if found is not None and found.unread & {COMMIT, FENCING}:
        why = (
            f"the record of {sources.config_topic} that says how many tasks {connector} has is "
            "ignored (RECORD001)"
        )
        return Producers(unseen=why), None
    config = found.config if found else {}
    names = [
        task_id(group_id, connector, n)
        for n in range(task_id_ranges(records).get(connector, TaskIdRange()).tasks)
    ]
    if not names:
        return Producers(), None
    try:
        calls = sources.coordinators(client_overrides(config, "producer"))
        described = describe_ids(calls, names)
    except NotAuthorized as e:
        return Producers(unseen=str(e), right=e.right), None
    ids = tuple(
        id_ for id_, description in described.items() if isinstance(description, Transaction)
    )
    gaps = (
        id_gap(id_, description, f"the transactional id {id_}")
        for id_, description in described.items()
    )
    hidden = next(filter(None, gaps), None)
    unseen = (
        f"unknown whether a task still writes with {hidden.subject}: {hidden.why}"
        if hidden
        else None
    )
    return Producers(ids, unseen, hidden.right if hidden else None), calls


@dataclass(frozen=True)
class FenceTasks(ResourceStep["OffsetContext"]):
    """Fence the transactional ids of a connector's tasks, so that no running task overwrites the
    new offsets.
    """

    ids: tuple[str, ...]

    def describe(self) -> str:
        count = len(self.ids)
        what = (
            f"the transactional id {self.ids[0]}"
            if count == 1
            else f"{count} transactional ids of tasks"
        )
        return f"fence {what} of {self.subject}, so that no task that still runs can commit offsets"

    def apply(self, context: OffsetContext) -> str | None:
        context.refuse_while_running(self.subject)
        found, calls = producers_of(context.sources, context.group_id, self.subject)
        if found.unseen:
            what = f"The tasks of {self.subject} were not fenced, and its offsets were not written"
            raise Problem("not-fenced", found.unseen, found.right).error(what)
        if calls is None or not found.ids:
            return "no coordinator knows them now"
        if failed := fence_ids(calls, found.ids, context.timeout):
            failures = (
                f"{len(failed)} of {len(found.ids)} transactional ids of {self.subject} "
                "could not be fenced"
            )
            hint = f"connectctl fence {self.subject} --dry-run shows where each one is."
            problem = failed[0].problem or NO_ANSWER
            raise problem.error(f"{failures}; its offsets were not written", hint, "not-fenced")
        context.fenced[self.subject] = producer_epochs(calls, found.ids)
        return f"{len(found.ids)} fenced"


def producer_epochs(calls: TransactionCalls, ids: Sequence[str]) -> ProducerEpochs:
    """Return the current producer id and epoch of ``ids``, without ids that their coordinators do
    not report.
    """
    return {
        id_: description.who
        for id_, description in describe_ids(calls, ids).items()
        if isinstance(description, Transaction)
    }


def reinitialized_id(context: OffsetContext, connector: str) -> str | None:
    """Return a transactional id that was initialized since this run fenced it, None if there is
    none.
    """
    fenced = context.fenced.get(connector)
    if not fenced or context.sources is None:
        return None
    _, calls = producers_of(context.sources, context.group_id, connector)
    now = producer_epochs(calls, list(fenced)) if calls is not None else {}
    return next((id_ for id_, before in fenced.items() if now.get(id_) != before), None)
