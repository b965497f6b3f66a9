"""The context of the steps of a roll: the cluster, the driver of its workers, the notes of the run,
and the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.connect.health import unhealthy_workers
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.journal import RunState
from connectctl.ops.kafka.visibility import Gap
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.fencing.observe import observe_leader_id
from connectctl.ops.operations.rolling.waiting import Missing, wait_for
from connectctl.ops.operations.upgrade import observe, run_state
from connectctl.ops.operations.upgrade.gates import HealthCriteria, HealthSnapshot
from connectctl.ops.operations.upgrade.snapshot import Baseline, RollingWorker

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.operations.offsets.context import OffsetContext
    from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader
    from connectctl.ops.operations.upgrade.observe import ClusterReader
    from connectctl.ops.operations.upgrade.run_state import UpgradeNotes, WorkerProgress

BY_HAND = 3600.0
"""Seconds to restart a worker by hand before the run stops; it can be resumed."""


@dataclass(frozen=True)
class GateSettings:
    """Settings of a gate: ``looks`` consecutive healthy snapshots within ``timeout`` seconds,
    ``max_failures`` tolerated.
    """

    looks: int = 3
    timeout: float = 300.0
    max_failures: int = 0
    by_hand: float = BY_HAND


@dataclass
class UpgradeContext(StepContext):
    """The context of the steps of a roll.

    ``reader`` and ``driver`` are always given. ``tell`` prints instructions for the operator,
    ``progress`` what is awaited; ``wall`` is the system clock, in seconds since 1970. ``offsets``
    is the context of steps that change offsets, ``application`` the Streams application that the
    run changes.
    """

    reader: ClusterReader = field(kw_only=True)
    driver: WorkerDriver = field(kw_only=True)
    baseline: Baseline = field(default_factory=Baseline)
    planned: dict[int, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    patience: GateSettings = field(default_factory=GateSettings)
    tell: Callable[[str], None] = lambda line: None
    progress: Callable[[str], None] = lambda line: None
    wall: Callable[[], float] = time.time
    offsets: OffsetContext | None = None
    application: ApplicationReader | None = None
    _notes: tuple[str, UpgradeNotes] | None = None

    def denied(self, rights: Iterable[Right]) -> Right | None:
        return self.offsets.denied(rights) if self.offsets is not None else None

    @property
    def notes(self) -> UpgradeNotes:
        """The notes of the current run."""
        journal, run = self.journal_and_run()
        if self._notes is None or self._notes[0] != run.id:
            self._notes = run.id, run_state.UpgradeNotes.load(journal, run.id)
        return self._notes[1]

    def is_done(self) -> bool:
        """Whether the run has done its last step; one that was resumed after a failure and paused
        has not.
        """
        journal, run = self.journal_and_run()
        return journal.get(run.id).state is RunState.DONE

    def save(self) -> None:
        """Write the notes to the journal."""
        journal, run = self.journal_and_run()
        self.notes.save(journal, run.id)

    def write(self, worker: str, entry: WorkerProgress) -> None:
        """Record the progress of a worker."""
        self.notes.workers[worker] = entry
        self.save()

    def members(self) -> dict[str, str]:
        """The member ids of the workers in the group, by address."""
        return observe.members_of(self.reader.group())

    def workers(self, only: str | None = None) -> tuple[RollingWorker, ...]:
        """Return the workers in the group with their modes, or ``only`` the one at that address."""
        journal, run = self.journal_and_run()
        group = self.reader.group()
        known = run_state.journal_records(
            journal, run.cluster_id, run.group_id, observe.members_of(group)
        )
        return observe.members_now(self.reader, group, known, only)

    def health(self) -> HealthSnapshot:
        """Take a health snapshot of the cluster."""
        return observe.health(self.reader, self.now())

    def expected(self) -> tuple[str, ...]:
        """The workers that must be in the group: all but those broken before the run and not yet
        restarted by it.
        """
        had_turn = {worker for workers in self.notes.turns.values() for worker in workers}
        return tuple(
            w for w in self.baseline.workers if w not in self.baseline.broken or w in had_turn
        )

    def away(self) -> frozenset[str]:
        """The workers that this run has changed or restarted and that have not rejoined in their
        mode yet.
        """
        return frozenset(
            worker
            for worker, entry in self.notes.workers.items()
            if entry.state != run_state.JOINED
        )

    def criteria(self, *, forgives_fencing: bool = False) -> HealthCriteria:
        """The criteria for a gate of this run. While a worker is away by this run, only the others
        are judged.
        """
        away = self.away()
        return HealthCriteria(
            expected=tuple(worker for worker in self.expected() if worker not in away),
            workers_only=bool(away),
            baseline={component.part: component.rank for component in self.baseline.unhealthy},
            looks=self.patience.looks,
            timeout=self.patience.timeout,
            max_failures=self.patience.max_failures,
            forgives_fencing=forgives_fencing,
        )

    def refuse_two_at_once(self, workers: Sequence[str], doing: str) -> None:
        """Raise ``ConnectctlError`` if any worker other than ``workers`` is and stays down: only
        one at a time may be.

        ``doing`` is what is not done then: changing or restarting.
        """
        others = [worker for worker in self.expected() if worker not in workers]
        health: list[HealthSnapshot] = []

        def probe() -> bool | Missing:
            health[:] = [last := self.health()]
            down = unhealthy_workers(others, last.members, last.silent)
            missing = last.problem or "; ".join(map(str, down))
            return Missing(missing) if missing else True

        missing = wait_for(self, probe, self.patience.timeout)
        if isinstance(missing, Missing):
            unseen = health[0].problem is not None
            raise ConnectctlError(
                f"Not {doing} {' and '.join(workers)}: "
                + (
                    "the other workers could not be observed"
                    if unseen
                    else "another worker is down"
                ),
                why=missing.reason,
                next_step=None if unseen else "Start it first.",
                code="two-at-once",
            )

    def remember_leader(self) -> None:
        """Record the leader and the producer id and epoch of its transactional id; a change
        verifies ``preparing``.

        If the same process still leads, only that process can have changed them. After a change of
        leader, a last write of the old leader may have changed them as well (KIP-890). The new
        leader has, if there was no id before, or if nothing has been written with the id since it
        was initialized.
        """
        with suppress(ConnectctlError):
            group = self.reader.group()
            members, leader = observe.members_of(group), observe.leader_of(group)
            known = observe_leader_id(self.reader.transactions, self.reader.group_id)
            if leader is None or leader not in members or isinstance(known, Gap):
                return
            before, now = self.notes.leader, (members[leader], known.who)
            entry = self.notes.workers.get(leader)
            moved = before is not None and known.who is not None and before[1] != known.who
            by_it = before is not None and (
                before[0] == members[leader] or before[1] is None or known.fresh
            )
            if (
                moved
                and by_it
                and entry is not None
                and entry.member == members[leader]
                and not entry.leads
            ):
                self.notes.workers[leader] = replace(entry, leads=True)
            if now != before:
                self.notes.leader = now
                self.save()
