"""The workers in the rounds of the group: which of them joined lately, and since when findings about
the group last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

from connectctl.ops.checks.history.records import STARTING, History
from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.connect import cluster_findings
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.finding import Finding
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.cluster.worker_answers import MOST_AT_ONCE, describe_worker

BEGINNING = 60.0
"""Seconds in which the workers of a group that begins join it."""
_SINCE_A_ROUND = frozenset(
    (
        cluster_findings.NO_MEMBERS.id,
        cluster_findings.REBALANCE_DELAYED.id,
        cluster_findings.UNREPORTED.id,
    )
)
"""Findings about the group that began with its newest generation."""


def with_past(view: ClusterView, history: History, calls: ConnectCalls, now: float) -> ClusterView:
    """Return the view with since when its findings last, by the rounds of the group, and with the
    versions and the support of the workers that joined lately, because a rolling change may be in
    progress. ``now`` is in seconds since the epoch.
    """
    new = joined_later(history.rounds, view.group)
    to_describe = [worker for worker in view.workers if _is_asked(worker, new)]
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        known = dict(
            zip(to_describe, pool.map(partial(describe_worker, calls), to_describe), strict=True)
        )
    workers = tuple(known.get(worker, worker) for worker in view.workers)
    differences = (
        cluster_findings.versions_differ(workers, since=min(new.values(), default=None)),
        cluster_findings.support_differs(workers),
    )
    dated = _dated(view.findings, history.rounds, now)
    found = (*dated, *filter(None, differences if to_describe else ()))
    return replace(view, workers=workers, findings=found)


def _is_asked(worker: Worker, new: Mapping[str, float]) -> bool:
    return worker.address in new and worker.listed is not None and worker.version is None


def joined_later(rounds: Sequence[GroupRound], group: ConnectGroup) -> dict[str, float]:
    """Return the workers that started again, replace others, or came in addition, by address, with
    the time in seconds since the epoch: not those with which the group began.
    """
    departures = [
        after.at for before, after in pairwise(rounds) if before.ids.keys() - after.ids.keys()
    ]
    first: dict[str, float] = {}
    for each in rounds:
        for id in each.ids:
            first.setdefault(id, each.at)
    later = min([*departures, *(each.at + BEGINNING for each in rounds[:1])], default=0.0)
    return {
        member.name: first[member.id]
        for member in group.members
        if member.id in first and first[member.id] >= later
    }


def _dated(
    findings: Iterable[Finding], rounds: Sequence[GroupRound], now: float
) -> Iterator[Finding]:
    for each in findings:
        if not rounds or each.since is not None or each.id not in _SINCE_A_ROUND:
            yield each
            continue
        began = rounds[-1].at
        starts = each.id == cluster_findings.UNREPORTED.id and now - began < STARTING
        found = cluster_findings.unreported([each.subject], starting=True) if starts else each
        yield replace(found or each, since=began)
