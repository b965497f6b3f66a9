"""The connector of live workers in the hands of a run: stopped there first, and as it was before at
the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.connect.connector import State, at_rest, requested_state
from connectctl.ops.core.errors import Refused, TimedOut
from connectctl.ops.core.finding import counted
from connectctl.ops.core.wait import wait_until
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.observe import Facts, read_facts
from connectctl.ops.operations.connectors.steps import WANTED, Await, SetTargetState
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job.config_topic_records import STOPPED, ConfigTopicState
from connectctl.ops.task_runtime.job.environment import JobEnvironment
from connectctl.ops.task_runtime.job.generation import check_fenced
from connectctl.ops.task_runtime.job.group_members import check_group_is_free
from connectctl.ops.task_runtime.job.steps import HandBack, StopOnWorkers

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls

PAUSE = 0.3


@dataclass
class WorkerTakeOver:
    """``own_tasks`` is how many tasks have begun. ``lost``: another run or worker has the
    connector, to be kept.
    """

    run: JobEnvironment
    own_tasks: int = 0
    lost: bool = False
    _touched: bool = False

    @contextmanager
    def held(self) -> Iterator[ConfigTopicState | None]:
        """What the workers' config topic says of the stopped connector, for as long as it is ours;
        None without workers.

        Afterwards the connector is as it was before, whatever happened here.
        """
        run, ready = self.run, self.run.ready
        if not ready.take_over:
            yield None
            return
        assert run.scene.workers is not None
        timeout = max(run.timeout, environment.LEAST_PATIENCE, run.outage.seconds)
        context = StepContext(run.scene.workers, timeout, facts=self._facts)
        name, verb = ready.name, ready.hand_back_action
        if verb is not None:
            run.note(
                f"{name} is stopped on its workers. If this run is killed: connectctl connectors "
                f"{verb} {name}"
            )
        try:
            if verb is not None:
                run.parts(StopOnWorkers, lambda: self._stop(context))
            taken = self._stopped(context)
            if run.members is not None:
                check_group_is_free(run.members, context.timeout)
            yield taken
        finally:
            if not self.lost and (verb is None or self._touched):
                run.parts(HandBack, lambda: self._hand_back(context, verb))

    def _stop(self, context: StepContext) -> None:
        name, self._touched = self.run.ready.name, True
        self.run.retries(
            f"stop {name} on its workers", lambda: SetTargetState(name, "stop", "").apply(context)
        )
        Await(name, State.STOPPED).apply(context)

    def _hand_back(self, context: StepContext, verb: str | None) -> None:
        """Fence what may be left of our own tasks, of which Spark may have lost sight, and let the
        workers' begin.
        """
        run, name = self.run, self.run.ready.name
        # The end that is wished for includes this; a second signal is one for an end on the spot.
        patiently = replace(run.outage, stopping=lambda: run.signals.count > 1)
        try:
            patiently("fence its tasks", lambda: run.fence_tasks(self.own_tasks))
        finally:
            if verb is not None:
                patiently(
                    f"{verb} {name} on its workers",
                    lambda: SetTargetState(name, verb, "").apply(context),
                )
                context.waits.pop(name, None)
                Await(name, WANTED[verb]).apply(context)

    def _facts(self) -> Facts:
        ready = self.run.ready
        return read_facts(self.run.scene.kafka, ready.group, ready.topics["config"])

    def _stopped(self, context: StepContext) -> ConfigTopicState:
        """The connector as the config topic has it once it is stopped, and no worker has a task.
        Raises ``TimedOut``.
        """
        ready, left = self.run.ready, 0

        def stopped() -> ConfigTopicState | None:
            nonlocal left
            seen, rests = self.run.retries(
                f"read the state of {ready.name}", lambda: self._seen(context)
            )
            left = seen.committed_tasks
            if seen.target != STOPPED and ready.hand_back_action is None:
                raise Refused(
                    f"{ready.name} was started on its workers in the meantime (target state "
                    f"{seen.target})"
                )
            return seen if seen.target == STOPPED and not seen.committed_tasks and rests else None

        if (found := wait_until(stopped, context.timeout, PAUSE)) is None:
            still = (
                f"still has {counted(left, 'task')} on its workers"
                if left
                else "is not known to have ended its tasks"
            )
            raise TimedOut(
                f"{ready.name} {still} after {context.timeout:g} s",
                why=None if left else "a worker has one of its tasks, or the group is rebalancing",
                next_step=f"See connectctl connectors show {ready.name}.",
            )
        return found

    def _seen(self, context: StepContext) -> tuple[ConfigTopicState, bool]:
        name = self.run.ready.name
        return self.run.leader.read_state(name), at_rest(context.read(name))


def hand_back(
    context: StepContext, calls: TransactionCalls, ids: Sequence[str], name: str, verb: str
) -> str | None:
    """The connector of a run that was killed goes back to its workers: fence ``ids``, which its
    tasks may still use, and do ``verb`` with it: ``resume`` or ``pause``.

    Does nothing where somebody has done so meanwhile: the tasks of the workers have the ids then.
    """
    state = requested_state(context.read(name))
    if state is not State.STOPPED:
        return f"handed back to its workers (state {state})"
    check_fenced(
        fence_ids(calls, ids, context.timeout),
        f"the {len(ids)} transactional ids of tasks of {name}",
    )
    SetTargetState(name, verb, "").apply(context)
    return Await(name, WANTED[verb]).apply(context)
