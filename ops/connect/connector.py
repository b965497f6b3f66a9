"""The state of a connector as one verdict from many statuses.

A status is what a worker last wrote about a connector or task; it stays when that worker dies. The
group's assignment defines which worker runs a part now. A status counts only if the worker that
wrote it still has that part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from connectctl.ops.config.masking import masked, remember
from connectctl.ops.connect import status_topic
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE, ConnectGroup, is_address
from connectctl.ops.connect.missing_class import shortened
from connectctl.ops.core.finding import counted

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord


def path_of(*segments: str) -> str:
    """Return a path of the REST API; each segment is escaped, because connector names may have
    slashes and spaces.
    """
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


class State(StrEnum):
    """The states of a verdict; all but DEGRADED are Connect's own."""

    RUNNING = "RUNNING"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    UNASSIGNED = "UNASSIGNED"


@dataclass(frozen=True)
class Status:
    """The last status of a connector or of one of its tasks. ``worker`` is an address,
    ``host:port``.
    """

    state: str
    worker: str | None = None
    trace: str | None = None


@dataclass(frozen=True)
class Connector:
    """A connector with the statuses of its parts. ``tasks`` has every expected task, with None for
    a missing status.

    ``stale_tasks`` are statuses of tasks that are no longer expected. ``target_state`` is STARTED,
    PAUSED or STOPPED and ``committed_tasks`` the number of committed task configurations, both from
    the config topic; both are None where only workers were asked, because the REST API has neither.
    ``assigned`` are the parts in the group's assignment, each with the worker's address; None if
    the assignment is unknown, as in a rebalance. ``doubt`` describes a contradiction in these
    facts: no change may rely on them.
    """

    name: str
    status: Status | None
    tasks: Mapping[int, Status | None] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    type: str | None = None
    target_state: str | None = None
    stale_tasks: Mapping[int, Status] = field(default_factory=dict)
    committed_tasks: int | None = None
    assigned: Mapping[int, str] | None = None
    doubt: str | None = None

    @property
    def parts(self) -> dict[int, Status | None]:
        """Return the statuses of the connector itself (``CONNECTOR_INSTANCE``) and of its tasks."""
        return {CONNECTOR_INSTANCE: self.status, **self.tasks}

    @property
    def owners(self) -> Owners | None:
        if self.assigned is None:
            return None
        return Owners({(self.name, part): worker for part, worker in self.assigned.items()})


@dataclass(frozen=True)
class Verdict:
    """The state of a connector, with a detail and the first line of the failure's cause.
    ``running`` counts tasks.
    """

    state: State
    detail: str = ""
    cause: str | None = None
    running: int = 0

    def __str__(self) -> str:
        return f"{self.state} {self.detail}".rstrip()


@dataclass(frozen=True)
class Owners:
    """The workers by part, from the group's assignment; ``CONNECTOR_INSTANCE`` is the connector
    itself.
    """

    by_part: Mapping[tuple[str, int], str]

    def now(self, connector: str, task: int, status: Status | None) -> tuple[str, str]:
        """Return ``(state, remark)`` of a part: its status, unless the part has no owner or another
        owner now.
        """
        owner = self.by_part.get((connector, task))
        if status is None:
            return State.UNASSIGNED, "no status yet"
        if owner is None:
            return State.UNASSIGNED, "not assigned to a worker"
        if _is_from_other_worker(status, owner):
            return State.UNASSIGNED, f"assigned to {owner}, which has not reported on it"
        return status.state, ""

    def unreported(self, connector: Connector) -> bool:
        """Return whether a part of ``connector`` has an owner and the status of another worker."""
        owned = (
            (self.by_part.get((connector.name, n)), status) for n, status in connector.parts.items()
        )
        return any(
            owner and status and _is_from_other_worker(status, owner) for owner, status in owned
        )

    def parts(self, connector: str) -> dict[int, str]:
        """Return the parts of ``connector`` that are assigned, with the worker's address."""
        return dict(self._by_connector.get(connector, {}))

    def of(self, connector: str) -> tuple[str, ...]:
        """Return the workers that have a part of ``connector``; the worker of the connector
        instance comes first.
        """
        return tuple(
            dict.fromkeys(
                worker for _, worker in sorted(self._by_connector.get(connector, {}).items())
            )
        )

    @cached_property
    def _by_connector(self) -> dict[str, dict[int, str]]:
        # Built once: every connector is looked up, and a cluster may have tens of thousands of
        # parts.
        found: dict[str, dict[int, str]] = {}
        for (name, task), worker in self.by_part.items():
            found.setdefault(name, {})[task] = worker
        return found


def owners_of(group: ConnectGroup | None) -> Owners | None:
    """Return the owners by the group's assignments; None during a rebalance, when assignments are
    undefined.
    """
    if group is None or not group.settled:
        return None
    return Owners({part: member.name for part, member in group.owners.items()})


def _is_from_other_worker(status: Status, owner: str) -> bool:
    """Return whether another worker than ``owner`` wrote the status; False if ``owner`` has no REST
    address.
    """
    return is_address(owner) and status.worker != owner


def verdict_of(connector: Connector, owners: Owners | None = None) -> Verdict:
    """Return the verdict on ``connector``; without ``owners`` statuses are not compared with
    assignments.

    A connector that is proven to be stopped is STOPPED, whatever its last statuses are.
    """
    if stopped(connector):
        return Verdict(State.STOPPED)
    own, remark = part_now(connector, CONNECTOR_INSTANCE, connector.status, owners)
    tasks = {n: part_now(connector, n, status, owners)[0] for n, status in connector.tasks.items()}
    running = sum(state == "RUNNING" for state in tasks.values())
    verdict = _by_own_state(connector, own, remark, tasks, running)
    return replace(verdict, running=running)


def stopped(connector: Connector) -> bool | None:
    """Return whether the connector is stopped and none of its tasks runs, by the config topic and
    the assignment.

    None if that is unknown (yet). After a commit of no tasks a worker stops its tasks first; only
    then does it join the rebalance that removes them from the assignment
    (``DistributedHerder.processTaskConfigUpdatesWithIncrementalCooperative``). Statuses prove
    nothing: any writer of the topic may have written the last one.
    """
    if connector.target_state is None or connector.doubt:
        return None
    if connector.target_state != "STOPPED" or connector.committed_tasks:
        return False
    if connector.assigned is None or connector.committed_tasks is None:
        return None
    return not connector.assigned.keys() - {CONNECTOR_INSTANCE}


def at_rest(connector: Connector) -> bool:
    """Return whether the connector is stopped and none of its tasks runs; by statuses where nothing
    else is known.
    """
    if connector.doubt or connector.target_state is not None:
        return stopped(connector) is True
    own = connector.status.state if connector.status else None
    return own == State.STOPPED and not _may_run_task(connector)


def paused(connector: Connector, *, accepted: bool = False) -> bool:
    """Return whether the connector is paused and none of its tasks runs.

    A part that failed before stays FAILED when it is paused, and does not run. ``accepted``: a
    worker accepted the request to pause, which counts where the target state is unknown.
    """
    target = connector.target_state or (State.PAUSED if accepted else None)
    if connector.doubt or target not in (None, State.PAUSED) or _may_run_task(connector):
        return False
    own, _ = part_now(connector, CONNECTOR_INSTANCE, connector.status, connector.owners)
    return own == State.PAUSED or (own == State.FAILED and target is not None)


def requested_state(connector: Connector) -> State:
    """Return the target state, or the state of its status if only workers were asked."""
    own = connector.status.state if connector.status else None
    target = connector.target_state or own
    return State(target) if target in (State.STOPPED, State.PAUSED) else State.RUNNING


def _may_run_task(connector: Connector) -> bool:
    """Return whether the last status of any task is RUNNING or RESTARTING, tasks that are no longer
    expected included.
    """
    tasks = [*connector.tasks.values(), *connector.stale_tasks.values()]
    return any(status is not None and status.state in ("RUNNING", "RESTARTING") for status in tasks)


def state_for_plan(connector: Connector, verdict: Verdict) -> State:
    """Return the state to plan a change with: STOPPED only if no task runs or the last one is about
    to end.

    A connector whose target state is STOPPED and that has no committed tasks counts as stopped,
    whatever its statuses are. The steps verify that its last task has ended.
    """
    ending = (
        connector.target_state == "STOPPED"
        and connector.committed_tasks == 0
        and not connector.doubt
    )
    if ending or at_rest(connector):
        return State.STOPPED
    if verdict.state is not State.STOPPED:
        return verdict.state
    return State.PAUSED if connector.target_state == "PAUSED" else State.RUNNING


def at_rest_for_plan(state: State | None, *, workers_up: bool) -> bool:
    """Return whether no worker runs a task of a connector in ``state`` of ``state_for_plan``; None:
    it does not exist.
    """
    return state in (State.STOPPED, None) or not workers_up


def restoring_verb(state: str | None) -> str:
    """Return the request that restores the former ``state`` of a stopped connector: ``pause`` or
    ``resume``.
    """
    return "pause" if state == State.PAUSED else "resume"


def _by_own_state(
    connector: Connector, own: str, remark: str, tasks: Mapping[int, str], running: int
) -> Verdict:
    still = f"with {running} of {counted(len(tasks), 'task')} still running" if running else ""
    if own == "FAILED":
        return Verdict(State.FAILED, still, cause_of(connector.status))
    if own in ("STOPPED", "PAUSED"):
        return Verdict(State(own), still)
    if own != "RUNNING":
        return _unassigned(connector, own, remark, still)
    if connector.target_state in ("STOPPED", "PAUSED"):
        return Verdict(State.RUNNING, f"asked to be {connector.target_state}")
    return _by_tasks(connector, tasks, Counter(tasks.values()))


def part_now(
    connector: Connector, task: int, status: Status | None, owners: Owners | None
) -> tuple[str, str]:
    """Return ``(state, remark)`` of a part; without ``owners`` the status counts as it is."""
    if owners is not None:
        return owners.now(connector.name, task, status)
    return (status.state, "") if status else (State.UNASSIGNED, "no status yet")


def _unassigned(connector: Connector, own: str, remark: str, still: str) -> Verdict:
    if connector.target_state == "STOPPED" and not still:
        # No worker runs it, and none should.
        return Verdict(State.STOPPED)
    why = remark or ("" if own == State.UNASSIGNED else f"now {own}")
    if still:
        return Verdict(
            State.DEGRADED, f"{still}, but the connector instance: {why or State.UNASSIGNED}"
        )
    last_status = (
        connector.status
        if remark and connector.status and connector.status.state != State.UNASSIGNED
        else None
    )
    suffix = f", last seen {last_status.state} on {last_status.worker}" if last_status else ""
    return Verdict(State.UNASSIGNED, why + suffix)


def _by_tasks(connector: Connector, tasks: Mapping[int, str], count: Counter[str]) -> Verdict:
    total = len(tasks)
    failed, running = count["FAILED"], count["RUNNING"]
    if not total:
        return Verdict(State.RUNNING, "with 0 tasks")
    if failed:
        cause = cause_of(
            next(connector.tasks[n] for n, state in tasks.items() if state == "FAILED")
        )
        state = State.FAILED if failed == total else State.DEGRADED
        return Verdict(state, f"{failed} of {counted(total, 'task')} failed", cause)
    if running == total:
        return Verdict(State.RUNNING)
    other, number = next((state, n) for state, n in count.most_common() if state != "RUNNING")
    state = State.DEGRADED if running else State.UNASSIGNED
    return Verdict(state, f"{number} of {counted(total, 'task')} {other.lower()}")


def cause_of(status: Status | None) -> str | None:
    """Return the first line of the innermost cause in a stack trace; outer ones only report a
    failure.
    """
    if status is None or not status.trace:
        return None
    lines = [line.strip() for line in masked(status.trace).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return shortened((causes or lines)[-1 if causes else 0])


def from_rest(name: str, data: Mapping[str, Any]) -> Connector:
    """Return a connector from its entry in ``GET /connectors?expand=status&expand=info``."""
    reported, info = data.get("status") or {}, data.get("info") or {}
    config = {name: text for name, text in (info.get("config") or {}).items() if text is not None}
    statuses = {int(task["id"]): _status(task) for task in reported.get("tasks") or ()}
    # The status store keeps removed tasks until the leader clears them; the task configs define the
    # expected ones. Removed tasks may still be shutting down.
    expected = (
        [int(task["task"]) for task in info["tasks"]]
        if info.get("tasks") is not None
        else sorted(statuses)
    )
    own = reported.get("connector")
    remember(config)
    return Connector(
        name=name,
        status=_status(own) if own else None,
        tasks={n: statuses.get(n) for n in expected},
        config=config,
        type=info.get("type") or reported.get("type"),
        stale_tasks={n: status for n, status in statuses.items() if n not in expected},
    )


def _status(data: Mapping[str, Any]) -> Status:
    return Status(str(data["state"]), data.get("worker_id"), data.get("trace") or None)


def statuses_from_topic(
    records: Iterable[ConsumerRecord], topic: str | None = None
) -> dict[tuple[str, int], Status]:
    """Return the status of each connector and task; ignored records are reported for ``topic``, if
    that is given.
    """
    return {
        part: _status(value)
        for part, (_, value) in status_topic.newest(records, topic=topic).items()
    }
