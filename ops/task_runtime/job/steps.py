"""The steps of a run of a connector.

Most steps of a run need no lock: fencing separates its tasks from others. Only the steps that
change the connector of live workers hold the lock of the Connect cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.task_runtime.job.run_request import RunRequest

if TYPE_CHECKING:
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.kafka.acls import Right

C = TypeVar("C")
OPERATION = "run"


class HandBackContext(Protocol):
    """The context of the step that hands a connector back."""

    def taken_back(self, name: str) -> str | None:
        """Return the state of the connector if its workers have it again, else None."""

    def hand_back(self, name: str, verb: str) -> str | None:
        """Fence the run's tasks, then resume or pause the connector, as ``verb`` requests."""


class JobContext(HandBackContext, Protocol):
    """The context of a run in this process."""

    def rights(self) -> Iterable[Right]:
        """Return the rights that the tasks need."""

    def create_topic(self, topic: str) -> None:
        """Create a topic of the run's group."""

    def stop_on_workers(self) -> str | None:
        """Stop the connector on its workers, and wait until it is STOPPED."""

    def start_tasks(self) -> None:
        """Start the tasks, unless they are started."""

    def run_tasks(self) -> str:
        """Run the tasks to their end. Raises ``ConnectctlError`` if they failed, or another run or
        worker has them.
        """


@dataclass(frozen=True)
class JobStep(ResourceStep[C], Generic[C]):
    """A step of a run."""

    text: str
    locked = False

    def describe(self) -> str:
        return self.text


class CreateInternalTopic(JobStep[JobContext]):
    """Create a topic of the run's group."""

    def apply(self, context: JobContext) -> None:
        context.create_topic(self.subject)


class StopOnWorkers(JobStep[JobContext]):
    """Stop the connector on its workers until the run hands it back."""

    locked = True

    def apply(self, context: JobContext) -> str | None:
        return context.stop_on_workers()


class StartTasks(JobStep[JobContext]):
    """Write a new generation of task configurations and fence the older tasks."""

    def apply(self, context: JobContext) -> None:
        context.start_tasks()


class StartConnector(StartTasks):
    """A change that the start of the connector makes, which determines its tasks."""


@dataclass(frozen=True)
class RunTasks(JobStep[JobContext]):
    """Run the tasks on Spark to their end. ``request`` contains the options of the run.

    ``made_from`` is the SHA-256 of the job file and of other inputs that the plan does not show, by
    path or name.
    """

    request: RunRequest = field(kw_only=True)
    made_from: Mapping[str, str] = field(kw_only=True)

    def rights(self, context: JobContext) -> Iterable[Right]:
        return context.rights()

    def apply(self, context: JobContext) -> str:
        return context.run_tasks()


@dataclass(frozen=True)
class HandBack(JobStep[HandBackContext]):
    """Fence the run's tasks, then resume or pause the connector on its workers (``verb``)."""

    verb: str = "resume"
    locked = True
    ends = StopOnWorkers

    def is_done(self, context: HandBackContext) -> str | None:
        """Return the state of a connector that is no longer stopped. Others handed it back then,
        and the tasks of the workers use the ids.
        """
        return context.taken_back(self.subject)

    def apply(self, context: HandBackContext) -> str | None:
        return context.hand_back(self.subject, self.verb)


def tasks_of(plan: Plan) -> RunTasks:
    """Return the step that runs the tasks. Raises ``BadInput`` if the plan has none."""
    found = next((step for step in plan.steps if isinstance(step, RunTasks)), None)
    if found is None:
        hint = "Make a new plan: connectctl run JOB --dry-run -o json."
        raise BadInput("The plan runs no tasks", next_step=hint)
    return found
