"""Observe how far a rolling change of the workers is, for ``preflight``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.observe import ClusterReader, members_of, with_modes


@dataclass(frozen=True)
class RollState:
    """The unfinished run of a rolling change, if any, and the known modes of the workers, by
    address.
    """

    unfinished: str | None = None
    purpose: str = ""
    modes: Mapping[str, str] = field(default_factory=dict)


def roll_state(
    reader: ClusterReader, journal: Journal | None, group: ConnectGroup, answers: Sequence[Worker]
) -> RollState:
    """Return the unfinished run in ``journal``, None without one, and the modes of the workers that
    gave ``answers``.
    """
    where = reader.kafka.cluster_id(), group.id
    open_ = run_state.unfinished(journal, *where) if journal else []
    records = run_state.journal_records(journal, *where, members_of(group)) if journal else {}
    answering = [answer for answer in answers if answer.url and answer.problem is None]
    workers = with_modes(reader, group, answering, records)
    modes = {
        worker.address: str(worker.value)
        for worker in workers
        if worker.value is not SourceSupport.UNKNOWN
    }
    return RollState(
        open_[0].id if open_ else None, ", ".join(open_[0].subjects) if open_ else "", modes
    )
