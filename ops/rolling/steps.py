"""The steps of a roll. Each looks again when it is carried out, so that a run may be killed anywhere and taken up.

A worker's turn is four steps: its property is changed, it is restarted, it is waited for until it is back in the group
with the wished mode, and a gate is waited for. Who is taken at a turn is decided at its first step; from then on the
steps of the turn name the worker that was taken (``as_taken``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.errors import ConnectctlError, Refused
from connectctl.ops.rolling.ledger import CHANGED, JOINED, RESTARTED, RESTARTING, Entry
from connectctl.ops.rolling.mode import PROPERTY, Value, too_old

if TYPE_CHECKING:
    from connectctl.ops.rolling.hands import RollingHands


def in_words(value: str) -> str:
    """A mode as steps name it."""
    return "on a release before 3.3" if value == Value.NOT_SUPPORTED else value


@dataclass(frozen=True)
class Turn:
    """One step of a worker's turn. ``workers`` are the planned ones, more than one only if restarted together.

    ``by_hand``: somebody does it, and the run waits. ``planned``: who was planned, where others were taken.
    """

    subject: str
    phase: int
    slot: int
    workers: tuple[str, ...]
    value: str
    reason: str = ""
    now: str = ""
    by_hand: bool = False
    planned: tuple[str, ...] = ()
    kind: ClassVar[str] = "turn"

    @property
    def turn(self) -> str:
        """The turn as notes name it."""
        return f"{self.phase}.{self.slot}"

    @property
    def worker(self) -> str | None:
        """The worker, None where several are restarted together."""
        return self.workers[0] if len(self.workers) == 1 else None

    @property
    def whom(self) -> str:
        """The workers in words."""
        return " and ".join(self.workers)

    @property
    def hand(self) -> str:
        """What to add where somebody has to do it."""
        return " (by hand)" if self.by_hand else ""

    def decided(self, hands: RollingHands) -> Turn:
        """The step with the workers that are taken at its turn, which is decided at the first step of it."""
        workers = hands.turn(self)
        found: Turn = as_taken(self, {self.turn: workers})
        if not found.planned or self.value == Value.NOT_SUPPORTED:
            return found
        return replace(found, by_hand=any(hands.driver.manner(worker).by_hand for worker in workers))

    def swapped(self, turns: Mapping[str, tuple[str, ...]]) -> str:
        """What to add where another worker was taken than planned, and why."""
        if not self.planned:
            return ""
        earlier = [workers for turn, workers in turns.items() if self._is_earlier(turn)]
        why = "was restarted already" if self.planned in earlier else "is the leader now and is restarted last"
        return f"{self.whom} instead of {' and '.join(self.planned)}, which {why}"

    def _is_earlier(self, turn: str) -> bool:
        phase, slot = map(int, turn.split("."))
        return phase == self.phase and slot < self.slot


def as_taken(step: Any, turns: Mapping[str, tuple[str, ...]]) -> Any:
    """``step`` with the workers that were taken at its turn, where ``turns`` has them; any other step as it is."""
    taken = turns.get(step.turn) if isinstance(step, Turn) else None
    if taken is None or taken == step.workers:
        return step
    return replace(step, subject=" and ".join(taken), workers=taken, planned=step.planned or step.workers)


@dataclass(frozen=True)
class ChangeProperty(Turn):
    """Give the worker's property its value; what it runs with is not changed by that."""

    kind: ClassVar[str] = "change-property"

    def says(self) -> str:
        return f"set {PROPERTY}={self.value} on {self.whom}{self.hand}"

    def holds(self, hands: RollingHands) -> str | None:
        entries = [hands.notes.workers.get(worker) for worker in self.workers]
        kept = (RESTARTING, RESTARTED, JOINED)
        if all(e is not None and e.value == self.value and e.state in kept for e in entries):
            return "; ".join(filter(None, ["already set by this run", self.swapped(hands.notes.turns)]))
        return None

    def do(self, hands: RollingHands) -> str | None:
        members = hands.members()
        said: list[str | None] = []
        for worker in self.workers:
            hands.write(worker, Entry(self.value, CHANGED, members.get(worker)))
            said.append(hands.driver.change(worker, PROPERTY, self.value))
        return "; ".join(dict.fromkeys(filter(None, [*said, self.swapped(hands.notes.turns)]))) or None


@dataclass(frozen=True)
class Restart(Turn):
    """Restart the worker, if all others are there: never two at once."""

    kind: ClassVar[str] = "restart"

    def says(self) -> str:
        return f"restart {self.whom}{self.hand}"

    def holds(self, hands: RollingHands) -> str | None:
        from connectctl.ops.rolling.rejoining import wait_for_start

        done = "it has been restarted since its property was changed"
        return done if wait_for_start(hands, self.workers, by_hand=self.by_hand) else None

    def do(self, hands: RollingHands) -> str | None:
        hands.refuse_two_at_once(self.workers)
        members = hands.members()
        hands.remember_leader()
        said = []
        for worker in self.workers:
            before = hands.notes.workers.get(worker)
            # Who is restarted with others may be back already, and its old member id is the one from before the change.
            known = before.before if before is not None and self.worker is None else members.get(worker)
            hands.write(worker, Entry(self.value, RESTARTING, known, at=hands.wall()))
            said.append(hands.driver.restart(worker))
            hands.write(worker, Entry(self.value, RESTARTED, known, at=hands.wall()))
        return "; ".join(dict.fromkeys(filter(None, said))) or None


@dataclass(frozen=True)
class ReplaceBinaries(Turn):
    """Have a person put an older release in place of the worker's and start it: the step that no driver knows."""

    kind: ClassVar[str] = "replace-binaries"

    def says(self) -> str:
        return f"install a release before 3.3 on {self.whom}, and wait until it is back with it{self.hand}"

    def holds(self, hands: RollingHands) -> str | None:
        answers = [hands.answer(worker) for worker in self.workers]
        old = all(a is not None and a.problem is None and too_old(a.version) for a in answers)
        return "it runs an older release already" if old else None

    def do(self, hands: RollingHands) -> str | None:
        hands.refuse_two_at_once(self.workers)
        members = hands.members()
        for worker in self.workers:
            hands.write(worker, Entry(Value.NOT_SUPPORTED, RESTARTED, members.get(worker)))
        hands.tell(f"Stop {self.whom}, and no other; install a release before 3.3; start it again.")
        return "; ".join(filter(None, ["told", self.swapped(hands.notes.turns)]))


@dataclass(frozen=True)
class Rejoin(Turn):
    """Wait until the worker is in the group again as another process, answers, and does not contradict the wished mode."""

    kind: ClassVar[str] = "rejoin"
    only_looks: ClassVar[bool] = True

    def says(self) -> str:
        return f"wait until {self.whom} is back in the group, {in_words(self.value)}"

    def holds(self, hands: RollingHands) -> str | None:
        return None

    def do(self, hands: RollingHands) -> str | None:
        from connectctl.ops.rolling.rejoining import wait_for

        told = [wait_for(hands, worker, self.value, by_hand=self.by_hand) for worker in self.workers]
        return "; ".join(told)


@dataclass(frozen=True)
class Gate(Turn):
    """Wait until the cluster is healthy for several looks in a row; restart once what failed for want of a leader."""

    kind: ClassVar[str] = "gate"
    only_looks: ClassVar[bool] = True
    forgives_fencing: bool = False

    def says(self) -> str:
        return f"wait until the cluster is healthy with {self.whom}"

    def holds(self, hands: RollingHands) -> str | None:
        return None

    def do(self, hands: RollingHands) -> str | None:
        from connectctl.ops.rolling.waiting import wait

        return wait(hands, self.turn, forgives_fencing=self.forgives_fencing)


@dataclass(frozen=True)
class FirstGate:
    """See that the cluster is healthy before anything is changed. Nothing is done where it is not."""

    subject: str = "cluster"
    reason: str = "problems from before the upgrade must not be attributed to it"
    now: str = ""
    kind: ClassVar[str] = "gate"
    worker: ClassVar[None] = None
    only_looks: ClassVar[bool] = True

    def says(self) -> str:
        return "check cluster health"

    def holds(self, hands: RollingHands) -> str | None:
        return None

    def do(self, hands: RollingHands) -> str | None:
        from connectctl.ops.rolling.waiting import wait

        try:
            return wait(hands, "first", restarts=False)
        except Refused:
            raise
        except ConnectctlError as e:
            raise Refused(f"{e.what}; nothing was changed", why=e.why, next_step=e.next_step, code="unhealthy") from e


@dataclass(frozen=True)
class CheckModes:
    """See that every worker is in the mode in which a phase leaves it. ``expected`` are the modes by worker."""

    expected: dict[str, str]
    subject: str = "cluster"
    reason: str = ""
    now: str = ""
    kind: ClassVar[str] = "check-modes"
    worker: ClassVar[None] = None
    only_looks: ClassVar[bool] = True

    def says(self) -> str:
        values = sorted({in_words(value) for value in self.expected.values()})
        return f"verify that every worker is {' or '.join(values)} (where observable)"

    def holds(self, hands: RollingHands) -> str | None:
        return None

    def do(self, hands: RollingHands) -> str | None:
        found = hands.modes(self.fits)
        wrong = [f"{worker} is not in the group" for worker in self.expected if worker not in found]
        wrong += [f"{worker} is {mode}" for worker, mode in found.items() if not self.fits(worker, mode.value)]
        if wrong:
            raise ConnectctlError(
                "Workers are not in the expected mode",
                why="; ".join(wrong),
                next_step="See connectctl upgrade status.",
                code="wrong-mode",
            )
        return "; ".join(f"{worker} {mode.value} ({mode.how})" for worker, mode in found.items())

    def fits(self, worker: str, value: str) -> bool:
        """Whether a worker may be in that mode now; one that came meanwhile, in any that others are in."""
        wanted = {self.expected[worker]} if worker in self.expected else set(self.expected.values())
        return value in wanted or (value == Value.NOT_SUPPORTED and Value.DISABLED in wanted)


@dataclass(frozen=True)
class RestartFailed:
    """Restart the tasks that failed because they could not reach the fencing endpoint (KIP-618, Single-step downgrade)."""

    subject: str = "cluster"
    reason: str = "KIP-618, Single-step downgrade: such tasks run again when no worker requests the endpoint any more"
    now: str = ""
    kind: ClassVar[str] = "restart-failed"
    worker: ClassVar[None] = None

    def says(self) -> str:
        return "restart the tasks that could not reach the fencing endpoint"

    def holds(self, hands: RollingHands) -> str | None:
        return None

    def do(self, hands: RollingHands) -> str | None:
        from connectctl.ops.rolling.waiting import wait

        return wait(hands, "last")


@dataclass(frozen=True)
class Borrowed:
    """A step of another operation that has to come first, such as a merge of offsets before a hard downgrade."""

    step: Any
    reason: str = ""
    worker: ClassVar[None] = None

    @property
    def subject(self) -> str:
        """The step's own."""
        return str(self.step.subject)

    @property
    def now(self) -> str:
        """The step's own."""
        return str(self.step.now)

    @property
    def kind(self) -> str:
        """The step's own name."""
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in type(self.step).__name__).lstrip("-")

    @property
    def only_looks(self) -> bool:
        """The step's own."""
        return bool(getattr(self.step, "only_looks", False))

    def says(self) -> str:
        return str(self.step.says())

    def holds(self, hands: RollingHands) -> str | None:
        found: str | None = self.step.holds(hands)
        return found

    def do(self, hands: RollingHands) -> str | None:
        found: str | None = self.step.do(hands)
        return found


OWN = (ChangeProperty, Restart, ReplaceBinaries, Rejoin, Gate, FirstGate, CheckModes, RestartFailed)
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in OWN}


def steps_to_data(steps: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Steps as plain JSON values; ``steps_from_data`` is the inverse."""
    from connectctl.ops.offsets import planning

    found = []
    for step in steps:
        if isinstance(step, Borrowed):
            (inner,) = planning.steps_to_data([step.step])
            found.append({"step": "Borrowed", "inner": inner, "reason": step.reason})
        else:
            found.append({"step": type(step).__name__} | asdict(step))
    return found


def planned_turns(steps: Sequence[Any]) -> dict[int, tuple[tuple[str, ...], ...]]:
    """The workers of each slot of each phase, as the plan has them."""
    found: dict[int, dict[int, tuple[str, ...]]] = {}
    for step in steps:
        if isinstance(step, Turn):
            found.setdefault(step.phase, {})[step.slot] = step.workers
    return {phase: tuple(slots[slot] for slot in sorted(slots)) for phase, slots in found.items()}


def steps_from_data(data: list[dict[str, Any]]) -> tuple[Any, ...]:
    """The steps of a plan that was written down. Raises ``BadInput`` for steps that this version does not know."""
    from connectctl.ops.errors import BadInput
    from connectctl.ops.offsets import planning
    from connectctl.ops.rolling import tasklimits
    from connectctl.ops.streams import steps as streams

    kinds = KINDS | tasklimits.KINDS | streams.KINDS
    found: list[Any] = []
    for entry in data:
        values = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items() if name != "step"}
        if entry["step"] == "Borrowed":
            (inner,) = planning.steps_from_data([entry["inner"]])
            found.append(Borrowed(inner, entry["reason"]))
        elif entry["step"] in kinds:
            found.append(kinds[entry["step"]](**values))
        else:
            raise BadInput(
                f"The run has a step {entry['step']}, which is unknown to this version",
                next_step="Use the version of connectctl that began it.",
            )
    return tuple(found)
