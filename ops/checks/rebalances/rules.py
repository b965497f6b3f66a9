"""GROUP001 to GROUP006: rebalances and their causes: rules over ``rebalances.observe``. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from connectctl.ops.checks.history.records import STARTING
from connectctl.ops.checks.rebalances.observe import WINDOW, GroupFacts
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.health import part_name
from connectctl.ops.core.finding import Severity, counted, some_of
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.core.times import utc

NAMED = 5
RESTART = 3
"""Rebalances that one restart of a worker causes: it leaves, it joins, and what it lost moves back."""
SECOND = 4
"""Of so many changes of connectors one may cause a second rebalance: what is revoked from one worker
for balance is assigned to another one in the next (KIP-415).
"""
FEW, MANY = 6, 30
"""Rebalances in ``WINDOW`` that are never, and that are always too many."""
RETURNS = 3
"""How often a worker may come back in ``WINDOW``: a rolling change restarts each once or twice."""
CATCH_UP = 30.0
"""Seconds in which a worker reads a new record of the config topic."""


@rule("GROUP001", Severity.WARNING)
def storm(facts: GroupFacts, goal: Goal) -> Case | None:
    """Return GROUP001 for more rebalances than changes of connectors and a rolling change cause."""
    began: dict[int, float] = {}
    for at, generation in facts.generations:
        began.setdefault(generation, at)
    if len(began) < 2:
        return None
    count = max(began) - min(began)
    limit = min(max(FEW, RESTART * facts.workers), MANY)
    if count - facts.changes <= limit + facts.changes // SECOND:
        return None
    times = [began[generation] for generation in sorted(began)]
    first, last = times[1], times[-1]
    minutes = max(1, round((last - first) / 60))
    explained = f"; changes of connectors explain {facts.changes}" if facts.changes else ""
    message = f"It rebalanced {count} times within {counted(minutes, 'minute')}{explained}."
    evidence = tuple(
        f"{utc(each.at * 1000)}  generation {each.generation}: "
        f"{some_of(sorted(each.members), NAMED) or 'no worker'}"
        for each in facts.rounds[-NAMED:]
    )
    returned = _returns(facts)
    hint = (
        f"Read the log of {max(returned, key=lambda worker: len(returned[worker]))}: it left and "
        "came back."
        if returned
        else "Read the log of the leader for the reason of each rebalance."
    )
    return Case(facts.group, message, hint, since=first, evidence=evidence)


@rule("GROUP002", Severity.WARNING)
def leader_moves(facts: GroupFacts, goal: Goal) -> Case | None:
    """Return GROUP002 if the leader changed more often than a rolling change makes it."""
    moves = [
        (before, after)
        for before, after in pairwise(facts.rounds)
        if before.leader and after.leader and before.leader != after.leader
    ]
    if len(moves) <= max(RETURNS, facts.workers):
        return None
    message = f"Its leader changed {len(moves)} times within {WINDOW / 60:.0f} minutes."
    evidence = tuple(
        f"{utc(after.at * 1000)}  {before.leader} to {after.leader}"
        for before, after in moves[-NAMED:]
    )
    hint = "Find why these workers leave the group: their logs, pauses of their JVMs, the network."
    return Case(facts.group, message, hint, since=moves[0][1].at, evidence=evidence)


@rule("GROUP003", Severity.WARNING)
def comes_and_goes(facts: GroupFacts, goal: Goal) -> Iterator[Case]:
    """Yield GROUP003 for each worker that left and came back several times."""
    for worker, joined in sorted(_returns(facts).items()):
        message = (
            f"It left the group and came back {len(joined)} times within {WINDOW / 60:.0f} "
            "minutes; its connectors and tasks wait each time."
        )
        evidence = tuple(f"{utc(at * 1000)}  it joined" for at in joined[-NAMED:])
        hint = "Read its log: is it restarted, out of memory, or cut off from the brokers?"
        yield Case(worker, message, hint, since=joined[0], evidence=evidence)


def _returns(facts: GroupFacts) -> dict[str, list[float]]:
    """Return when each worker came back, in seconds since the epoch, of those that did so
    ``RETURNS`` times or more. A worker that was in no generation before did not come back.
    """
    known: set[str] = set()
    joined: dict[str, list[float]] = {}
    for before, after in pairwise(facts.rounds):
        known |= before.members.keys()
        for worker in known & after.members.keys() - before.members.keys():
            joined.setdefault(worker, []).append(after.at)
    return {worker: times for worker, times in joined.items() if len(times) >= RETURNS}


@rule("GROUP004", Severity.WARNING)
def config_unread(facts: GroupFacts, goal: Goal) -> Iterator[Case]:
    """Yield GROUP004 for each worker that joined the present generation without having read old
    records of the config topic.
    """
    if not facts.rounds:
        return
    newest = facts.rounds[-1]
    for worker, offset in sorted(newest.members.items()):
        unread = [
            record
            for record in facts.configs
            if record.offset >= offset
            and record.at is not None
            and record.at < newest.at - CATCH_UP
        ]
        if unread:
            message = (
                f"It joined the group without {counted(len(unread), 'record')} of the config "
                f"topic (it had read up to offset {offset}): it runs old configurations."
            )
            hint = "Check that it can read the config topic, and has the same config.storage.topic."
            yield Case(worker, message, hint, since=unread[0].at)


@rule("GROUP005", Severity.ERROR)
def hung(facts: GroupFacts, goal: Goal) -> Iterator[Case]:
    """Yield GROUP005 for each worker that is alive and whose herder does not answer; as information
    right after a rebalance or a change of a connector, when it starts connectors and tasks.
    """
    written = [record.at for record in facts.configs if record.at is not None]
    began = max([*written, *(each.at for each in facts.rounds)], default=None)
    starts = began is not None and facts.now - began < STARTING
    for worker, path in facts.hung:
        message = (
            f"It is in the group and its REST server answers, but not GET {path}: its herder, the "
            "thread that starts and changes connectors, waits, usually for a plugin."
        )
        hint = "Take a thread dump (jstack) of it: the thread DistributedHerder shows the plugin."
        if starts:
            hint = "It may be starting connectors and tasks; run doctor again in half a minute."
        severity = Severity.INFO if starts else Severity.ERROR
        yield Case(worker, message, hint, severity)


@rule("GROUP006", Severity.WARNING)
def lost(facts: GroupFacts, goal: Goal) -> Iterator[Case]:
    """Yield GROUP006 for each worker that left without stopping what it ran, and is not back."""
    for worker in facts.lost:
        message = (
            f"It left the group without stopping the {counted(len(worker.ran), 'part')} that it "
            "ran, and has not come back: it was killed, hangs, or is cut off from the brokers."
        )
        evidence = (some_of([part_name(*part) for part in worker.ran], NAMED),)
        hint = (
            "Find its process and read its log. One that only hangs may still write: end it before "
            "another takes its place."
        )
        yield Case(worker.address, message, hint, since=worker.at, evidence=evidence)
