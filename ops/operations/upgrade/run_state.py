"""The progress of each worker in a run, stored so that a killed run can be resumed and later runs
can read it.

One file per run, next to its plan. Changing the property does not yet change the worker: a worker
counts as changed only when a new process of it has joined the group since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.operations.rolling.notes import RunNotes
from connectctl.ops.operations.upgrade.mode import JournalRecord, SourceSupport
from connectctl.ops.operations.upgrade.observe import ClusterReader, members_of, with_modes

OPERATION = "upgrade"
CHANGED, RESTARTING, RESTARTED, JOINED = "changed", "restarting", "restarted", "joined"
WRONG_MODE = "wrong-mode"
"""The worker rejoined in another mode: a resumed run changes its property and restarts it again."""


@dataclass(frozen=True)
class WorkerProgress:
    """A worker's progress to ``value``. ``before`` is its member id before the restart, ``member``
    the one after it.

    ``leads``: that process was observed using the leader's transactional id. ``at``: when its
    restart was requested, in seconds since 1970: a worker that is still starting must not be
    restarted.
    """

    value: str
    state: str
    before: str | None = None
    member: str | None = None
    leads: bool = False
    at: float | None = None

    def restarted(self, member: str | None) -> bool:
        """Whether it has been restarted since its property was changed, now that its member id is
        ``member``.
        """
        return self.state in (RESTARTING, RESTARTED, JOINED) and member not in (None, self.before)


@dataclass
class UpgradeNotes(RunNotes):
    """The notes of one run. ``turns``: the workers chosen, by phase and slot; ``recovered``:
    restarted tasks.

    ``leader``: the leader's member id when last observed, with the producer id and epoch of its
    transactional id.
    """

    FILE: ClassVar[str] = "notes.json"
    turns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    workers: dict[str, WorkerProgress] = field(default_factory=dict)
    recovered: list[str] = field(default_factory=list)
    leader: tuple[str | None, tuple[int, int] | None] | None = None


def runs_here(journal: Journal, cluster_id: str, group_id: str) -> list[Run]:
    """The runs of rolling changes on this Connect cluster, the newest first."""
    return journal.runs_of(OPERATION, cluster_id, group_id)


def unfinished(journal: Journal, cluster_id: str, group_id: str) -> list[Run]:
    """The runs that did not end, or failed, and may have changed something; the newest first."""
    return [r for r in runs_here(journal, cluster_id, group_id) if r.is_unfinished]


def last_workers(
    journal: Journal, cluster_id: str, group_id: str
) -> tuple[str, tuple[str, ...]] | None:
    """The newest run that changed something, or that is open, and its workers; None if there is
    none.
    """
    for run in runs_here(journal, cluster_id, group_id):
        if run.state is not RunState.REFUSED and run.changed:
            plan = journal.plan(run.id)
            try:
                return run.id, tuple(plan["conditions"]["baseline"]["workers"])
            except (KeyError, TypeError) as e:
                raise BadInput(f"The plan of the run {run.id} cannot be read", why=str(e)) from e
    return None


def journal_records(
    journal: Journal, cluster_id: str, group_id: str, members: Mapping[str, str]
) -> dict[str, JournalRecord]:
    """The record of each worker from the newest run that changed it. ``members``: current member
    ids by address.
    """
    found: dict[str, JournalRecord | None] = {}
    for run in runs_here(journal, cluster_id, group_id):
        if run.state is RunState.REFUSED:
            continue
        for worker, entry in UpgradeNotes.load(journal, run.id).workers.items():
            found.setdefault(worker, _journal_record(run.id, entry, members.get(worker)))
    return {worker: record for worker, record in found.items() if record is not None}


def _journal_record(run: str, entry: WorkerProgress, member: str | None) -> JournalRecord | None:
    if entry.state == WRONG_MODE:
        return None  # The run did not make it what it should be: only other evidence counts.
    restarted = entry.state == JOINED or entry.restarted(member)
    same = entry.state == JOINED and member is not None and member == entry.member
    return JournalRecord(SourceSupport(entry.value), run, restarted, same, entry.leads)


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
    open_ = unfinished(journal, *where) if journal else []
    records = journal_records(journal, *where, members_of(group)) if journal else {}
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
