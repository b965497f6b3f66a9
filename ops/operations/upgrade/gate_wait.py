"""Waiting at a gate: look after look, until the pure verdict is that it passes or stops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.operations.upgrade.context import POLL, UpgradeContext
from connectctl.ops.operations.upgrade.gates import Seen, Watch, take
from connectctl.ops.operations.upgrade.observe import MAX_DELAY, leader_of

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.gates import Look, Trouble

LONGEST_SETTLE = 5.0
"""Seconds after which a group in which nothing moves has settled, whatever its rebalance delay is."""
NEXT_REBALANCE = 1.0
"""Seconds in which workers that gave something up come back for the rebalance that gives it to others."""


def wait(context: UpgradeContext, gate: str, *, forgives_fencing: bool = False, restarts: bool = True) -> str:
    """Wait until the cluster is healthy; gives what there is to say. Raises ``TimedOut`` or ``ConnectctlError``.

    ``gate`` names the place in the run: a task is restarted once at each.
    """
    demand = replace(context.demand(forgives_fencing=forgives_fencing), settle=settle_seconds(context))
    watch, shown = Watch(context.now()), ""
    while True:
        look = context.see()
        seen = take(watch, look, demand)
        watch = seen.watch
        if seen.passed:
            context.remember_leader()
            return _told(context, gate, watch)
        if restarts and (again := [t for t in seen.fenced if f"{gate}:{t.name}" not in context.notes.recovered]):
            for trouble in again:
                restart_once(context, gate, trouble)
            watch = Watch(watch.began, delay=watch.delay)
        elif seen.stopped:
            raise _stop(context, seen, look)
        if seen.unwell and seen.unwell[0] != shown:
            shown = seen.unwell[0]
            context.progress(f"waiting: {'; '.join(seen.unwell[:3])}")
        context.sleep(POLL)


def settle_seconds(context: UpgradeContext) -> float:
    """For how long nothing may move: the cluster's own rebalance delay and a rebalance more, ``LONGEST_SETTLE`` at most.

    A longer delay is seen while it is pending, in the workers' assignments.
    """
    try:
        leader = leader_of(context.eyes.group())
        told = context.driver.told(leader, MAX_DELAY) if leader else None
        return min(LONGEST_SETTLE, int(str(told.value)) / 1000 + NEXT_REBALANCE) if told else LONGEST_SETTLE
    except (ConnectctlError, ValueError):
        return LONGEST_SETTLE


def _stop(context: UpgradeContext, seen: Seen, look: Look) -> ConnectctlError:
    late = context.now() - seen.watch.began >= context.patience.timeout
    kind = TimedOut if late else ConnectctlError
    return kind(
        "Health gate failed; upgrade stopped",
        why="; ".join(filter(None, [seen.stopped, _serving(context, look)])),
        next_step="See connectctl upgrade status.",
        code="gate",
    )


def _serving(context: UpgradeContext, look: Look) -> str | None:
    """What the last look saw of the workers; None where it saw nothing: then nothing is said of them."""
    if look.problem:
        return None
    workers = context.ground.workers
    there = sum(worker in look.members and worker not in look.silent for worker in workers)
    return f"{there} of {len(workers)} workers are in the group and answer"


def restart_once(context: UpgradeContext, gate: str, trouble: Trouble) -> None:
    """Restart a task whose round of fencing failed, and note that: Connect does not try again by itself."""
    context.notes.recovered.append(f"{gate}:{trouble.name}")
    context.save()
    context.progress(f"restarting {trouble.name}: the leader restarted during its zombie fencing")
    tail = () if trouble.task == CONNECTOR_INSTANCE else ("tasks", str(trouble.task))
    try:
        context.calls.send("POST", path_of("connectors", trouble.connector, *tail, "restart"))
    except ConnectctlError as e:
        context.progress(f"{trouble.name} could not be restarted: {e}")


def _told(context: UpgradeContext, gate: str, watch: Watch) -> str:
    said = [f"healthy at {watch.healthy} observations in a row"]
    if watch.delay:
        said.append(f"after a rebalance delay of {watch.delay:g} s")
    mark = f"{gate}:"
    again = [key.removeprefix(mark) for key in context.notes.recovered if key.startswith(mark)]
    if again:
        said.append(f"restarted once, because the leader restarted during their zombie fencing: {', '.join(again)}")
    return ", ".join(said)
