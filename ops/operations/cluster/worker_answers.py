"""What each worker of a group answers: its connectors, its health, its version and its support."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.endpoints import problem_of_url
from connectctl.ops.connect.connect_protocol import ConnectGroup, Member
from connectctl.ops.connect.health import answer_problem
from connectctl.ops.connect.worker import (
    Support,
    Worker,
    probe_config,
    probe_plugin,
    support_proven_by,
)
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, NotTrusted, TimedOut
from connectctl.ops.kafka.visibility import gap_of

PATIENCE = 3.0
"""Seconds that one worker may take for one answer."""
SHORT = 1.0
"""Seconds that a worker has for ``GET /`` if it did not list its connectors."""
LIST, HEALTH = "/connectors", "/health"
HEALTH_PATIENCE = (PATIENCE, 7.0)
"""Seconds of two requests for a worker's health: on a busy machine a herder may take more than the
first, and workers themselves give up after 10 s.
"""
MOST_AT_ONCE = 32
LONGEST = 100
"""The maximum number of characters of an advertised address that a message quotes."""


def observe_worker(calls: ConnectCalls, member: Member, group: ConnectGroup) -> Worker:
    """Return the worker with what ``describe_worker`` adds, if it can be asked."""
    worker = _worker(member, group)
    return worker if worker.problem or not worker.url else describe_worker(calls, worker)


def ask_for_list(calls: ConnectCalls, member: Member, group: ConnectGroup) -> Worker:
    """Return the worker with the names of its connectors, and with the request that hangs."""
    worker = _worker(member, group)
    if worker.problem or not worker.url:
        return worker
    try:
        listed = frozenset(calls.get(LIST, url=worker.url, timeout=PATIENCE))
    except ConnectctlError as e:
        silent = _without_answer(worker, e, PATIENCE)
        if not _hangs(e, group):
            return silent
        answers = with_version(calls, worker, SHORT).problem is None
        return replace(silent, hung=LIST if answers else None)
    return _with_health(calls, replace(worker, listed=listed), group)


def _with_health(calls: ConnectCalls, worker: Worker, group: ConnectGroup) -> Worker:
    """Return the worker with ``HEALTH`` as the request that hangs if its herder does not answer it.

    Workers before 3.9 do not have it (KIP-1017), and the herder waits in a rebalance.
    """
    for seconds in HEALTH_PATIENCE:
        try:
            calls.get(HEALTH, url=worker.url, timeout=seconds)
        except NotAuthorized as e:
            return replace(worker, health_gap=gap_of(e, f"GET {HEALTH} of {worker.address}"))
        except ConnectctlError as e:
            if e.code == "worker-error" and group.settled:
                return replace(worker, hung=HEALTH)
            if _hangs(e, group):
                continue
        return worker
    return replace(worker, hung=HEALTH)


def _hangs(error: ConnectctlError, group: ConnectGroup) -> bool:
    """Return whether a worker accepted a request and did not answer it, outside of a rebalance."""
    return isinstance(error, TimedOut) and error.code != "rebalancing" and group.settled


def with_one_described(calls: ConnectCalls, workers: Sequence[Worker]) -> tuple[Worker, ...]:
    """Return the workers, one of those that answered with its version and support."""
    answering = [worker for worker in workers if worker.listed is not None]
    chosen = max(answering, key=lambda worker: worker.leader, default=None)
    return tuple(
        describe_worker(calls, worker) if worker is chosen else worker for worker in workers
    )


def _worker(member: Member, group: ConnectGroup) -> Worker:
    """Return the worker as its group describes it, with the reason if it cannot be asked."""
    assignment = member.assignment
    worker = Worker(
        address=member.name,
        url=member.url,
        leader=member is group.leader,
        connectors=len(assignment.connectors) if assignment else 0,
        tasks=len(assignment.tasks) if assignment else 0,
        config_offset=member.config_offset,
    )
    if member.without_rest:
        return replace(worker, problem="it has no REST API", without_rest=True)
    if not member.url:
        # In a rebalance the coordinator returns no metadata, and the REST server is unknown.
        return (
            worker
            if not group.settled
            else replace(worker, problem="its metadata in the group could not be parsed")
        )
    if problem_of_url(member.url):
        return replace(
            worker,
            problem=f"it advertises {member.url[:LONGEST]!r}, which is not the address of a REST "
            "server",
        )
    return worker


def describe_worker(calls: ConnectCalls, worker: Worker) -> Worker:
    """Return the worker with its version, its Kafka cluster and its support, or with the reason
    why it gave no answer.
    """
    worker = with_version(calls, worker, PATIENCE)
    return worker if worker.problem else replace(worker, support=_support(calls, worker.url))


def with_version(calls: ConnectCalls, worker: Worker, timeout: float) -> Worker:
    """Return the worker with its version and its Kafka cluster, or with the reason why it gave no
    answer within ``timeout`` seconds.
    """
    try:
        root = calls.get("/", url=worker.url, timeout=timeout)
    except ConnectctlError as e:
        return _without_answer(worker, e, timeout)
    return replace(worker, version=root.get("version"), cluster_id=root.get("kafka_cluster_id"))


def _without_answer(worker: Worker, error: ConnectctlError, timeout: float) -> Worker:
    shut = isinstance(error, (NotAuthorized, NotTrusted))
    return replace(worker, problem=answer_problem(error, timeout), shut=shut)


def ask_all(
    calls: ConnectCalls, group: ConnectGroup, members: Sequence[Member] | None = None
) -> tuple[Worker, ...]:
    """Return the workers of ``group``, or of ``members``, from concurrent requests."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        workers = list(
            pool.map(lambda member: observe_worker(calls, member, group), members or group.members)
        )
    return tuple(sorted(workers, key=lambda worker: worker.address))


def first_answering(calls: ConnectCalls, group: ConnectGroup) -> Worker | None:
    """Return the first worker of ``group`` that answers, whose version and support represent the
    cluster.
    """
    answers = (observe_worker(calls, member, group) for member in group.members)
    return next((worker for worker in answers if worker.problem is None), None)


def _support(calls: ConnectCalls, url: str) -> Support:
    try:
        plugin = probe_plugin(calls.get("/connector-plugins", url=url, timeout=PATIENCE))
        if plugin is None:
            return Support.UNKNOWN
        path = f"/connector-plugins/{plugin}/config/validate"
        return support_proven_by(
            calls.send("PUT", path, probe_config(plugin), url=url, timeout=PATIENCE)
        )
    except ConnectctlError:
        # A worker without an answer to the validation proves neither.
        return Support.UNKNOWN
