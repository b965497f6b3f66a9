"""The steps of a run of a connector, and how the parts of a run are written down in the journal as
they are done.

A run is long, and most of it needs no lock: its tasks are kept apart from others by fencing. Only
where it changes the connector of live workers, before and after its own tasks, does it hold the
lock of the Connect cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import ConnectctlError, PartDone, Refused
from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.step import Step
from connectctl.ops.core.wait import wait_until
from connectctl.ops.task_runtime.job.run_request import RunRequest

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ClusterLock
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.task.retries import RetryPolicy

T = TypeVar("T")
OPERATION = "run"
LEAST_PATIENCE = 60.0
"""Seconds that a hand-back waits for another change to end, at least."""
LOOK = 1.0
"""Seconds between two attempts to get the lock that another change holds."""


@dataclass
class JobContext(RunContext):
    """``work`` does the part that the steps of a run stand for. ``begun``: it was tried."""

    work: Callable[[], str | None] = field(kw_only=True)
    begun: bool = False


@dataclass(frozen=True)
class JobStep(Step[JobContext]):
    """A part of a run. What it does is in the job, and known to the process that runs it alone."""

    subject: str
    text: str
    now: str = ""
    locked: ClassVar[bool] = False
    """Whether it changes the Connect cluster of live workers."""

    def describe(self) -> str:
        return self.text

    def apply(self, context: JobContext) -> str | None:
        context.begun = True
        return context.work()


class CreateInternalTopic(JobStep):
    """Create a topic of the run's group."""


class StopOnWorkers(JobStep):
    """Stop the connector on its workers, for as long as the run has it."""

    locked = True


class StartTasks(JobStep):
    """Write a new generation of task configurations and fence the older tasks."""


class StartConnector(StartTasks):
    """What the connector's own start does, by which its tasks are known."""


@dataclass(frozen=True)
class RunTasks(JobStep):
    """Run the tasks on Spark, to their end. ``request`` is what was asked for.

    ``made_from`` is the SHA-256 of the job file and of all else that the plan does not show, by
    path or name.
    """

    request: RunRequest = field(kw_only=True)
    made_from: Mapping[str, str] = field(kw_only=True)


@dataclass(frozen=True)
class HandBack(JobStep):
    """Fence the run's tasks, and do ``verb`` with the connector on its workers: resume or pause."""

    verb: str = "resume"
    locked = True


Parts = Callable[[type[JobStep], Callable[[], T]], T]


def unrecorded(part: type[JobStep], work: Callable[[], T]) -> T:
    """Do ``work`` with no journal."""
    return work()


@dataclass
class RecordedParts:
    """Does the parts of a run as the steps of its plan: each marked in the journal, some under the
    cluster's lock.
    """

    plan: Plan
    journal: Journal
    run: Run
    lock: ClusterLock | None
    patience: RetryPolicy

    @property
    def hand_back_left(self) -> bool:
        """Whether the connector was stopped on its workers, and they did not get it back."""
        return hand_back_left(self.plan, self.journal.get(self.run.id)) is not None

    def __call__(self, part: type[JobStep], work: Callable[[], T]) -> T:
        """What ``work`` gives, the part of the run that the plan's steps of the class ``part``
        stand for.

        Raises what ``work`` raises; ``Refused`` where another change holds the lock, for which a
        hand-back waits.
        """
        numbers = [n for n, step in enumerate(self.plan.steps) if isinstance(step, part)]
        if not numbers:
            return work()
        done: list[T] = []
        context = JobContext(work=lambda: done.append(work()) if not done else None)
        locked = Refused("The cluster lock is held")

        def attempt() -> list[ConnectctlError] | None:
            nonlocal locked
            try:
                self._execute(numbers, context, part)
            except ConnectctlError as e:
                if context.begun:
                    return [e]
                if e.code != "locked" or part is not HandBack or not isinstance(e, Refused):
                    raise
                # The job has run: the code must not say that the whole command may be executed
                # again.
                locked = Refused(e.what, why=e.why, next_step=e.next_step, code="not-handed-back")
                return None
            return []

        # A connector that is not handed back stays stopped: whoever holds the lock is waited for.
        seconds = max(LEAST_PATIENCE, self.patience.seconds)
        failed = self.patience(
            "take the lock of the cluster", lambda: wait_until(attempt, seconds, LOOK)
        )
        if failed is None or failed:
            raise failed[0] if failed else locked
        return done[0]

    def _execute(self, numbers: list[int], context: JobContext, part: type[JobStep]) -> None:
        run, lock = self.journal.get(self.run.id), self.lock if part.locked else None
        try:
            execute(
                self.plan.steps,
                context,
                self.journal,
                run,
                lock=lock,
                start=numbers[0],
                until=numbers[-1] + 1,
            )
        except PartDone as e:  # a run ends as its own error says, with the connector handed back
            raise e.__cause__ if isinstance(e.__cause__, ConnectctlError) else e from None


@contextmanager
def recorded(
    journal: Journal, plan: Plan, subject: str, lock: ClusterLock | None, patience: RetryPolicy
) -> Iterator[RecordedParts]:
    """A run of ``plan`` in the journal, begun before anything is tried, and ended with what it came
    to.
    """
    run = journal.begin_plan(plan, [subject])
    try:
        yield RecordedParts(plan, journal, run, lock, patience)
    except BaseException:
        journal.end(run.id, RunState.FAILED if journal.get(run.id).changed else RunState.REFUSED)
        raise
    if journal.get(run.id).state is RunState.OPEN:
        journal.end(run.id, RunState.FAILED)  # somebody else has its tasks by now


def hand_back_left(plan: Plan, run: Run) -> tuple[int, HandBack] | None:
    """Return the step, with its number, by which the connector gets back to its workers; None if it
    is not left to do.
    """
    left = [
        (n, step)
        for n, step in enumerate(plan.steps)
        if isinstance(step, HandBack) and not run.done(n)
    ]
    stopped = [n for n, step in enumerate(plan.steps) if isinstance(step, StopOnWorkers)]
    begun: Any = {mark.step for mark in run.marks if mark.what in ("begun", "done")}
    return left[0] if left and begun & {*stopped} else None
