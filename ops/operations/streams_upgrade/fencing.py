"""The end of an upgrade: verify that the new producer model is in use, and fence the old
transactional ids.

A zombie producer of the old model may resume. No instance initializes its transactional id any
more, so nothing else fences it. While its transaction is open, consumers that fetch stable offsets
wait (KIP-447).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.kafka.fence_attempt import NO_ANSWER, Problem
from connectctl.ops.kafka.group_state import instability
from connectctl.ops.kafka.streams_eos import ProducerModel, model_of_id, process_of
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.operations.streams_upgrade.context import (
    ApplicationContext,
    application_context,
)
from connectctl.ops.operations.streams_upgrade.observe import transactional_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectctl.ops.kafka.consumer_group import ClientGroup
    from connectctl.ops.operations.streams_upgrade.snapshot import TransactionalId
    from connectctl.ops.operations.upgrade.context import UpgradeContext


def unverified_reason(
    application: str, group: ClientGroup, ids: Sequence[TransactionalId], kind: ProducerModel
) -> str | None:
    """Return why it is not verified that producers of ``kind`` are in use; None if it is.

    A group-aware id names its process: each process with partitions must have one. A per-partition
    id names a task only.
    """
    if why := instability(group.state):
        return why
    own = [known for known in ids if model_of_id(application, known.id) is kind]
    if kind is ProducerModel.PER_PARTITION:
        return None if own else "no transactional id of a task is known yet"
    busy = {
        member.streams.process for member in group.members if member.streams and member.partitions
    }
    missing = busy - {process_of(application, known.id) for known in own}
    if missing:
        return f"no transactional id names the process {', '.join(sorted(missing))} yet"
    return (
        None
        if own or not any(m.partitions for m in group.members)
        else "no transactional id of a thread is known yet"
    )


def unused_transactional_ids(
    application: str, group: ClientGroup, ids: Sequence[TransactionalId], kind: ProducerModel
) -> tuple[str, ...]:
    """Return the transactional ids of the other model that belong to no process in the group."""
    running = {member.streams.process for member in group.members if member.streams}
    old = (
        ProducerModel.PER_PARTITION
        if kind is ProducerModel.GROUP_AWARE
        else ProducerModel.GROUP_AWARE
    )
    own = (known.id for known in ids if model_of_id(application, known.id) is old)
    # In a rollback, a thread's id may still be listed while its process already uses the ids of
    # tasks.
    return tuple(id_ for id_ in own if process_of(application, id_) not in running)


@dataclass(frozen=True)
class FenceUnusedIds(ResourceStep["UpgradeContext"]):
    """Verify that producers of ``to`` are in use, then fence every transactional id of the other
    model.
    """

    to: str
    reason: str = "KIP-447: open transactions of old producers block the fetch of stable offsets"

    def describe(self) -> str:
        old = (
            ProducerModel.PER_PARTITION
            if self.to == ProducerModel.GROUP_AWARE
            else ProducerModel.GROUP_AWARE
        )
        return (
            f"verify that {self.subject} uses {self.to} producers, then fence the remaining "
            f"{old} ones"
        )

    def apply(self, context: UpgradeContext) -> str | None:
        own, kind = application_context(context), ProducerModel(self.to)
        ids, missing = transactional_ids(own.reader)

        def health() -> str | None:
            nonlocal ids, missing
            ids, missing = transactional_ids(own.reader)
            return (
                missing[0] if missing else unverified_reason(self.subject, own.group(), ids, kind)
            )

        if why := own.await_(health, context.patience.timeout):
            raise ConnectctlError(
                f"Not verified that the producers of {self.subject} are {self.to}; nothing was "
                "fenced",
                why=why,
                next_step=f"See connectctl transactions list --prefix {self.subject}-, then "
                "resume.",
                code="unproven",
            )
        used = sum(model_of_id(self.subject, known.id) is kind for known in ids)
        old = unused_transactional_ids(self.subject, own.group(), ids, kind)
        opened = [known.id for known in ids if known.open and known.id in old]
        _fence(own, old)
        summary = f"{used} transactional ids are {self.to}; {len(old)} of the other kind fenced"
        return f"{summary}, {len(opened)} of them with an open transaction" if opened else summary


def _fence(own: ApplicationContext, ids: Sequence[str]) -> None:
    """Fence each id. Raises ``ConnectctlError`` with those that failed."""
    failed = fence_ids(
        own.reader.transactions,
        ids,
        own.upgrade.timeout,
        now=own.upgrade.now,
        sleep=own.upgrade.sleep,
    )
    if failed:
        problems = [(result.id, result.problem or NO_ANSWER) for result in failed]
        text = ", ".join(f"{id_}: {problem.code}" for id_, problem in problems[:5])
        worst = next(
            (problem for _, problem in problems if problem.right), Problem("not-fenced", text)
        )
        raise worst.error("Not every transactional id could be fenced")
