"""The unhealthy workers, connectors and tasks: the one rule for gates, statuses and exit codes.
Pure.

Connectors and tasks are healthy in the states that can be requested: RUNNING, PAUSED and STOPPED. A
worker is healthy if it is in the group and its REST server answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import Connector, Owners, State, Status, at_rest, cause_of
from connectctl.ops.connect.fenced_task_diagnosis import may_be_fenced, round_missed
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized

HEALTHY_STATES = (State.RUNNING, State.PAUSED, State.STOPPED)
STARTING = "it is starting: its REST server has no resources yet"

Part = tuple[str, int]


def part_name(connector: str, task: int) -> str:
    """Return the connector, or connector and task: ``orders/0``."""
    return connector if task == CONNECTOR_INSTANCE else f"{connector}/{task}"


def is_healthy(state: str) -> bool:
    """Return whether a connector or task in ``state`` is healthy."""
    return state in HEALTHY_STATES


def rank(state: str) -> int:
    """Return 0 for a healthy state, 1 for a transient one, 2 for FAILED."""
    return 0 if is_healthy(state) else 2 if state == State.FAILED else 1


@dataclass(frozen=True)
class UnhealthyComponent:
    """An unhealthy connector or task. ``task`` is ``CONNECTOR_INSTANCE`` for the connector itself.

    ``fencing``: its round of zombie fencing failed. ``fenced``: its producer was fenced, as happens
    if a predecessor on another worker ends late, or its transaction expired: the trace is the same
    for both. Connect restarts neither.
    """

    connector: str
    task: int
    state: str
    cause: str | None = None
    fencing: bool = False
    fenced: bool = False

    @property
    def part(self) -> Part:
        """Connector and task."""
        return self.connector, self.task

    @property
    def rank(self) -> int:
        """Return the severity: FAILED is permanent, other states are transient."""
        return rank(self.state)

    @property
    def is_transient(self) -> bool:
        """Return whether the state is transient, as during a rebalance or restart."""
        return self.rank == 1

    @property
    def by_fencing(self) -> bool:
        """Return whether it is FAILED by fencing alone, so that a restart repairs it."""
        return self.rank == 2 and (self.fencing or self.fenced)

    @property
    def name(self) -> str:
        """Return the connector, or connector and task: ``orders/0``."""
        return part_name(self.connector, self.task)

    def __str__(self) -> str:
        return f"{self.name} is {self.state}" + (f" ({self.cause})" if self.cause else "")


@dataclass(frozen=True)
class UnhealthyWorker:
    """A worker that is not in the group (no ``problem``), or whose REST server does not answer,
    with the reason.
    """

    address: str
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.address} " + (
            f"does not answer: {self.problem}" if self.problem else "is not in the group"
        )


def unhealthy_workers(
    expected: Iterable[str], members: Iterable[str], problems: Mapping[str, str]
) -> tuple[UnhealthyWorker, ...]:
    """Return the workers among ``expected`` that are not healthy.

    ``members`` are the workers in the group; ``problems`` are the reasons why REST servers do not
    answer, by worker.
    """
    in_group, workers = frozenset(members), tuple(expected)
    absent = [UnhealthyWorker(worker) for worker in workers if worker not in in_group]
    silent = [UnhealthyWorker(w, problems[w]) for w in workers if w in in_group and w in problems]
    return (*absent, *silent)


def answer_problem(error: ConnectctlError, seconds: float) -> str:
    """Return why a worker did not answer ``GET /`` within ``seconds``."""
    if error.code in ("starting", "not-found"):
        return STARTING
    return f"it did not answer within {seconds:g} s" if error.why is None else reason_of(error)


def reason_of(error: ConnectctlError) -> str:
    """Return why a REST server gave no usable answer.

    An answer that is not Connect's is quoted with the request, without which it means nothing.
    """
    if (
        error.why is None
        or error.code in ("not-connect", "starting")
        or isinstance(error, NotAuthorized)
    ):
        return str(ConnectctlError(error.what, why=error.why)).rstrip(".")
    return error.why.rstrip(".")


def unhealthy_components(
    connectors: Sequence[Connector], owners: Owners | None
) -> tuple[UnhealthyComponent, ...]:
    """Return every unhealthy connector and task; without ``owners``, statuses are not checked
    against assignments.
    """
    return tuple(
        component
        for connector in connectors
        for task, status in sorted(connector.parts.items())
        if (component := _unhealthy_component(connector, task, status, owners))
    )


def failed_parts(connector: Connector) -> dict[int, Status]:
    """Return the statuses of the connector itself (``CONNECTOR_INSTANCE``) and of its tasks that
    are FAILED.
    """
    return parts_in(connector, State.FAILED)


def has_failed(status: Status | None) -> bool:
    """Return whether a worker wrote that a part is FAILED."""
    return status is not None and status.state == State.FAILED


def is_running(status: Status | None) -> bool:
    """Return whether a worker wrote that a part is RUNNING."""
    return status is not None and status.state == State.RUNNING


def parts_in(connector: Connector, state: State) -> dict[int, Status]:
    """Return the statuses of the connector itself (``CONNECTOR_INSTANCE``) and of its tasks that
    are in ``state``.

    A status counts if it is from the worker that has the part; any worker's counts where
    assignments are unknown.
    """
    owners, name = connector.owners, connector.name
    return {
        part: status
        for part, status in connector.parts.items()
        if status
        and status.state == state
        and (owners is None or owners.now(name, part, status)[0] == state)
    }


def _unhealthy_component(
    connector: Connector, task: int, status: Status | None, owners: Owners | None
) -> UnhealthyComponent | None:
    state, remark = (status.state if status else str(State.UNASSIGNED)), ""
    if owners is not None and not at_rest(connector):
        state, remark = owners.now(connector.name, task, status)
    if is_healthy(state):
        return None
    trace = status.trace if status else None
    failed = state == State.FAILED
    cause = cause_of(status) if failed else remark or None
    fencing, fenced = failed and round_missed(trace), failed and may_be_fenced(trace)
    return UnhealthyComponent(connector.name, task, state, cause, fencing, fenced)
