"""What the steps of a roll work with: the cluster, the driver of its workers, the notes of the run, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.visibility import Gap
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.rolling.waiting import Missing, wait_for
from connectctl.ops.operations.upgrade import observe, run_state
from connectctl.ops.operations.upgrade.gates import HealthCriteria, HealthSnapshot
from connectctl.ops.operations.upgrade.mode import Confidence, SourceSupport
from connectctl.ops.operations.upgrade.snapshot import Baseline

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.connect.worker import Worker
    from connectctl.ops.operations.offsets.context import OffsetContext
    from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader
    from connectctl.ops.operations.upgrade.mode import WorkerMode
    from connectctl.ops.operations.upgrade.observe import ClusterReader
    from connectctl.ops.operations.upgrade.run_state import UpgradeNotes, WorkerProgress

BY_HAND = 3600.0
"""Seconds to restart a worker by hand, before the run stops and can be resumed."""


@dataclass(frozen=True)
class GateSettings:
    """What a gate asks for: ``looks`` healthy ones in a row, within ``timeout`` seconds, ``max_failures`` tolerated."""

    looks: int = 3
    timeout: float = 300.0
    max_failures: int = 0
    by_hand: float = BY_HAND


@dataclass
class UpgradeContext(StepContext):
    """What the steps of a roll work with.

    ``reader`` and ``driver`` are always given. ``tell`` gets lines for the person who watches or has something to do;
    ``wall`` is a clock that other processes share, in seconds since 1970.
    ``offsets`` is what the steps of a run that changes offsets work with, ``application`` the stream application of one.
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

    @property
    def notes(self) -> UpgradeNotes:
        """The notes of the run that is being carried out."""
        journal, run = self.journal_and_run()
        if self._notes is None or self._notes[0] != run.id:
            self._notes = run.id, run_state.UpgradeNotes.load(journal, run.id)
        return self._notes[1]

    def save(self) -> None:
        """Write the notes down."""
        journal, run = self.journal_and_run()
        self.notes.save(journal, run.id)

    def write(self, worker: str, entry: WorkerProgress) -> None:
        """Note how far a worker is."""
        self.notes.workers[worker] = entry
        self.save()

    def members(self) -> dict[str, str]:
        """The member ids of the workers in the group, by address."""
        return observe.members_of(self.reader.group())

    def answer(self, worker: str) -> Worker | None:
        """What a worker says of itself, None where it is not in the group."""
        return observe.support_of(self.reader, worker)

    def health(self) -> HealthSnapshot:
        """The cluster at this moment."""
        return observe.health(self.reader, self.now())

    def expected(self) -> tuple[str, ...]:
        """The workers that must be there: all but those that were broken before and have not had their turn."""
        had_turn = {worker for workers in self.notes.turns.values() for worker in workers}
        return tuple(w for w in self.baseline.workers if w not in self.baseline.broken or w in had_turn)

    def criteria(self, *, forgives_fencing: bool = False) -> HealthCriteria:
        """What a gate of this run wants."""
        return HealthCriteria(
            expected=self.expected(),
            baseline=self.baseline.ranks(),
            looks=self.patience.looks,
            timeout=self.patience.timeout,
            max_failures=self.patience.max_failures,
            forgives_fencing=forgives_fencing,
        )

    def refuse_two_at_once(self, workers: Sequence[str]) -> None:
        """Raise where another worker than ``workers`` is away, and stays so: one at a time is all a cluster has to bear."""
        others = [worker for worker in self.expected() if worker not in workers]
        health: list[HealthSnapshot] = []

        def probe() -> bool | Missing:
            health[:] = [seen := self.health()]
            away = [worker for worker in others if worker not in seen.members or worker in seen.silent]
            missing = seen.problem or (f"{', '.join(away)} is not in the group, or does not answer" if away else None)
            return True if missing is None else Missing(missing)

        missing = wait_for(self, probe, self.patience.timeout)
        if isinstance(missing, Missing):
            unseen = health[0].problem is not None
            raise ConnectctlError(
                f"Not restarting {' and '.join(workers)}: "
                + ("the other workers could not be observed" if unseen else "another worker is down"),
                why=missing.reason,
                next_step=None if unseen else "Start it first.",
                code="two-at-once",
            )

    def modes(self, fits: Callable[[str, str], bool]) -> dict[str, WorkerMode]:
        """The mode of every worker in the group. Waits a little for workers whose mode does not fit yet.

        A new leader, for one, initialises its transactional id a moment after it has taken over.
        """
        journal, run = self.journal_and_run()
        found: dict[str, WorkerMode] = {}

        def probe() -> bool | Missing:
            self.remember_leader()
            group = self.reader.group()
            known = run_state.journal_records(journal, run.cluster_id, run.group_id, observe.members_of(group))
            found.clear()
            found.update(observe.modes(self.reader, group, known))
            mismatched = {worker: mode for worker, mode in found.items() if not fits(worker, mode.value)}
            # No waiting makes another process of a worker that is proven to be enabled, or too old.
            permanent = any(
                m.how is Confidence.VERIFIED and m.value in (SourceSupport.ENABLED, SourceSupport.NOT_SUPPORTED)
                for m in mismatched.values()
            )
            if group.state != "Stable":
                return Missing(f"the group is {group.state}")
            words = "; ".join(f"{worker} is {mode}" for worker, mode in mismatched.items())
            return Missing(words) if mismatched and not permanent else True

        wait_for(self, probe, min(self.patience.timeout, SETTLING))
        return found

    def remember_leader(self) -> None:
        """Note who leads and how its transactional id stands; moved since the last look, it proves ``preparing``.

        Moved while the same process leads, only that one can have moved it. When another took over, the old one may have
        written once more before it went, which moves it too (KIP-890). It was the new one where there was no id before,
        or where nothing has been written with it since it was initialised.
        """
        with suppress(ConnectctlError):
            group = self.reader.group()
            members, leader = observe.members_of(group), observe.leader_of(group)
            known = observe.leader_id(self.reader)
            if leader is None or leader not in members or isinstance(known, Gap):
                return
            before, now = self.notes.leader, (members[leader], known.who)
            entry = self.notes.workers.get(leader)
            moved = before is not None and known.who is not None and before[1] != known.who
            by_it = before is not None and (before[0] == members[leader] or before[1] is None or known.fresh)
            if moved and by_it and entry is not None and entry.member == members[leader] and not entry.leads:
                self.notes.workers[leader] = replace(entry, leads=True)
            if now != before:
                self.notes.leader = now
                self.save()


SETTLING = 30.0
"""Seconds in which every worker must tell its mode once all are back."""
