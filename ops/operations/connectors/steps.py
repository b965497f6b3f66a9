"""Plans and steps that stop, pause, resume and restart connectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from connectctl.ops.connect.connector import (
    Connector,
    State,
    at_rest,
    paused,
    requested_state,
    restoring_verb,
    verdict_of,
)
from connectctl.ops.connect.fenced_task_diagnosis import may_be_fenced
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.connect.target_state_wait import GRACE, WaitProgress
from connectctl.ops.connect.too_many_tasks import restart_hint, restart_warning
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused, TimedOut
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep, Step
from connectctl.ops.core.wait import wait_until
from connectctl.ops.operations.connectors.context import POLL, StepContext
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.observe import ConnectorHealth

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run

QUICK_POLL = 0.15
"""Seconds between two observations while a restart may be in progress: its RESTARTING may be
short.
"""
WANTED = {"stop": State.STOPPED, "pause": State.PAUSED, "resume": State.RUNNING}
VERB_OF = {state: verb for verb, state in WANTED.items()}

ConnectorStep = Step[StepContext]
S_contra = TypeVar("S_contra", bound=StepContext, contravariant=True)


@dataclass(frozen=True)
class SetTargetState(ResourceStep[StepContext]):
    """Stop, pause or resume a connector. ``former`` is its former target state, RUNNING, PAUSED or
    STOPPED.
    """

    verb: str
    former: str | None = None

    def describe(self) -> str:
        return f"{self.verb} {self.subject}"

    def is_done(self, context: StepContext) -> str | None:
        return already_satisfied(self.verb, context.read(self.subject))

    def apply(self, context: StepContext) -> str | None:
        try:
            context.change(self.subject, "PUT", f"/{self.verb}")
        except ConnectctlError as e:
            if self.verb == "stop" and e.code in ("not-found", "unsupported"):
                raise ConnectctlError(
                    f"{self.subject} cannot be stopped: the state STOPPED requires workers of "
                    "Kafka 3.5 or newer",
                    why=e.why,
                    next_step=f"Pause it instead: connectctl connectors pause {self.subject}",
                    code="unsupported",
                ) from e
            raise
        return None


@dataclass(frozen=True)
class Restart(ResourceStep[StepContext]):
    """Restart a connector and its tasks, or the failed ones of them (KIP-745)."""

    only_failed: bool

    def describe(self) -> str:
        return f"restart {'the failed parts of ' if self.only_failed else ''}{self.subject}"

    def is_done(self, context: StepContext) -> str | None:
        return (
            "nothing has failed"
            if self.only_failed and not failed_parts(context.read(self.subject))
            else None
        )

    def apply(self, context: StepContext) -> str | None:
        only = str(self.only_failed).lower()
        if (
            context.change(self.subject, "POST", f"/restart?includeTasks=true&onlyFailed={only}")
            is None
        ):
            # Workers before 3.0 ignore the two parameters and answer without content.
            raise ConnectctlError(
                f"Only the connector {self.subject} itself was restarted, not its tasks: the "
                "workers are older than 3.0",
                next_step=f"Restart each task: POST /connectors/{self.subject}/tasks/N/restart",
                code="unsupported",
            )
        return None


@dataclass(frozen=True)
class RestartTask(ResourceStep[StepContext]):
    task: int

    def describe(self) -> str:
        return f"restart task {self.task} of {self.subject}"

    def apply(self, context: StepContext) -> str | None:
        context.change(self.subject, "POST", f"/tasks/{self.task}/restart")
        return None


@dataclass(frozen=True)
class Await(ResourceStep[StepContext]):
    """Wait until a connector is in the state ``wanted``; fail immediately if it is FAILED instead.

    After a change by this run, parts that failed only because of fencing are restarted once. A task
    that ends late uses the transactional id of its successor, and workers do not restart the fenced
    one.
    """

    wanted: State

    def describe(self) -> str:
        return f"wait until {self.subject} is {self.wanted}"

    def apply(self, context: StepContext) -> str | None:
        own_change = self.subject in context.before
        if not own_change:
            context.before[self.subject] = context.read(self.subject), context.now()
        wait, again = self.waited(context), ""
        if wait.failed and own_change and _failed_by_fencing(context.read(self.subject)):
            RestartAndAwait.restart(self.subject, context)
            del context.waits[self.subject]
            wait = self.waited(context)
            again = "; tasks that had failed because their producer was fenced were restarted once"
        return self.result(context, wait, again)

    def result(self, context: StepContext, wait: WaitProgress, again: str = "") -> str:
        """Return the end of a wait in words. Raises ``ConnectctlError`` for one that failed."""
        if wait.failed:
            restart = restart_hint(context.read(self.subject))
            raise ConnectctlError(
                f"{self.subject} is {wait.verdict}{again}",
                why=wait.verdict.cause,
                next_step=f"See connectctl connectors show {self.subject} -o wide. {restart}",
                code="connector-failed",
            )
        return f"{wait.verdict}{again}"

    def waited(self, context: StepContext) -> WaitProgress:
        """Wait, and return the end of the wait. Raises ``TimedOut``."""
        context.await_all(self.subject, self.wanted)
        wait = context.waits[self.subject]

        def end() -> WaitProgress | None:
            context.check_waits()
            return wait.end

        def pause(seconds: float) -> None:
            context.sleep(QUICK_POLL if context.now() - wait.began < GRACE else seconds)

        if wait.end is None:
            wait_until(
                end,
                wait.began + context.timeout - context.now(),
                POLL,
                now=context.now,
                sleep=pause,
            )
        if wait.end is None:
            raise TimedOut(
                f"{self.subject} is not {self.wanted} after {context.timeout:g} s",
                why=f"it is {wait.last}",
                next_step=f"See connectctl connectors show {self.subject}, or try a longer "
                "--timeout.",
            )
        return wait.end


@dataclass(frozen=True)
class VerifyState(ResourceStep[StepContext]):
    """Verify that an unchanged connector is in the state that its file declares, and healthy."""

    read_only = True
    wanted: State

    def describe(self) -> str:
        return f"verify that {self.subject} is {self.wanted}"

    def apply(self, context: StepContext) -> str | None:
        if other := other_state(context.read(self.subject), self.wanted):
            raise ConnectctlError(
                f"{self.subject} is {other}, and its file means {self.wanted}",
                why="its state was changed since it was applied",
                next_step=f"Change it with connectctl connectors {VERB_OF[self.wanted]} "
                f"{self.subject}, or have the file say so.",
                code="drifted",
            )
        # Without a change, every status is current. All connectors to verify are observed together.
        for name in (self.subject, *context.verified):
            context.before.setdefault(name, (Connector(name, None), context.now()))
        wait = Await(self.subject, self.wanted)
        return wait.result(context, wait.waited(context))


@dataclass(frozen=True)
class RestartAndAwait(ResourceStep[S_contra]):
    def describe(self) -> str:
        return f"restart the failed parts of {self.subject}, and wait until it is RUNNING"

    def is_done(self, context: S_contra) -> str | None:
        # Parts that a killed run has restarted may still be starting; apply waits for them.
        return None if context.resumed else Restart(self.subject, True).is_done(context)

    def apply(self, context: S_contra) -> str | None:
        self.restart(self.subject, context)
        return Await(self.subject, State.RUNNING).apply(context)

    @staticmethod
    def restart(subject: str, context: StepContext) -> None:
        """Restart the failed parts, if there are any."""
        restart = Restart(subject, True)
        if restart.is_done(context) is None:
            restart.apply(context)


def restarts_instead(run: Run, steps: Sequence[Step[Any]]) -> dict[int, Step[Any]]:
    """Return the restarts of a resumed run, by number, in place of waits that are left after the
    changes before them.
    """

    def only_awaited(number: int) -> bool:
        earlier = [
            n for n, step in enumerate(steps[:number]) if step.subject == steps[number].subject
        ]
        return not run.done(number) and all(map(run.done, earlier))

    return {
        number: RestartAndAwait[Any](step.subject)
        for number, step in enumerate(steps)
        if isinstance(step, Await) and step.wanted is State.RUNNING and only_awaited(number)
    }


def former_state(step: SetTargetState) -> State:
    """Return the target state before ``step``; if it is not recorded, the one in the observed
    status.
    """
    if step.former is not None:
        return State(step.former)
    return next(
        (state for state in (State.PAUSED, State.STOPPED) if step.now.startswith(state.value)),
        State.RUNNING,
    )


def steps_back(name: str, was: str) -> list[Any]:
    """Return the steps that give a stopped connector its former state again: PAUSED, else
    RUNNING.
    """
    verb = restoring_verb(was)
    return [SetTargetState(name, verb, now="STOPPED"), Await(name, WANTED[verb])]


def while_stopped(name: str, was: State | None, steps: Sequence[Any]) -> list[Any]:
    """Return ``steps`` between the stop of a connector and its return to the state ``was``; alone
    if that is None: it is stopped already.
    """
    if was is None:
        return [*steps]
    stop = SetTargetState(name, "stop", now=str(was))
    return [stop, Await(name, State.STOPPED), *steps, *steps_back(name, str(was))]


def other_state(connector: Connector, expected: State) -> State | None:
    """Return the requested state of a connector if it is not ``expected``, otherwise None; from its
    status if unknown.
    """
    state = requested_state(connector)
    return state if state is not expected else None


def already_satisfied(verb: str, connector: Connector) -> str | None:
    """Return why ``verb`` would not change ``connector``, None if it would, or if that is unknown.

    If the target state is unknown, the statuses must be unambiguous: a repeated request does no
    harm.
    """
    if verb == "stop":
        return "already STOPPED" if at_rest(connector) else None
    verdict = verdict_of(connector, connector.owners)
    if verb == "pause":
        if not paused(connector):
            return None
        failed = verdict.state is State.FAILED
        return (
            f"its target state is PAUSED already; it is {verdict}" if failed else "already PAUSED"
        )
    if connector.target_state is None:
        return "already RUNNING" if verdict.state is State.RUNNING and connector.tasks else None
    if requested_state(connector) is not State.RUNNING:
        return None
    if verdict.state is State.RUNNING:
        return f"already {verdict}"
    more = f". {restart_hint(connector)}" if verdict.state in (State.FAILED, State.DEGRADED) else ""
    return f"its target state is STARTED already; it is {verdict}{more}"


def _failed_by_fencing(connector: Connector) -> bool:
    """Return whether all failed parts were fenced, according to their stack traces; True if none is
    FAILED any longer.
    """
    return all(may_be_fenced(status.trace) for status in failed_parts(connector).values())


def plan_state(
    cluster_id: str,
    selected: Sequence[ConnectorHealth],
    verb: str,
    *,
    wait: bool,
    group_id: str = "",
) -> Plan:
    refuse_doubtful(health.connector for health in selected)
    already = {
        health.name: why
        for health in selected
        if (why := already_satisfied(verb, health.connector))
    }
    changes = [
        SetTargetState(
            health.name,
            verb,
            now=str(health.verdict),
            former=requested_state(health.connector).value,
        )
        for health in selected
        if health.name not in already
    ]
    # Connectors with the target state that are not yet in it are awaited as well, and fail if they
    # are FAILED.
    pending = [
        health
        for health in selected
        if health.name not in already or health.verdict.state is not WANTED[verb]
    ]
    already = {
        name: why
        for name, why in already.items()
        if not wait or name not in {health.name for health in pending}
    }
    waits = [Await(health.name, WANTED[verb]) for health in pending] if wait else []
    return _plan(f"connectors {verb}", cluster_id, group_id, (*changes, *waits), already)


def plan_restart(
    cluster_id: str,
    selected: Sequence[ConnectorHealth],
    *,
    only_failed: bool,
    named: bool,
    wait: bool,
    task: int | None = None,
    group_id: str = "",
) -> Plan:
    """Return the plan that restarts the connectors, or the ``task`` of each.

    Raises ``Refused`` if a ``named`` connector is stopped or paused, ``BadInput`` if one has no
    such task.
    """
    refuse_doubtful(health.connector for health in selected)
    not_running = [
        health for health in selected if requested_state(health.connector) is not State.RUNNING
    ]
    if not_running and named:
        text = ", ".join(f"{health.name} is {health.verdict.state}" for health in not_running)
        hint = f"connectctl connectors resume {' '.join(health.name for health in not_running)}"
        raise Refused(
            f"A restart does not start stopped or paused connectors: {text}", next_step=hint
        )
    idle = {health.name: f"it is {health.verdict.state}" for health in not_running}
    if only_failed:
        idle |= {
            health.name: "nothing has failed"
            for health in selected
            if health.name not in idle and not failed_parts(health.connector)
        }
    todo = [health for health in selected if health.name not in idle]
    if without := [
        health.name for health in todo if task is not None and task not in health.connector.tasks
    ]:
        hint = "Tasks are counted from 0: connectctl connectors show NAME."
        raise BadInput(
            f"Task not found: {task} of {', '.join(without)}", next_step=hint, code="unknown-task"
        )
    changes = [
        Restart(health.name, only_failed, now=str(health.verdict))
        if task is None
        else RestartTask(health.name, task, now=str(health.verdict))
        for health in todo
    ]
    waits = [Await(change.subject, State.RUNNING) for change in changes] if wait else []
    warnings = (
        restart_warning(health.connector, only_failed=only_failed)
        for health in todo
        if task is None
    )
    plan = _plan("connectors restart", cluster_id, group_id, (*changes, *waits), idle)
    return replace(plan, warnings=tuple(filter(None, warnings)))


def _plan(
    operation: str, cluster_id: str, group_id: str, steps: tuple[Any, ...], idle: dict[str, str]
) -> Plan:
    noops = tuple(Noop(name, reason) for name, reason in idle.items())
    return Plan(operation, cluster_id, steps, noops, group_id, independent=True)
