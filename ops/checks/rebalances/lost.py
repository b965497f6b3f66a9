"""The lost workers: those that left the group and did not stop their connectors and tasks before. Pure.

A worker that stops in order stops its connectors and tasks, and writes that they are UNASSIGNED,
before it leaves (``DistributedHerder.halt``, ``AbstractHerder.onShutdown``); one that was killed,
hangs or is cut off writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from connectctl.ops.checks.history.records import History, StatusRecord
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.connect.health import Part

STOPPING = 120.0
"""Seconds before it left in which a worker that stops in order stops what it ran."""


@dataclass(frozen=True)
class LostWorker:
    """A worker that left at ``at``, in seconds since the epoch, and what it ran then."""

    address: str
    at: float
    ran: tuple[Part, ...]


def lost_workers(history: History, group: ConnectGroup) -> tuple[LostWorker, ...]:
    """Return the workers that were lost and have not come back, oldest first; none while others
    take their places, while the group waits for them, which CLUSTER003 reports, and without any
    member, which CLUSTER001 reports.
    """
    if not group.settled or group.delay_ms or not group.members:
        return ()
    found = (
        LostWorker(worker, at, _ran(history, worker, at))
        for worker, at in _left(history.rounds, len(group.members))
        if worker not in {member.name for member in group.members}
    )
    return tuple(lost for lost in found if lost.ran)


def _left(rounds: tuple[GroupRound, ...], workers: int) -> Iterator[tuple[str, float]]:
    """Yield which workers left last when, where the group had more members than now."""
    left: dict[str, float] = {}
    for before, after in pairwise(rounds):
        for worker in before.members.keys() - after.members.keys():
            if len(before.members) > workers:
                left[worker] = after.at
        for worker in after.members:
            left.pop(worker, None)
    yield from sorted(left.items(), key=lambda item: item[1])


def _ran(history: History, worker: str, at: float) -> tuple[Part, ...]:
    """Return what ``worker`` ran when it left; nothing if it stopped any of it."""
    running = []
    for part, statuses in history.statuses.items():
        before = [each for each in statuses if each.at is not None and each.at < at]
        last = before[-1] if before else None
        if last is None or last.worker != worker:
            continue
        if _was_stopped(last, at):
            return ()
        if last.state == State.RUNNING:
            running.append(part)
    return tuple(sorted(running))


def _was_stopped(last: StatusRecord, at: float) -> bool:
    return last.state == State.UNASSIGNED and last.at is not None and last.at >= at - STOPPING
