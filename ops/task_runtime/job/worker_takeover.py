"""Takes over a connector of live workers: stops it there and waits until its tasks have ended."""

from __future__ import annotations

from functools import partial

from connectctl.ops.connect.connector import State, at_rest
from connectctl.ops.core.errors import Refused, TimedOut
from connectctl.ops.core.finding import counted
from connectctl.ops.core.wait import wait_until
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.observe import read_facts
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job.config_topic_records import STOPPED, ConfigTopicState
from connectctl.ops.task_runtime.job.environment import JobEnvironment
from connectctl.ops.task_runtime.job.group_members import check_group_is_free

PAUSE = 0.3


def workers_of(run: JobEnvironment) -> StepContext:
    """Return the context of steps on the workers that have the connector of ``run``."""
    ready = run.ready
    assert run.scene.workers is not None
    timeout = max(run.timeout, environment.LEAST_PATIENCE, run.outage.seconds)
    facts = partial(read_facts, run.scene.kafka, ready.group, ready.topics["config"])
    return StepContext(run.scene.workers, timeout, facts=facts)


def stop_on_workers(run: JobEnvironment, workers: StepContext) -> str | None:
    """Stop the connector on its workers, and wait until it is STOPPED."""
    name = run.ready.name
    run.note(
        f"{name} is stopped on its workers. If this run is killed: connectctl connectors "
        f"{run.ready.hand_back_action} {name}"
    )
    run.retries(f"stop {name} on its workers", lambda: SetTargetState(name, "stop").apply(workers))
    return Await(name, State.STOPPED).apply(workers)


def await_stopped(run: JobEnvironment) -> ConfigTopicState:
    """Return the connector's state in the config topic once it is stopped, no worker has a task,
    and its consumer group is empty. Raises ``TimedOut``, and ``Refused`` if it was started
    meanwhile.
    """
    ready, workers, left = run.ready, workers_of(run), 0

    def seen() -> tuple[ConfigTopicState, bool]:
        return run.leader.read_state(ready.name), at_rest(workers.read(ready.name))

    def stopped() -> ConfigTopicState | None:
        nonlocal left
        state, rests = run.retries(f"read the state of {ready.name}", seen)
        left = state.committed_tasks
        if state.target != STOPPED and ready.hand_back_action is None:
            raise Refused(
                f"{ready.name} was started on its workers in the meantime (target state "
                f"{state.target})"
            )
        return state if state.target == STOPPED and not state.committed_tasks and rests else None

    if (found := wait_until(stopped, workers.timeout, PAUSE)) is None:
        still = (
            f"still has {counted(left, 'task')} on its workers"
            if left
            else "is not known to have ended its tasks"
        )
        raise TimedOut(
            f"{ready.name} {still} after {workers.timeout:g} s",
            why=None if left else "a worker has one of its tasks, or the group is rebalancing",
            next_step=f"See connectctl connectors show {ready.name}.",
        )
    if run.members is not None:
        check_group_is_free(run.members, workers.timeout)
    return found
