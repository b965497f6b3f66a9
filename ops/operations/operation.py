"""A kind of change as a value: its steps, and how it is planned, planned again, resumed and undone.

``ops/registry.py`` lists all operations; ``cli/flow.py`` has the one flow that performs them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.core.journal import Journal, Run


class Access(Protocol):
    """The clients of one request. ``group_id`` is empty if no Connect cluster is involved or
    known.
    """

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""

    @property
    def group_id(self) -> str:
        """The ``group.id`` of the Connect cluster."""


@dataclass(frozen=True)
class Planned:
    """A plan, with what is not part of it.

    ``notes`` and ``findings`` are printed before it is confirmed. ``subjects`` are shown in the
    list of runs, by default those of its steps. ``typed`` is what it deletes as a whole, with the
    name that a user must type.
    """

    plan: Plan
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    subjects: tuple[str, ...] = ()
    typed: tuple[str, str] | None = None

    def check(self, *, dry_run: bool) -> None:
        """Raise ``ConnectctlError`` if the plan can be shown, but not performed."""

    def store(self, journal: Journal) -> None:
        """Store in the journal what the steps refer to. Called after confirmation, before the run
        begins.
        """


@dataclass(frozen=True)
class Remaining:
    """The part of a run that is left: from step ``start`` on, and once more those in ``again``.

    ``instead`` are steps, by number, that are executed in place of those of the plan.
    """

    start: int = 0
    again: Collection[int] = ()
    instead: Mapping[int, Step[Any]] = field(default_factory=dict)

    def of(self, plan: Plan) -> Plan:
        """Return the plan with the steps that are executed now."""
        return replace(
            plan,
            steps=tuple(self.instead.get(number, step) for number, step in enumerate(plan.steps)),
        )

    def numbers(self, run: Run, plan: Plan) -> list[int]:
        """Return the numbers of the steps that a resumed run shows and executes."""
        return [
            number
            for number in range(len(plan.steps))
            if number in self.again
            or (number >= self.start and not (plan.independent and run.done(number)))
        ]


WHOLE = Remaining()
NOTHING_LEFT = "nothing-to-resume"
"""The code of the error for a run that did not end, and of which nothing is left to do."""
R = TypeVar("R")
A = TypeVar("A", bound=Access)


class Operation(Generic[R, A]):
    """An operation on requests of type ``R``, with clients of type ``A``.

    A subclass has ``name``, the operation of its plans, and ``steps``, the kinds of their steps. It
    overrides ``undo``, or has the reason in ``irreversible``.
    """

    name: ClassVar[str]
    steps: ClassVar[tuple[type[Step[Any]], ...]]
    irreversible: ClassVar[str | None] = None
    offers_undo: ClassVar[bool] = True
    """True if a run ends with the command that undoes it."""
    independent: ClassVar[bool] = False
    """True if a failed step skips only the later ones of its resource, as in its plans."""
    needs_group: ClassVar[bool] = False
    """True if it changes a Connect cluster, which is locked if its ``group.id`` is known."""
    resume_command: ClassVar[str] = "connectctl runs resume"
    """The command that resumes a run, without its id."""
    command: ClassVar[str | None] = None
    """The command with its arguments, where it is not called as the operation."""
    view: ClassVar[str | None] = None
    """The module and class of its presentation, where that is not a list of steps."""
    instead_of_applying: ClassVar[str | None] = None
    """The alternative to applying its saved plan, where that cannot be applied."""
    pause_after: int | None = None
    """The number of steps after which a run pauses."""

    def only_planned(self) -> Operation[R, A]:
        """Return the operation for a plan that is printed and not executed."""
        return self

    def access(self, clients: Clients, request: R) -> A:
        """Return the clients for ``request``. Raises ``ConnectctlError`` if the cluster cannot be
        observed.
        """
        raise NotImplementedError

    def access_for(self, clients: Clients, plan: Plan) -> A | None:
        """Return the clients for the request of a plan; None for a plan without steps from which it
        is unknown.
        """
        request = self.request_of(plan)
        return None if request is None else self.access(clients, request)

    def plan(self, access: A, request: R) -> Planned:
        """Observe the subjects of ``request``, and return the plan. Changes nothing."""
        raise NotImplementedError

    def request_of(self, plan: Plan) -> R | None:
        """Return the request of a plan; None if it has no steps, from which it is unknown."""
        raise NotImplementedError

    def plan_again(self, access: A, saved: Plan) -> Planned:
        """Return the current plan for the request of ``saved``. It is compared with ``saved`` by
        its digest.
        """
        request = self.request_of(saved)
        return Planned(saved) if request is None else self.plan(access, request)

    def check_start(self, plan: Plan, steps: Sequence[Step[Any]], *, attended: bool) -> None:
        """Raise ``BadInput`` if ``steps`` of a plan cannot be executed like this; ``attended``: by
        a user at a terminal.
        """

    def check_confirmed(self, access: A, planned: Planned) -> None:
        """Raise ``Refused`` if what the user confirmed after a prompt changed meanwhile."""

    def context(self, access: A, planned: Planned) -> RunContext:
        """Return the context of the steps."""
        raise NotImplementedError

    def decided(self, journal: Journal, run: Run, plan: Plan) -> Plan:
        """Return the plan of a run with what the run has decided since."""
        return plan

    def is_unfinished(self, journal: Journal, run: Run) -> bool:
        """Return whether a run that was not done must be resumed. Failures of independent steps
        were its results.
        """
        return run.is_open or not self.independent

    def remaining(self, access: A, run: Run, plan: Plan) -> Remaining:
        """Return what is left of a run that did not end. Raises ``Refused`` if it cannot
        continue.
        """
        return WHOLE

    def undo(self, access: A, undone: Undone) -> Planned:
        """Return the plan that restores what a run changed. Raises ``Refused`` if others changed it
        since.
        """
        raise Refused(
            f"The run {undone.run.id} ({self.name} {', '.join(undone.run.subjects)}) cannot be "
            "undone; nothing was done",
            why=self.irreversible,
            next_step=self.instead(undone.run),
            code="irreversible",
        )

    def begun_undo(self, journal: Journal, run: Run) -> Run | None:
        """Return the unfinished run that undoes ``run``, and is resumed instead of another undo."""
        return None

    def printed_by(self, plan: Plan) -> str:
        """Return the command that prints such a plan for ``runs apply``."""
        return (
            f"connectctl {'runs undo …' if plan.undoes else self.command or f'{self.name} …'} "
            "--dry-run -o json"
        )

    def instead(self, run: Run) -> str:
        """Return what to do about a run that cannot be undone."""
        return f"See what it did: connectctl runs show {run.id}."

    def undo_hint(self, run: Run) -> str:
        """Return how to undo a run of an operation that can be undone."""
        return f"Undo it with: connectctl runs undo {run.id}"

    @property
    def can_be_undone(self) -> bool:
        """Return whether the operation has an undo."""
        return self.irreversible is None


@dataclass(frozen=True)
class Undone:
    """A run to be undone, with its plan. ``wait``: until what is restored is in its former state.

    ``stop``: connectors that run are stopped while their offsets are restored.
    """

    journal: Journal
    run: Run
    plan: Plan
    wait: bool = False
    stop: bool = False

    def changed_steps(self) -> list[tuple[int, Step[Any]]]:
        """Return the steps that the run did, or may have done, with their numbers, the last
        first.
        """
        return [
            (number, step)
            for number, step in reversed(list(enumerate(self.plan.steps)))
            if self.run.did(number)
        ]
