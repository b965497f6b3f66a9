"""Waits for a gate: takes health snapshots until it passes or fails."""

from __future__ import annotations

from dataclasses import replace

from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.health import UnhealthyComponent, unhealthy_workers
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.operations.rolling.waiting import Missing, wait_for
from connectctl.ops.operations.upgrade.context import UpgradeContext
from connectctl.ops.operations.upgrade.gates import GateState, HealthSnapshot, evaluate
from connectctl.ops.operations.upgrade.observe import MAX_DELAY, leader_of

LONGEST_SETTLE = 5.0
"""Seconds without any change after which a group counts as settled, whatever its rebalance delay
is.
"""
NEXT_REBALANCE = 1.0
"""Seconds until the follow-up rebalance that reassigns revoked tasks."""


def wait(
    context: UpgradeContext, gate: str, *, forgives_fencing: bool = False, restarts: bool = True
) -> str:
    """Wait until the cluster is healthy; return a summary. Raises ``TimedOut`` or
    ``ConnectctlError``.

    ``gate`` identifies the gate in the run: a task is restarted once at each.
    """
    criteria = replace(
        context.criteria(forgives_fencing=forgives_fencing), settle=settle_seconds(context)
    )
    watch = GateState(context.now())

    def probe() -> str | Missing:
        nonlocal watch
        health = context.health()
        result = evaluate(watch, health, criteria)
        watch = result.watch
        if result.passed:
            context.remember_leader()
            return _passed(context, gate, watch)
        if restarts and (
            retry := [t for t in result.fenced if f"{gate}:{t.name}" not in context.notes.recovered]
        ):
            for component in retry:
                restart_once(context, gate, component)
            watch = GateState(watch.began, delay=watch.delay)
        elif result.stopped:
            raise _stop(context, watch, result.stopped, health)
        return result.missing

    return str(wait_for(context, probe))


def settle_seconds(context: UpgradeContext) -> float:
    """Seconds without reassignment: the cluster's rebalance delay plus one rebalance, at most
    ``LONGEST_SETTLE``.

    A longer delay is visible in the workers' assignments while it is pending.
    """
    try:
        leader = leader_of(context.reader.group())
        reported = context.driver.configured(leader, MAX_DELAY) if leader else None
        return (
            min(LONGEST_SETTLE, int(str(reported.value)) / 1000 + NEXT_REBALANCE)
            if reported
            else LONGEST_SETTLE
        )
    except (ConnectctlError, ValueError):
        return LONGEST_SETTLE


def _stop(
    context: UpgradeContext, watch: GateState, stopped: str, health: HealthSnapshot
) -> ConnectctlError:
    late = context.now() - watch.began >= context.patience.timeout
    absent = [
        worker
        for worker in context.criteria().expected
        if worker not in health.members and not health.problem
    ]
    start = f"Start {' and '.join(absent)}. " if absent else ""
    kind = TimedOut if late else ConnectctlError
    return kind(
        "Health gate failed; upgrade stopped",
        why="; ".join(filter(None, [stopped, _responding_workers(context, health)])),
        next_step=f"{start}See connectctl upgrade status.",
        code="gate",
    )


def _responding_workers(context: UpgradeContext, health: HealthSnapshot) -> str | None:
    """The workers in the last snapshot; None if it could not be taken."""
    if health.problem:
        return None
    workers = context.baseline.workers
    responding = len(workers) - len(unhealthy_workers(workers, health.members, health.silent))
    return f"{responding} of {len(workers)} workers are in the group and respond"


def restart_once(context: UpgradeContext, gate: str, component: UnhealthyComponent) -> None:
    """Restart a task that failed by fencing alone, and record it: Connect does not retry."""
    context.notes.recovered.append(f"{gate}:{component.name}")
    context.save()
    why = (
        "the leader restarted during its zombie fencing"
        if component.fencing
        else "its producer was fenced, or its transaction expired"
    )
    context.progress(f"restarting {component.name}: {why}")
    tail = () if component.task == CONNECTOR_INSTANCE else ("tasks", str(component.task))
    try:
        context.calls.send("POST", path_of("connectors", component.connector, *tail, "restart"))
    except ConnectctlError as e:
        context.progress(f"could not restart {component.name}: {e}")


def _passed(context: UpgradeContext, gate: str, watch: GateState) -> str:
    parts = [f"healthy in {watch.healthy} consecutive observations"]
    if watch.delay:
        parts.append(f"after a rebalance delay of {watch.delay:g} s")
    mark = f"{gate}:"
    again = [key.removeprefix(mark) for key in context.notes.recovered if key.startswith(mark)]
    if again:
        parts.append(
            "restarted once, because their zombie fencing failed, their producer was fenced or "
            f"its transaction expired: {', '.join(again)}"
        )
    return ", ".join(parts)
