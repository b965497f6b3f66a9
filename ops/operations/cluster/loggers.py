"""Log levels of the workers: on each (KIP-495), or on all at once through the config topic
(KIP-976, Kafka 3.7).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.connect.release import older
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused, TimedOut, Unreachable
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.connectors.context import POLL, StepContext

CLUSTER_SCOPE = (3, 7, 0)
"""The first release whose workers set a level on all workers (KIP-976)."""
ALL = "all workers"
ROOT = "root"
Levels = Mapping[str, str]
"""The levels of one worker by logger."""
_PATH = path_of("admin", "loggers")
MOST_NAMED = 5
"""The most differences that an error names."""
_PATIENCE = 10.0
"""Seconds for the list of one worker's loggers."""


def read(calls: ConnectCalls) -> dict[str, Levels]:
    """Return the levels of every worker of ``calls``, by URL. Raises the error of the first worker
    without levels.
    """
    return _levels_of(calls, _known_urls(calls))


def _levels_of(calls: ConnectCalls, urls: Collection[str]) -> dict[str, Levels]:
    with ThreadPoolExecutor(16) as pool:
        return dict(zip(urls, pool.map(lambda url: _levels(calls, url), urls), strict=True))


def _known_urls(calls: ConnectCalls) -> tuple[str, ...]:
    """Return the addresses of the workers. Raises ``Unreachable`` if none is known."""
    if not calls.urls:
        calls.get(_PATH)
    return tuple(calls.urls)


def _levels(calls: ConnectCalls, url: str) -> Levels:
    try:
        answer: Mapping[str, Any] = calls.get(_PATH, url=url, timeout=_PATIENCE)
    except ConnectctlError as e:
        if e.code not in ("not-found", "starting"):
            raise
        why = (
            f"{e.why}; admin.listeners of the worker may be empty or of another port, or it is "
            "older than Kafka 2.4"
        )
        hint = "Give the admin listener's address: --rest."
        kind = Unreachable if isinstance(e, Unreachable) else ConnectctlError
        raise kind(
            f"{url} does not serve loggers", why=why, next_step=hint, code="unsupported"
        ) from e
    return {name: str(level["level"]) for name, level in answer.items() if level.get("level")}


def level_of(levels: Levels, logger: str) -> str | None:
    """Return the effective level: of the logger itself, or of its nearest ancestor with one; None
    if none is known.
    """
    while logger not in levels and "." in logger:
        logger = logger.rpartition(".")[0]
    return levels.get(logger, levels.get(ROOT))


def affected(levels: Levels, logger: str) -> dict[str, str]:
    """Return the loggers that a worker sets with ``logger``: itself, and all with its prefix
    (``Loggers.setLevel``).
    """
    has_children = logger != ROOT
    return {
        name: level
        for name, level in levels.items()
        if name == logger or (has_children and name.startswith(logger))
    }


def _restoring(levels: Levels, logger: str) -> tuple[tuple[str, str], ...]:
    """Return the levels that restore ``levels``, in order: of the logger, then of its descendants
    with other levels.
    """
    effective = level_of(levels, logger)
    deviating = sorted(
        (n, level)
        for n, level in affected(levels, logger).items()
        if n != logger and level != effective
    )
    return ((logger, effective), *deviating) if effective else tuple(deviating)


@dataclass(frozen=True)
class SetLogLevels(ResourceStep["StepContext"]):
    """Set levels of loggers, in order, on one worker (``url``) or through one on all (``url`` is
    None).

    ``former`` has the levels that an undo sets, by the worker's URL. ``replaces`` is the level
    of the first logger that an undo replaces: any other level is a later change.
    """

    url: str | None
    levels: tuple[tuple[str, str], ...]
    former: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    replaces: str | None = None

    def describe(self) -> str:
        first, *more = self.levels
        return f"set {first[0]} to {first[1]} on {self.subject}" + (
            f", and {len(more)} loggers below it" if more else ""
        )

    def apply(self, context: StepContext) -> str | None:
        if self.replaces is not None and self.url is not None:
            logger, former = self.levels[0]
            found = level_of(_levels(context.calls, self.url), logger)
            if found not in (self.replaces, former):
                raise _changed([f"{logger} is {found} on {self.subject}, not {self.replaces}"])
        for logger, level in self.levels:
            scope = "?scope=cluster" if self.url is None else ""
            context.calls.send(
                "PUT", path_of("admin", "loggers", logger) + scope, {"level": level}, url=self.url
            )
        if not context.until(lambda: self._is_set(context) or None, context.timeout, POLL):
            raise TimedOut(
                "The levels were accepted, but are not effective on every worker after "
                f"{context.timeout:g} s",
                why="workers do not read their config topic, or something else sets them",
                next_step="See connectctl loggers get.",
            )
        return None

    def _is_set(self, context: StepContext) -> bool:
        urls = context.calls.urls if self.url is None else (self.url,)
        found = _levels_of(context.calls, urls).values()
        return all(
            level_of(levels, logger) == level for levels in found for logger, level in self.levels
        )


def plan_set(
    cluster_id: str,
    calls: ConnectCalls,
    logger: str,
    level: str,
    *,
    worker: str | None,
    cluster: bool,
    group_id: str,
) -> Plan:
    """Return the plan that sets ``logger`` on one worker, on all at once, or, without ``cluster``
    or before 3.7, one by one.

    Raises ``BadInput`` for a ``worker`` that is not in the cluster.
    """
    urls = _known_urls(calls) if worker is None else (url_of(calls, worker),)
    found = _levels_of(calls, urls)
    plain = {url for url, levels in found.items() if _is_all(levels, logger, level)}
    noops = tuple(
        Noop(address(url) or url, f"{logger} is {level} already") for url in urls if url in plain
    )
    former = {url: _restoring(found[url], logger) for url in urls if url not in plain}
    to_set = ((logger, level),)
    if (
        cluster
        and former
        and not any(older(calls.get("/", url=url).get("version"), CLUSTER_SCOPE) for url in urls)
    ):
        now = ", ".join(
            sorted({level_of(levels, logger) or "unknown" for levels in found.values()})
        )
        return Plan(
            "loggers set",
            cluster_id,
            (SetLogLevels(ALL, None, to_set, former, now=now),),
            (),
            group_id,
        )
    steps = tuple(
        SetLogLevels(
            address(url) or url, url, to_set, {url: levels}, now=level_of(found[url], logger) or ""
        )
        for url, levels in former.items()
    )
    return Plan("loggers set", cluster_id, steps, noops, group_id, independent=True)


def plan_undo(
    cluster_id: str,
    calls: ConnectCalls,
    steps: Sequence[SetLogLevels],
    group_id: str,
    run: str,
    members: Collection[str] | None,
) -> Plan:
    """Return the plan that restores the levels before ``steps``, the steps of ``run``, on each
    worker.

    ``members`` are the URLs of the workers in the group, None in a rebalance, which hides them:
    then the steps compare. A worker that left the group is left alone: its address may be another
    group's. Raises ``Refused`` if all of them left, or if a level has changed since.
    """
    former = {
        url: levels for step in reversed(steps) for url, levels in step.former.items() if levels
    }
    departed = sorted(url for url in former if members is not None and url not in members)
    if departed and len(departed) == len(former):
        raise Refused(
            f"{', '.join(departed)} of the run {run} is not one of the workers now; nothing was "
            "changed",
            next_step=f"See connectctl runs show {run}.",
            code="not-a-member",
        )
    ((logger, level),) = {step.levels[0] for step in steps}
    back: list[SetLogLevels] = []
    noops = [Noop(address(url) or url, "it is not one of the workers now") for url in departed]
    differing: list[str] = []
    present = sorted(former.keys() - departed)
    known = _levels_of(calls, present) if members is not None else {}
    for url in present:
        worker, levels, found = address(url) or url, former[url], known.get(url, {})
        if found and all(level_of(found, name) == each for name, each in levels):
            noops.append(Noop(worker, "it has its former levels"))
        else:
            back.append(SetLogLevels(worker, url, levels, replaces=level))
            now = {logger: level_of(found, logger), **affected(found, logger)} if found else {}
            differing += [
                f"{name} is {each} on {worker}, not {level}"
                for name, each in now.items()
                if each != level
            ]
    if differing:
        raise _changed(differing)
    return Plan(
        "loggers undo",
        cluster_id,
        tuple(back),
        tuple(noops),
        group_id,
        independent=True,
        undoes=run,
    )


def _changed(differences: Sequence[str]) -> Refused:
    """Return the error for levels that are neither those of the run nor the former ones."""
    return Refused(
        "Levels have changed since that run; nothing was changed",
        why=some_of(differences, MOST_NAMED),
        next_step="See connectctl loggers get.",
        code="stale",
    )


def _is_all(levels: Levels, logger: str, level: str) -> bool:
    return level_of(levels, logger) == level and set(affected(levels, logger).values()) <= {level}


def url_of(calls: ConnectCalls, worker: str) -> str:
    """Return the URL of ``worker``, which is host:port or a URL. Raises ``BadInput`` for a worker
    that is not in the cluster.
    """
    for url in calls.urls:
        if worker.rstrip("/") in (url, address(url)):
            return url
    known = ", ".join(filter(None, map(address, calls.urls)))
    raise BadInput(
        f"Worker not found: {worker}", next_step=f"Workers: {known}.", code="unknown-worker"
    )
