"""Observes the generations of the group in the last minutes: in the records of its coordinator, or
where these may not be read in the statuses that workers wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.history.records import ConfigRecord, History
from connectctl.ops.checks.rebalances.lost import LostWorker, lost_workers
from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR
from connectctl.ops.connect.group_rounds import GroupRound

WINDOW = 600.0
"""Seconds of the past in which rebalances are counted."""


@dataclass(frozen=True)
class GroupFacts:
    """The generations that were recorded in the last ``WINDOW`` seconds, oldest first. ``now`` is
    in seconds since the epoch.

    ``generations`` are ``(time, generation)`` by the coordinator's records, or by statuses, oldest
    first; a rebalance is between two of them. ``changes`` are the rebalances that records of the
    config topic caused in that time; ``configs`` are all its records about connectors.
    """

    group: str
    workers: int
    now: float
    rounds: tuple[GroupRound, ...] = ()
    generations: tuple[tuple[float, int], ...] = ()
    changes: int = 0
    configs: tuple[ConfigRecord, ...] = ()
    hung: tuple[tuple[str, str], ...] = ()
    """The workers whose REST servers answer, with the path that they do not answer."""
    lost: tuple[LostWorker, ...] = ()


def observe(context: CheckContext, now: float) -> GroupFacts:
    """Observe the generations of the group; ``now`` in seconds since the epoch."""
    group = context.group
    rounds = tuple(each for each in context.history.rounds if each.at >= now - WINDOW)
    by_statuses = sorted(set(_generations(context.history, now - WINDOW)))
    changes = caused_by(context.history.configs, now - WINDOW)
    return GroupFacts(
        group.id,
        len(group.members),
        now,
        rounds,
        tuple((each.at, each.generation) for each in rounds) or tuple(by_statuses),
        changes,
        context.history.configs,
        tuple((each.address, each.hung) for each in context.view.workers if each.hung),
        lost_workers(context.history, group),
    )


def caused_by(configs: Iterable[ConfigRecord], start: float) -> int:
    """Return how many rebalances the changes of connectors since ``start`` caused: one for each new
    configuration, one for each set of task configurations, and two for a deletion. Ten connectors
    that were created and deleted one after the other on two workers of 4.3.1 caused 40.
    """
    recent = [each for each in configs if each.at is not None and each.at >= start]
    return sum(
        2 if record.kind == CONNECTOR and record.raw is None else 1
        for record in recent
        if record.kind in (CONNECTOR, COMMIT)
    )


def _generations(history: History, start: float) -> Iterator[tuple[float, int]]:
    for statuses in history.statuses.values():
        for status in statuses:
            if status.at is not None and status.generation is not None and status.at >= start:
                yield status.at, status.generation
