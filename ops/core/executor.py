"""Executes a plan with a journal: step by step, each recorded before and after, with the cluster
locked for those that change it.

It never prompts the user. Each step is checked just before it is executed, and skipped if its state
is already reached; so a run that was killed anywhere can be executed again from its beginning, with
the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import (
    NOT_RESUMED,
    ConnectctlError,
    NotAuthorized,
    PartDone,
    Refused,
    TimedOut,
    Unreachable,
)
from connectctl.ops.core.interrupts import resumable
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Outcome, Result
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.visibility import not_authorized

R = TypeVar("R", bound=RunContext)
LEFT_OUT = "an earlier step failed"
LOOK = 1.0
"""Seconds between two attempts to take the lock that another run holds."""
WAITED_FOR = frozenset({"locked", "unreachable", "timed-out"})
"""The codes of errors for which a step that ends something waits."""


class Lock(Protocol):
    """The lock that a run holds while its steps are executed: that of a Connect cluster."""

    def held(
        self, run: str, ours: Callable[[str], bool]
    ) -> AbstractContextManager[Callable[[], None]]:
        """Hold it as ``run``: see ``ClusterLock`` of ``ops/clients/protocols.py``."""


def execute(
    steps: Sequence[Step[R]],
    context: R,
    journal: Journal,
    run: Run,
    *,
    lock: Lock | None,
    on_step: Callable[[Step[R]], None] = lambda step: None,
    on_result: Callable[[Result], None] = lambda result: None,
    start: int = 0,
    again: Collection[int] = (),
    until: int | None = None,
    resume_hint: str = "connectctl runs resume",
    independent: bool = False,
    undoes: Iterable[str] = (),
) -> list[Result]:
    """Execute the steps in order. The first failure ends the run; raises ``PartDone`` if something
    was done before it.

    With ``independent`` steps a failure skips only the later steps of its resource, and is a result
    like others; steps that an earlier attempt did are not repeated. ``start`` is the first step to
    execute, if the earlier ones are known to be done, and ``again`` are those that are executed
    once more, though they are done; before ``until`` the run pauses, and stays open.
    ``resume_hint`` is the command that resumes a run. The fields ``run`` and ``step`` of
    ``context`` are set to those in execution. A run that is refused before any change has ended.
    ``lock`` is the cluster's: it is held for the steps that need it, confirmed before each, and the
    run stops if it was lost. ``undoes`` are the runs that are undone when this one is done.
    """
    now = Execution(steps, context, journal, run, lock, on_step, on_result, independent, again)
    numbered = list(enumerate(steps))
    todo = [*(numbered[n] for n in again if n < start), *numbered[start:until]]
    try:
        _refuse_denied([step for _, step in todo], context)
        with (
            resumable(f"{resume_hint} {run.id}") if context.continues else nullcontext(),
            context.opened(),
            now.held,
        ):
            now.perform(todo)
            if until is None or until >= len(steps):
                for undone in undoes if now.state is RunState.DONE else ():
                    journal.end(undone, RunState.UNDONE)
                journal.end(run.id, now.state)
    except ConnectctlError as e:
        if e.code == "locked" and run.marks:
            raise  # another process may be executing this run
        changed = now.changed or _changed(run, steps)
        denied = isinstance(e, NotAuthorized) and not now.applying
        over = (denied or isinstance(e, Refused) or not now.begun) and not changed
        with suppress(ConnectctlError):  # the journal itself may have failed
            journal.mark(run.id, now.number, "refused" if over else "failed", str(e))
            journal.end(run.id, RunState.REFUSED if over else RunState.FAILED)
        # A request that brokers or workers refuse is not performed.
        unanswered = isinstance(e, TimedOut | Unreachable) and not isinstance(e, NotAuthorized)
        in_doubt = now.applying and unanswered
        if over or not context.continues or not (changed or now.results or in_doubt):
            raise
        raise part_done(e, run, now, resume_hint) from e
    return now.results


def left_to_end(steps: Sequence[Step[Any]], run: Run) -> list[int]:
    """Return the numbers of the steps that have not ended yet what an earlier step of ``run``
    began.
    """
    begun = [steps[mark.step] for mark in run.marks if mark.what in ("begun", "done")]
    return [
        number
        for number, step in enumerate(steps)
        if (kind := step.ends) is not None
        and not run.done(number)
        and any(isinstance(each, kind) for each in begun)
    ]


def _refuse_denied(steps: Sequence[Step[R]], context: R) -> None:
    """Raises ``NotAuthorized`` where brokers report that a right of a step is missing."""
    needed = [right for step in steps for right in step.rights(context)]
    if needed and (right := context.denied(needed)):
        raise not_authorized("Not authorized to execute the plan; nothing was changed", right)


@dataclass
class Execution(Generic[R]):
    """The state of an execution. ``applying``: the step ``number`` is making changes; ``begun``: a
    step was begun. ``held`` has the lock, which ``confirm`` confirms.
    """

    steps: Sequence[Step[R]]
    context: R
    journal: Journal
    run: Run
    lock: Lock | None
    on_step: Callable[[Step[R]], None]
    on_result: Callable[[Result], None]
    independent: bool
    again: Collection[int] = ()
    number: int = 0
    applying: bool = False
    begun: bool = False
    changed: bool = False
    results: list[Result] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    held: ExitStack = field(default_factory=ExitStack)
    confirm: Callable[[], None] | None = None

    def perform(self, todo: Sequence[tuple[int, Step[R]]]) -> None:
        """Execute the steps. Where they fail or are interrupted, those that end what was begun are
        executed before the error is raised.
        """
        try:
            for number, step in todo:
                if number in self.again or not (self.independent and self.run.done(number)):
                    self._lock_for(number, step)
                    self.take(number, step)
        except (Exception, KeyboardInterrupt):
            number, applying = self.number, self.applying
            if not self.context.lost:
                self._end_what_was_begun({each for each, _ in todo if each > number})
            self.number, self.applying = number, applying
            raise

    def _end_what_was_begun(self, left: Collection[int]) -> None:
        """Execute those of the steps ``left`` that end what was begun; a failure is a result."""
        with suppress(ConnectctlError):  # the journal itself may have failed
            for number in left_to_end(self.steps, self.journal.get(self.run.id)):
                if number not in left:
                    continue
                step = self.steps[number]
                try:
                    self._lock_for(number, step)
                    self.take(number, step)
                except ConnectctlError as e:
                    result = Result(step.subject, step.describe(), Outcome.FAILED, str(e), e)
                    self._record(result)

    def _lock_for(self, number: int, step: Step[R]) -> None:
        """Hold the lock if the step needs it, and release it otherwise. Raises ``Refused`` if
        another run holds it.
        """
        self.number, self.applying = number, False
        if self.lock is None or step.locked is (self.confirm is not None):
            return
        self.held.close()
        self.confirm = None
        if step.locked:
            self.confirm = self._awaited_lock() if step.ends and self.begun else self._taken_lock()

    def _taken_lock(self) -> Callable[[], None]:
        assert self.lock is not None
        run, journal = self.run, self.journal
        with ExitStack() as taking:
            taking.enter_context(journal.locked(run.cluster_id, run.group_id, run.id))
            confirm = taking.enter_context(self.lock.held(run.id, journal.knows))
            self.held.push(taking.pop_all())
        return confirm

    def _awaited_lock(self) -> Callable[[], None]:
        """Take the lock. Wait while another run holds it, or no broker answers."""
        problem: ConnectctlError = Refused("The lock of the cluster is held")

        def attempt() -> Callable[[], None] | None:
            nonlocal problem
            try:
                return self._taken_lock()
            except ConnectctlError as e:
                if e.code not in WAITED_FOR:
                    raise
                # The command has changed something, and is not executed again when the lock is
                # free.
                code = "not-ended" if e.code == "locked" else e.code
                problem = type(e)(e.what, why=e.why, next_step=e.next_step, code=code)
                return None

        found = self.context.until(attempt, self.context.lock_patience, LOOK)
        if found is None:
            raise problem
        return found

    def take(self, number: int, planned: Step[R]) -> None:
        """Execute one step, unless an earlier one of its resource failed."""
        self.context.run, self.context.step = self.run, number
        if planned.subject in self.failed:
            self._record(Result(planned.subject, planned.describe(), Outcome.LEFT_OUT, LEFT_OUT))
            return
        if self.confirm is not None:
            self.confirm()
        step = planned.decided(self.context)
        self.on_step(step)
        self.journal.mark(self.run.id, number, "begun")
        self.begun = True
        try:
            result = self._result(step)
        except ConnectctlError as e:
            if not self.independent:
                raise
            self.failed.add(planned.subject)
            outcome = Outcome.TIMED_OUT if isinstance(e, TimedOut) else Outcome.FAILED
            result = Result(step.subject, step.describe(), outcome, str(e), e)
        self.changed |= result.outcome is Outcome.DONE and not step.read_only
        self._record(result)

    def _result(self, step: Step[R]) -> Result:
        already = step.is_done(self.context)
        self.applying = already is None and not step.read_only
        if already is not None:
            return Result(step.subject, step.describe(), Outcome.ALREADY, already)
        return Result(step.subject, step.describe(), Outcome.DONE, step.apply(self.context))

    def _record(self, result: Result) -> None:
        self.results.append(result)
        self.journal.mark(self.run.id, self.number, result.outcome.value, result.detail)
        self.on_result(result)

    @property
    def state(self) -> RunState:
        """The state of the run after its last step."""
        errors = [result.error for result in self.results if result.error is not None]
        if not errors:
            return RunState.DONE
        refused = not self.changed and all(isinstance(error, Refused) for error in errors)
        return RunState.REFUSED if refused else RunState.FAILED


def _changed(run: Run, steps: Sequence[Step[Any]]) -> bool:
    """Return whether an earlier attempt changed something, or may have."""
    return any(
        mark.what in ("done", "begun") and not steps[mark.step].read_only for mark in run.marks
    )


def part_done(error: ConnectctlError, run: Run, now: Execution[Any], resume_hint: str) -> PartDone:
    waited = (
        "; the step may have been done nevertheless"
        if now.applying and isinstance(error, TimedOut)
        else ""
    )
    hint = (error.next_step or "").rstrip(".")
    if error.code not in NOT_RESUMED:
        hint = f"{hint}. Then resume: {resume_hint} {run.id}".removeprefix(". ")
    # The step did nothing, and the run did.
    what = error.what.removesuffix("; nothing was done").removesuffix("; nothing was changed")
    return PartDone(
        f"Step {now.number + 1} of the run failed{waited}: {what}", why=error.why, next_step=hint
    )
