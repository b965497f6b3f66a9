"""Waiting at a gate: look after look, until the pure verdict is that it passes or stops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError, TimedOut
from connectctl.ops.model.connector import path_of
from connectctl.ops.model.membership import CONNECTOR_INSTANCE
from connectctl.ops.rolling.gates import Seen, Watch, take

if TYPE_CHECKING:
    from connectctl.ops.rolling.gates import Look, Trouble
    from connectctl.ops.rolling.hands import RollingHands

LONGEST_SETTLE = 5.0
"""Seconds after which a group in which nothing moves has settled, whatever its rebalance delay is."""
NEXT_REBALANCE = 1.0
"""Seconds in which workers that gave something up come back for the rebalance that gives it to others."""


def wait(hands: RollingHands, gate: str, *, forgives_fencing: bool = False, restarts: bool = True) -> str:
    """Wait until the cluster is healthy; gives what there is to say. Raises ``TimedOut`` or ``ConnectctlError``.

    ``gate`` names the place in the run: a task is restarted once at each.
    """
    from connectctl.ops.rolling.hands import POLL

    demand = replace(hands.demand(forgives_fencing=forgives_fencing), settle=settle_seconds(hands))
    watch, shown = Watch(hands.now()), ""
    while True:
        look = hands.see()
        seen = take(watch, look, demand)
        watch = seen.watch
        if seen.passed:
            hands.remember_leader()
            return _told(hands, gate, watch)
        if restarts and (again := [t for t in seen.fenced if f"{gate}:{t.name}" not in hands.notes.recovered]):
            for trouble in again:
                restart_once(hands, gate, trouble)
            watch = Watch(watch.began, delay=watch.delay)
        elif seen.stopped:
            raise _stop(hands, seen, look)
        if seen.unwell and seen.unwell[0] != shown:
            shown = seen.unwell[0]
            hands.progress(f"waiting: {'; '.join(seen.unwell[:3])}")
        hands.sleep(POLL)


def settle_seconds(hands: RollingHands) -> float:
    """For how long nothing may move: the cluster's own rebalance delay and a rebalance more, ``LONGEST_SETTLE`` at most.

    A longer delay is seen while it is pending, in the workers' assignments.
    """
    from connectctl.ops.rolling.observe import MAX_DELAY, leader_of

    try:
        leader = leader_of(hands.eyes.group())
        told = hands.driver.told(leader, MAX_DELAY) if leader else None
        return min(LONGEST_SETTLE, int(str(told.value)) / 1000 + NEXT_REBALANCE) if told else LONGEST_SETTLE
    except (ConnectctlError, ValueError):
        return LONGEST_SETTLE


def _stop(hands: RollingHands, seen: Seen, look: Look) -> ConnectctlError:
    late = hands.now() - seen.watch.began >= hands.patience.timeout
    kind = TimedOut if late else ConnectctlError
    return kind(
        "Health gate failed; upgrade stopped",
        why="; ".join(filter(None, [seen.stopped, _serving(hands, look)])),
        next_step="See connectctl upgrade status.",
        code="gate",
    )


def _serving(hands: RollingHands, look: Look) -> str | None:
    """What the last look saw of the workers; None where it saw nothing: then nothing is said of them."""
    if look.problem:
        return None
    workers = hands.ground.workers
    there = sum(worker in look.members and worker not in look.silent for worker in workers)
    return f"{there} of {len(workers)} workers are in the group and answer"


def restart_once(hands: RollingHands, gate: str, trouble: Trouble) -> None:
    """Restart a task whose round of fencing failed, and note that: Connect does not try again by itself."""
    hands.notes.recovered.append(f"{gate}:{trouble.name}")
    hands.save()
    hands.progress(f"restarting {trouble.name}: the leader restarted during its zombie fencing")
    tail = () if trouble.task == CONNECTOR_INSTANCE else ("tasks", str(trouble.task))
    try:
        hands.calls.send("POST", path_of("connectors", trouble.connector, *tail, "restart"))
    except ConnectctlError as e:
        hands.progress(f"{trouble.name} could not be restarted: {e}")


def _told(hands: RollingHands, gate: str, watch: Watch) -> str:
    said = [f"healthy at {watch.healthy} observations in a row"]
    if watch.delay:
        said.append(f"after a rebalance delay of {watch.delay:g} s")
    mark = f"{gate}:"
    again = [key.removeprefix(mark) for key in hands.notes.recovered if key.startswith(mark)]
    if again:
        said.append(f"restarted once, because the leader restarted during their zombie fencing: {', '.join(again)}")
    return ", ".join(said)
