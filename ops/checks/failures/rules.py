"""FAIL001 to FAIL005: connectors and tasks that fail: rules over ``failures.observe``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from connectctl.ops.checks.failures.observe import FailureFacts, PartPast
from connectctl.ops.checks.history.records import StatusRecord
from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR
from connectctl.ops.connect.connector import State, cause_of
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.health import is_running, rank
from connectctl.ops.core.finding import Severity, counted, some_of
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.core.times import utc

NAMED = 5
"""The number of names that a message lists before it counts the rest."""
AGAIN = 3
"""Failures in ``HOUR`` from which on a part fails again and again."""
HOUR = 3600.0
OVER = 3.0
"""A part has recovered once it runs for so many times the longest pause between its failures."""
STARTING = 120.0
"""Seconds in which a worker may start a part, or a rebalance may move it."""
SLOWER, LONGEST_START = 2.0, 1_800.0
"""A part may start so many times slower than before, in at most so many seconds."""
COMMITS, COMMIT_WINDOW = 5, 600.0
"""Sets of task configurations within so many seconds from which on they are too many."""
_NUMBERS = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}|\d+", re.IGNORECASE)


@rule("FAIL001", Severity.ERROR)
def failed(facts: FailureFacts, goal: Goal) -> Iterator[Case]:
    """Yield FAIL001 for the FAILED parts of each connector that have one cause; those of FAIL003 are
    reported by it.
    """
    shared = {cause for cause, group in _by_cause(facts).items() if _is_shared(group)}
    for cause, group in _by_cause(facts).items():
        for parts in [] if cause in shared else _by_connector(group):
            names = [part.name for part in parts]
            subject = names[0] if len(parts) == 1 else parts[0].connector
            yield _failed(subject, some_of(names, NAMED), parts)


@rule("FAIL002", Severity.ERROR)
def failed_together(facts: FailureFacts, goal: Goal) -> Iterator[Case]:
    """Yield FAIL002 for each cause that several connectors have."""
    for group in _by_cause(facts).values():
        if _is_shared(group):
            names = [part.connector for part in group]
            subject = f"{counted(len(set(names)), 'connector')}"
            which = some_of(list(dict.fromkeys(names)), NAMED)
            yield _failed(subject, f"{counted(len(group), 'part')} of {which}", group)


def _failed(subject: str, who: str, parts: Sequence[PartPast]) -> Case:
    began = [part.since for part in parts if part.since is not None]
    connectors = list(dict.fromkeys(part.connector for part in parts))
    hint = f"Repair the cause, then: connectctl connectors restart {' '.join(connectors[:NAMED])}"
    message = f"{who} FAILED: {_cause(parts[0])}"
    since = min(began, default=None)
    return Case(subject, message, hint, since=since, evidence=_first_failure(parts))


def _first_failure(parts: Sequence[PartPast]) -> tuple[str, ...]:
    """Return how often the parts failed, and how it began if with another cause."""
    failures = sorted(
        (failure for part in parts for failure in part.failures), key=lambda f: f.at or 0.0
    )
    if len(failures) <= len(parts):
        return ()
    first = failures[0]
    return (
        f"FAILED {counted(len(failures), 'time')} since {_at(first)}; at first: {_trace(first)}",
    )


def _by_cause(facts: FailureFacts) -> dict[str, list[PartPast]]:
    """Return the FAILED parts by their cause without numbers, which differ between tasks."""
    groups: dict[str, list[PartPast]] = {}
    for part in facts.parts:
        if part.now is not None and part.now.state == State.FAILED and not _again(part, facts.now):
            cause = _NUMBERS.sub("#", _cause(part).replace(part.connector, "#"))
            groups.setdefault(cause, []).append(part)
    return groups


def _by_connector(group: Sequence[PartPast]) -> list[list[PartPast]]:
    found: dict[str, list[PartPast]] = {}
    for part in group:
        found.setdefault(part.connector, []).append(part)
    return list(found.values())


def _is_shared(group: Sequence[PartPast]) -> bool:
    return (
        len({part.connector for part in group}) > 1
        and group[0].now is not None
        and bool(group[0].now.cause)
    )


def _cause(part: PartPast) -> str:
    return (part.now.cause if part.now else None) or "its status has no trace"


def _trace(status: StatusRecord) -> str:
    return cause_of(status.status) or "no trace"


def _at(status: StatusRecord) -> str:
    return utc(None if status.at is None else status.at * 1000)


@rule("FAIL003", Severity.ERROR)
def fails_again(facts: FailureFacts, goal: Goal) -> Iterator[Case]:
    """Yield FAIL003 for each part that failed several times in an hour and does not run for long."""
    for part in facts.parts:
        recent = _again(part, facts.now)
        if not recent:
            continue
        first, last = recent[0], recent[-1]
        minutes = max(1, round(((last.at or 0.0) - (first.at or 0.0)) / 60))
        message = (
            f"It failed {len(recent)} times within {counted(minutes, 'minute')}, and was restarted "
            f"each time: {_trace(last)}"
        )
        hint = (
            f"Restarts do not help; repair the cause: connectctl connectors show {part.connector}"
        )
        evidence = (f"{_at(first)}  first: {_trace(first)}",)
        yield Case(part.name, message, hint, since=first.at, evidence=evidence)


def _again(part: PartPast, now: float) -> Sequence[StatusRecord]:
    """Return the failures of the last hour of a part that fails again and again; none of others."""
    recent = [
        failure for failure in part.failures if failure.at is not None and failure.at >= now - HOUR
    ]
    return [] if len(recent) < AGAIN or _has_recovered(part, recent, now) else recent


def _has_recovered(part: PartPast, recent: Sequence[StatusRecord], now: float) -> bool:
    times = [failure.at or 0.0 for failure in recent]
    longest = max(later - earlier for earlier, later in pairwise(times))
    return part.now is None and now - times[-1] > OVER * max(longest, STARTING)


@rule("FAIL004", Severity.WARNING)
def unassigned(facts: FailureFacts, goal: Goal) -> Iterator[Case]:
    """Yield FAIL004 for the parts of each connector that are not running for longer than a start
    takes.
    """
    waiting: dict[tuple[str, str], list[tuple[PartPast, float]]] = {}
    for part in facts.parts if facts.settled else ():
        if part.now is None or not part.now.is_transient:
            continue
        since = _waits_since(part)
        if since is not None and facts.now - since > _longest_start(part) + facts.delay:
            why = part.now.cause or f"its state is {part.now.state}"
            waiting.setdefault((part.connector, why), []).append((part, since))
    for (connector, why), parts in waiting.items():
        names = [part.name for part, _ in parts]
        worker = parts[0][0].worker
        hint = (
            f"A start that hangs holds it: read the log of {worker}, then: connectctl connectors "
            f"restart {connector}"
            if worker
            else f"connectctl connectors show {connector}"
        )
        subject = names[0] if len(names) == 1 else connector
        message = f"{some_of(names, NAMED)} {'is' if len(names) == 1 else 'are'} UNASSIGNED: {why}."
        # A part whose newest status is RUNNING lost its worker later, at a time that no record has.
        lost = any(_ran_at(part) == since for part, since in parts)
        since = None if lost else min(since for _, since in parts)
        yield Case(subject, message, hint, since=since)


def _ran_at(part: PartPast) -> float | None:
    """Return when the part began to run, if no worker has written anything about it since."""
    newest = part.statuses[-1] if part.statuses else None
    return newest.at if newest is not None and is_running(newest.status) else None


def _longest_start(part: PartPast) -> float:
    """Return the seconds that the part may take to start, by its starts that are retained."""
    took = [
        (after.at or 0.0) - (before.at or 0.0)
        for before, after in pairwise(part.statuses)
        if before.state is not None and rank(before.state) == 1 and is_running(after.status)
    ]
    return max(STARTING, min(SLOWER * max(took, default=0.0), LONGEST_START))


def _waits_since(part: PartPast) -> float | None:
    """Return since when the part waits: its newest status or request, whichever is later."""
    written = part.statuses[-1].at if part.statuses else None
    times = [at for at in (written, part.asked_at) if at is not None]
    return max(times, default=None)


@rule("FAIL005", Severity.WARNING)
def reconfigures(facts: FailureFacts, goal: Goal) -> Iterator[Case]:
    """Yield FAIL005 for each connector whose tasks are configured, and thereby restarted, again and
    again without a change of its configuration.
    """
    names = {part.connector for part in facts.parts}
    for name in sorted(names & (facts.records or {}).keys()):
        recent = [
            record
            for record in (facts.records or {})[name]
            if record.at is not None and record.at >= facts.now - COMMIT_WINDOW
        ]
        commits = [record for record in recent if record.kind == COMMIT and record.raw is not None]
        changes = sum(record.kind == CONNECTOR for record in recent)
        if len(commits) - changes < COMMITS:
            continue
        minutes = COMMIT_WINDOW / 60
        message = (
            f"It generated its task configurations {len(commits)} times within {minutes:.0f} "
            "minutes; all its tasks restart each time."
        )
        hint = f"connectctl connectors show {name}; the plugin calls requestTaskReconfiguration."
        yield Case(name, message, hint, since=commits[0].at)
