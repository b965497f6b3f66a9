"""The steps of a roll. Each reads the state again when executed, so that a run may be killed
anywhere and resumed.

A worker's turn is four steps: change its property, restart it, wait until it rejoins the group with
the requested mode, and wait for a gate. The first step of a turn decides which worker is restarted;
from then on the steps of the turn name that worker (``with_taken_workers``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.step import ResourceStep, Step
from connectctl.ops.kafka.acls import Right
from connectctl.ops.operations.offsets.context import OffsetContext
from connectctl.ops.operations.upgrade.context import UpgradeContext
from connectctl.ops.operations.upgrade.gate_wait import wait
from connectctl.ops.operations.upgrade.mode import PROPERTY, SourceSupport
from connectctl.ops.operations.upgrade.observe import leader_of
from connectctl.ops.operations.upgrade.rejoin import (
    check_modes,
    check_rejoined,
    wait_for,
    wait_for_start,
)
from connectctl.ops.operations.upgrade.restart_order import next_workers
from connectctl.ops.operations.upgrade.run_state import (
    CHANGED,
    JOINED,
    RESTARTED,
    RESTARTING,
    WorkerProgress,
)


def mode_label(value: str) -> str:
    """Return a mode as the descriptions of steps name it."""
    return "on a release before 3.3" if value == SourceSupport.NOT_SUPPORTED else value


@dataclass(frozen=True)
class WorkerStep(ResourceStep["UpgradeContext"]):
    """One step of a worker's turn. ``workers`` are the planned ones, more than one only if
    restarted together.

    ``by_hand``: the operator does it, and the run waits. ``planned``: the planned workers, if
    others were chosen.
    """

    phase: int
    slot: int
    workers: tuple[str, ...]
    value: str
    reason: str = ""
    by_hand: bool = False
    planned: tuple[str, ...] = ()

    @property
    def turn(self) -> str:
        """The key of the turn in the notes: phase and slot."""
        return f"{self.phase}.{self.slot}"

    @property
    def worker(self) -> str | None:
        """The worker, None if several are restarted together."""
        return self.workers[0] if len(self.workers) == 1 else None

    @property
    def worker_names(self) -> str:
        """The workers, joined by "and"."""
        return " and ".join(self.workers)

    @property
    def manual_suffix(self) -> str:
        """The suffix of the description if done by hand."""
        return " (by hand)" if self.by_hand else ""

    def decided(self, context: UpgradeContext) -> WorkerStep:
        """Return the step with the workers chosen for its turn; the first step of a turn
        decides.
        """
        found: WorkerStep = with_taken_workers(self, {self.turn: self._workers_taken(context)})
        if not found.planned or self.value == SourceSupport.NOT_SUPPORTED:
            return found
        return replace(
            found,
            by_hand=any(context.driver.restart_mode(worker).by_hand for worker in found.workers),
        )

    def _workers_taken(self, context: UpgradeContext) -> tuple[str, ...]:
        """Return the workers chosen for this turn; the first call decides and stores them."""
        turns, key = context.notes.turns, self.turn
        if key not in turns:
            prefix = f"{self.phase}."
            taken = {
                int(k.removeprefix(prefix)): v for k, v in turns.items() if k.startswith(prefix)
            }
            leader = leader_of(context.reader.group())
            planned = context.planned.get(self.phase) or (self.workers,)
            turns[key] = next_workers(planned, taken, self.slot, leader, context.baseline.broken)
            context.save()
        return turns[key]

    def replacement_note(self, turns: Mapping[str, tuple[str, ...]]) -> str:
        """Return which worker was chosen instead of the planned one, and why; empty if none."""
        if not self.planned:
            return ""
        earlier = [workers for turn, workers in turns.items() if self._is_earlier(turn)]
        why = (
            "was restarted already"
            if self.planned in earlier
            else "is the leader now and is restarted last"
        )
        return f"{self.worker_names} instead of {' and '.join(self.planned)}, which {why}"

    def _is_earlier(self, turn: str) -> bool:
        phase, slot = map(int, turn.split("."))
        return phase == self.phase and slot < self.slot


def with_taken_workers(step: Any, turns: Mapping[str, tuple[str, ...]]) -> Any:
    """Return ``step`` with the workers that ``turns`` has for its turn; other steps unchanged."""
    taken = turns.get(step.turn) if isinstance(step, WorkerStep) else None
    if taken is None or taken == step.workers:
        return step
    return replace(
        step, subject=" and ".join(taken), workers=taken, planned=step.planned or step.workers
    )


@dataclass(frozen=True)
class ChangeProperty(WorkerStep):
    """Set the worker's property; the running worker does not change until its restart."""

    def describe(self) -> str:
        return f"set {PROPERTY}={self.value} on {self.worker_names}{self.manual_suffix}"

    def is_done(self, context: UpgradeContext) -> str | None:
        entries = [context.notes.workers.get(worker) for worker in self.workers]
        kept = (RESTARTING, RESTARTED, JOINED)
        if all(e is not None and e.value == self.value and e.state in kept for e in entries):
            return "; ".join(
                filter(
                    None, ["already set by this run", self.replacement_note(context.notes.turns)]
                )
            )
        return None

    def apply(self, context: UpgradeContext) -> str | None:
        context.refuse_two_at_once(self.workers, "changing")
        members = context.members()
        details: list[str | None] = []
        for worker in self.workers:
            context.write(worker, WorkerProgress(self.value, CHANGED, members.get(worker)))
            details.append(context.driver.change(worker, PROPERTY, self.value))
        return (
            "; ".join(
                dict.fromkeys(filter(None, [*details, self.replacement_note(context.notes.turns)]))
            )
            or None
        )


@dataclass(frozen=True)
class RestartWorker(WorkerStep):
    """Restart the worker if all others are in the group: never two at once."""

    def describe(self) -> str:
        return f"restart {self.worker_names}{self.manual_suffix}"

    def is_done(self, context: UpgradeContext) -> str | None:
        done = "already restarted since its property was changed"
        return done if wait_for_start(context, self.workers, by_hand=self.by_hand) else None

    def apply(self, context: UpgradeContext) -> str | None:
        context.refuse_two_at_once(self.workers, "restarting")
        members = context.members()
        context.remember_leader()
        details = []
        for worker in self.workers:
            before = context.notes.workers.get(worker)
            # A worker restarted with others may have rejoined already: its old member id is the one
            # before the change.
            known = (
                before.before if before is not None and self.worker is None else members.get(worker)
            )
            context.write(worker, WorkerProgress(self.value, RESTARTING, known, at=context.wall()))
            details.append(context.driver.restart(worker))
            context.write(worker, WorkerProgress(self.value, RESTARTED, known, at=context.wall()))
        return "; ".join(dict.fromkeys(filter(None, details))) or None


@dataclass(frozen=True)
class ReplaceBinaries(WorkerStep):
    """Have the operator install an older release on the worker and start it: no driver supports
    this step.
    """

    def describe(self) -> str:
        return (
            f"install a release before 3.3 on {self.worker_names} and wait until it "
            f"rejoins{self.manual_suffix}"
        )

    def is_done(self, context: UpgradeContext) -> str | None:
        answers = [answer for worker in self.workers for answer in context.workers(only=worker)]
        old = [a for a in answers if a.problem is None and older(a.version, EXACTLY_ONCE)]
        return "already on an older release" if len(old) == len(self.workers) else None

    def apply(self, context: UpgradeContext) -> str | None:
        context.refuse_two_at_once(self.workers, "restarting")
        members = context.members()
        for worker in self.workers:
            context.write(
                worker, WorkerProgress(SourceSupport.NOT_SUPPORTED, RESTARTED, members.get(worker))
            )
        context.tell(
            f"Stop {self.worker_names} and no other worker, install a release before 3.3, then "
            "start it."
        )
        return "; ".join(
            filter(None, ["instructions printed", self.replacement_note(context.notes.turns)])
        )


@dataclass(frozen=True)
class Rejoin(WorkerStep):
    """Wait until a new process of the worker is in the group, responds, and does not contradict the
    requested mode.
    """

    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"wait for {self.worker_names} to rejoin the group ({mode_label(self.value)})"

    def apply(self, context: UpgradeContext) -> str | None:
        return "; ".join(
            wait_for(context, worker, self.value, by_hand=self.by_hand) for worker in self.workers
        )


@dataclass(frozen=True)
class Gate(WorkerStep):
    """Wait for several consecutive healthy snapshots, with every restarted worker still in its
    mode.

    Each task that failed by fencing is restarted once.
    """

    read_only: ClassVar[bool] = True
    forgives_fencing: bool = False

    def describe(self) -> str:
        return f"wait for the cluster to be healthy with {self.worker_names}"

    def apply(self, context: UpgradeContext) -> str | None:
        healthy = wait(context, self.turn, forgives_fencing=self.forgives_fencing)
        check_rejoined(context)
        return healthy


@dataclass(frozen=True)
class FirstGate(Step["UpgradeContext"]):
    """Check that the cluster is healthy before any change. Raises ``Refused`` if it is not.

    A resumed run begins with it, too. ``forgives_fencing``: as in its other gates, then.
    """

    subject: str = "cluster"
    reason: str = "problems from before the upgrade must not be attributed to it"
    now: str = ""
    forgives_fencing: bool = False
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return "check cluster health"

    def apply(self, context: UpgradeContext) -> str | None:
        if context.resumed:
            return wait(
                context, f"resumed.{_attempts(context)}", forgives_fencing=self.forgives_fencing
            )
        try:
            return wait(context, "first", restarts=False)
        except Refused:
            raise
        except ConnectctlError as e:
            raise Refused(
                f"{e.what}; nothing was changed", why=e.why, next_step=e.next_step, code="unhealthy"
            ) from e


def _attempts(context: UpgradeContext) -> int:
    """Return how often the run has begun its first step."""
    _, run = context.journal_and_run()
    return sum(mark.step == 0 and mark.what == "begun" for mark in run.marks)


@dataclass(frozen=True)
class CheckModes(Step["UpgradeContext"]):
    """Verify that every worker is in its mode after a phase. ``expected`` are the modes by
    worker.
    """

    expected: dict[str, str]
    subject: str = "cluster"
    reason: str = ""
    now: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        values = sorted({mode_label(value) for value in self.expected.values()})
        return f"verify that every worker is {' or '.join(values)} (where observable)"

    def apply(self, context: UpgradeContext) -> str | None:
        # A worker that joined since may have any expected mode.
        found = check_modes(context, self.expected, frozenset(self.expected.values()))
        return "; ".join(f"{w.address} {w.value} ({w.mode.how})" for w in found)


@dataclass(frozen=True)
class RestartFailed(Step["UpgradeContext"]):
    """Restart the tasks that failed because they could not reach the fencing endpoint (KIP-618,
    Single-step downgrade).
    """

    subject: str = "cluster"
    reason: str = (
        "KIP-618, Single-step downgrade: such tasks run again when no worker requests "
        "the endpoint any more"
    )
    now: str = ""

    def describe(self) -> str:
        return "restart the tasks that could not reach the fencing endpoint"

    def apply(self, context: UpgradeContext) -> str | None:
        return wait(context, "last")


@dataclass(frozen=True)
class IncludedStep(Step["UpgradeContext"]):
    """A step of another operation that must come first, such as a merge of offsets before a hard
    downgrade.
    """

    inner: Step[OffsetContext]
    reason: str = ""

    @property
    def subject(self) -> str:
        """The subject of the inner step."""
        return self.inner.subject

    @property
    def now(self) -> str:
        """The current state of the inner step."""
        return self.inner.now

    @property
    def read_only(self) -> bool:  # type: ignore[override]  # as the inner step is
        """Whether the inner step is read-only."""
        return self.inner.read_only

    def describe(self) -> str:
        return self.inner.describe()

    def rights(self, context: UpgradeContext) -> Iterable[Right]:
        return self.inner.rights(self._context(context))

    def is_done(self, context: UpgradeContext) -> str | None:
        return self.inner.is_done(self._context(context))

    def apply(self, context: UpgradeContext) -> str | None:
        return self.inner.apply(self._context(context))

    @staticmethod
    def _context(context: UpgradeContext) -> OffsetContext:
        assert context.offsets is not None
        return context.offsets.within(context)


def planned_turns(steps: Sequence[Any]) -> dict[int, tuple[tuple[str, ...], ...]]:
    """Return the planned workers of each slot, by phase."""
    found: dict[int, dict[int, tuple[str, ...]]] = {}
    for step in steps:
        if isinstance(step, WorkerStep):
            found.setdefault(step.phase, {})[step.slot] = step.workers
    return {phase: tuple(slots[slot] for slot in sorted(slots)) for phase, slots in found.items()}
