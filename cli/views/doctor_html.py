"""What ``doctor`` found as one page: the findings, and a picture of states, rebalances,
configurations and offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectctl.cli.output.html_lanes import Band, Lane, merged, picture
from connectctl.cli.output.html_page import grouped, render, sections
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import State
from connectctl.ops.core.finding import Finding, Severity, counted
from connectctl.ops.core.times import utc
from connectctl.ops.core.unseen import NOT_SEEN

if TYPE_CHECKING:
    from connectctl.ops.checks.history.records import StatusRecord
    from connectctl.ops.checks.runner import CheckRun

LONGEST = 24 * 3600.0
"""Seconds before the look that a picture shows at most."""
SHORTEST = 600.0
CONNECTORS = 50
"""Most connectors with a picture, those with findings first."""
TASKS = 20
"""Most tasks in the picture of a connector, those that failed last first."""
_WORDS = {
    Severity.ERROR: ("ill", "bad"),
    Severity.WARNING: ("ailing", "doubt"),
    Severity.INFO: ("well", "good"),
}
_KINDS: dict[str, str] = {
    State.RUNNING: "good",
    State.FAILED: "bad",
    State.PAUSED: "rest",
    State.STOPPED: "rest",
}


def page(run: CheckRun, found: Sequence[Finding], origin: PageOrigin) -> str:
    """Return the page of a run with the findings ``found``."""
    groups = grouped(found)
    begin = _begin(run)
    names = _named(run, found)
    word, kind = _verdict(found)
    return render(
        "doctor.html",
        title=f"Doctor of the Connect cluster {run.context.group.id}",
        origin=origin,
        sections=sections(groups, group="Rebalances and workers", timeline="Connectors over time"),
        findings=groups,
        word=word,
        kind=kind,
        known=f"{counted(len(run.context.view.workers), 'worker')}, "
        f"{counted(len(run.context.names), 'connector')}",
        looked_at=utc(run.now * 1000),
        group=picture([*_group(run, begin)], begin, run.now),
        pictures=[
            (
                name,
                picture([*_connector(run, name, begin)], begin, run.now),
                _tasks_left_out(run, name),
            )
            for name in names
        ],
        left_out=len(run.context.names) - len(names),
    )


def _verdict(found: Sequence[Finding]) -> tuple[str, str]:
    """Return the verdict in a word, and its style. What was not seen is not called well."""
    worst = min((finding.severity for finding in found), key=list(Severity).index, default=None)
    if worst in (None, Severity.INFO) and any(each.id == NOT_SEEN.id for each in found):
        return "unknown", "doubt"
    return _WORDS[worst or Severity.INFO]


def _begin(run: CheckRun) -> float:
    """Return the beginning of the pictures: of the oldest event, at most ``LONGEST`` ago."""
    history = run.context.history
    times = [each.at for past in history.statuses.values() for each in past]
    times += [each.at for each in history.configs]
    oldest = min((at for at in times if at is not None), default=run.now)
    return min(max(oldest, run.now - LONGEST), run.now - SHORTEST)


def _named(run: CheckRun, found: Sequence[Finding]) -> list[str]:
    """Return the connectors with a picture, those with findings first."""
    order = [
        subject for each in found for subject in (each.subject, each.subject.partition("/")[0])
    ]
    rank = {subject: n for n, subject in reversed(list(enumerate(order)))}
    return sorted(run.context.names, key=lambda name: (rank.get(name, len(order)), name))[
        :CONNECTORS
    ]


def _group(run: CheckRun, begin: float) -> Iterator[Lane]:
    """Yield the generations of the group, and the workers that wrote statuses, by their
    statuses.
    """
    every = [each for past in run.context.history.statuses.values() for each in past]
    first: dict[int, float] = {}
    workers: dict[str, list[float]] = {}
    for each in every:
        if each.at is None:
            continue
        if each.generation is not None:
            first[each.generation] = min(first.get(each.generation, each.at), each.at)
        if each.worker:
            workers.setdefault(each.worker, []).append(each.at)
    marks = [
        Band("info", f"{utc(at * 1000)} first status of generation {generation}", at, at)
        for generation, at in sorted(first.items())
    ]
    yield Lane("rebalances", marks=marks)
    for worker, times in sorted(workers.items()):
        yield Lane(worker, marks=_counted(times, begin, run.now, "info", "statuses"))


def _connector(run: CheckRun, name: str, begin: float) -> Iterator[Lane]:
    history = run.context.history
    parts = _parts(run, name)
    failed = {
        task: max((p.at or 0 for p in past if p.state == State.FAILED), default=0)
        for task, past in parts.items()
        if task != CONNECTOR_INSTANCE
    }
    shown = sorted(sorted(failed, key=lambda task: -failed[task])[:TASKS])
    for task in (CONNECTOR_INSTANCE, *shown):
        title = "connector" if task == CONNECTOR_INSTANCE else f"task {task}"
        yield Lane(title, list(_bands(parts.get(task, ()), run.now)))
    changes = [
        Band("info", f"{utc(each.at * 1000)} {_change(each.kind, each.task)}", each.at, each.at)
        for each in history.by_connector.get(name, ())
        if each.at is not None
    ]
    yield Lane("configurations", marks=changes)
    times = [at for key in history.offset_times.get(name, {}).values() for at in key]
    yield Lane("source offsets", marks=_counted(times, begin, run.now, "good", "offsets"))


def _parts(run: CheckRun, name: str) -> dict[int, Sequence[StatusRecord]]:
    """Return the statuses of the connector and of each of its tasks."""
    statuses = run.context.history.statuses
    return {task: past for (owner, task), past in statuses.items() if owner == name}


def _tasks_left_out(run: CheckRun, name: str) -> int:
    return max(0, len(_parts(run, name).keys() - {CONNECTOR_INSTANCE}) - TASKS)


def _change(kind: str, task: int | None) -> str:
    what = kind.rstrip("-").replace("-", " ")
    return what if task is None else f"{what} {task}"


def _counted(times: Sequence[float], begin: float, end: float, kind: str, what: str) -> list[Band]:
    return [
        Band(kind, f"{utc(at * 1000)} {count:,} {what}", at, at)
        for at, count in merged(times, begin, end)
    ]


def _bands(past: Sequence[StatusRecord], now: float) -> Iterator[Band]:
    """Yield the states of a part. Compaction removed older ones: before the first, nothing is
    known.
    """
    dated = [(each.at, each) for each in past if each.at is not None]
    ends = [*(at for at, _ in dated[1:]), now]
    for (at, each), end in zip(dated, ends, strict=False):
        if each.state is not None:
            kind = _KINDS.get(each.state, "doubt")
            title = f"{utc(at * 1000)} {each.state} on {each.worker or 'an unknown worker'}"
            yield Band(kind, title, at, end)
