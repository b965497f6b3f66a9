"""Reads the connectors of a cluster from its workers, or from its topics if no worker answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial

from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.connect import cluster_findings
from connectctl.ops.connect.config_topic import COMMIT, TARGET, ConfiguredConnector
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE, ConnectGroup
from connectctl.ops.connect.connector import (
    Connector,
    Owners,
    Status,
    Verdict,
    from_rest,
    owners_of,
    path_of,
    statuses_from_topic,
    verdict_of,
)
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, NotTrusted
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.wait import observe_again, observe_until
from connectctl.ops.kafka.visibility import (
    Complete,
    Gap,
    Observation,
    Partial,
    gap_findings,
    gap_of,
    observation_of,
)
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.group_workers import is_unknown
from connectctl.ops.operations.cluster.internal_topic_discovery import (
    find_internal_topics,
    search_topics,
)
from connectctl.ops.operations.cluster.read_once import read_once, uncached
from connectctl.ops.operations.connectors.contradictions import OtherLists, doubt_gap, doubts
from connectctl.ops.operations.connectors.plugin_passwords import remember_passwords

Named = Mapping[str, str | None]
PATIENCE = 2.0
"""Seconds to wait for open transactions on the config topic."""
LIST_TIMEOUT = 10.0
"""Seconds within which the workers must list all their connectors."""
ANSWER = 3.0
"""Seconds within which another worker must list its connectors for the comparison."""
AGREEING = 4.0
"""Seconds within which workers read the config topic to its end, and a rebalance may end."""
PAUSE = 0.3
LATER = 3.0
"""Seconds before lists that contradict each other are read for the last time."""
UNSETTLED = (
    "The group is rebalancing: who runs what is not known, and statuses may be old. Try "
    "again when it has ended."
)
EVERYTHING = "/connectors?expand=status&expand=info"


@dataclass(frozen=True)
class Facts:
    """The facts that determine the state of connectors: the config topic, and the group's
    assignments.

    ``configured`` is None if the config topic could not be read to its end, ``owners`` in a
    rebalance. The status topic is not a fact: its last record may be from a dead worker, or from a
    run that took a connector over.
    """

    configured: Mapping[str, ConfiguredConnector] | None = None
    owners: Owners | None = None

    def of(self, connector: Connector) -> Connector:
        """Return ``connector`` with these facts."""
        found = (self.configured or {}).get(connector.name)
        return replace(
            connector,
            target_state=found.target_state if found and TARGET not in found.unread else None,
            committed_tasks=found.task_count if found and COMMIT not in found.unread else None,
            assigned=self.owners.parts(connector.name) if self.owners else None,
        )


def read_facts(kafka: KafkaReads, group_id: str, config_topic: str) -> Facts:
    """Read the current facts. Raises the errors of ``KafkaReads``."""
    image = kafka.image([config_topic], patience=PATIENCE)[config_topic]
    state = None if image.held_back else state_in(kafka, image, patience=PATIENCE)
    # Assignments last: a worker has stopped its tasks before it joins the rebalance that takes them
    # away.
    return Facts(state.connectors if state else None, owners_of(kafka.group(group_id)))


@dataclass(frozen=True)
class FactsReader:
    """Reads the facts of a group from its config topic, again at each call."""

    kafka: KafkaReads
    group_id: str
    config_topic: str

    def __call__(self) -> Facts:
        return read_facts(self.kafka, self.group_id, self.config_topic)

    def uncached(self) -> FactsReader:
        """Return a reader without cached images."""
        return replace(self, kafka=uncached(self.kafka))


def look_for_facts(
    kafka: KafkaReads, group: ConnectGroup, named: Named
) -> Observation[FactsReader | None]:
    """Return the reader of facts; None if the config topic is not found, or not proven to be the
    group's.

    The observation is partial if a missing right is the reason.
    """
    try:
        choice = search_topics(kafka, group, named, ["config"])["config"]
        if choice.topic is None or not choice.proven:
            return observation_of(None, choice.gaps)
        read = FactsReader(kafka, group.id, choice.topic)
        read()
    except NotAuthorized as e:
        return Partial(None, (gap_of(e, f"config topic of {group.id}"),))
    except BadInput:
        return Complete(None)
    return Complete(read)


def facts_reader(kafka: KafkaReads, group: ConnectGroup, named: Named) -> FactsReader | None:
    """Return the reader of ``look_for_facts``, for callers that do not report its gaps."""
    return look_for_facts(kafka, group, named).seen


@dataclass(frozen=True)
class ConnectorHealth:
    """A connector and the verdict on it. ``workers`` run it or its tasks; ``unreported``: one of
    them reports no status.
    """

    connector: Connector
    verdict: Verdict
    workers: tuple[str, ...] = ()
    unreported: bool = False

    @property
    def name(self) -> str:
        return self.connector.name


def with_health(
    connectors: Iterable[Connector], group: ConnectGroup | None
) -> tuple[ConnectorHealth, ...]:
    """Return the connectors, sorted by name, with their verdicts according to the assignments of
    ``group``.
    """
    return _healths(connectors, owners_of(group))


def _healths(connectors: Iterable[Connector], owners: Owners | None) -> tuple[ConnectorHealth, ...]:
    return tuple(
        _with_health(connector, owners) for connector in sorted(connectors, key=lambda c: c.name)
    )


def _with_health(connector: Connector, owners: Owners | None) -> ConnectorHealth:
    if owners is not None:
        connector = replace(connector, assigned=owners.parts(connector.name))
    verdict = verdict_of(connector, owners)
    if owners is None:
        parts = [connector.status, *connector.tasks.values()]
        return ConnectorHealth(
            connector, verdict, tuple(dict.fromkeys(s.worker for s in parts if s and s.worker))
        )
    return ConnectorHealth(
        connector, verdict, owners.of(connector.name), owners.unreported(connector)
    )


def from_workers(
    calls: ConnectCalls, *, url: str | None = None, timeout: float | None = None
) -> list[Connector]:
    """Return all connectors from a worker, in one request."""
    found = calls.get(EVERYTHING, url=url, timeout=timeout)
    if not isinstance(found, dict):
        raise ConnectctlError(
            "The worker does not report the status of its connectors",
            why="it lists only their names, as workers before 2.3 do",
            next_step="Upgrade the workers.",
            code="unsupported",
        )
    for data in found.values():
        remember_passwords(calls, data, url)
    return [from_rest(name, data) for name, data in found.items()]


def read_one(calls: ConnectCalls, name: str) -> Connector:
    """Return a connector from a worker. Raises ``ConnectctlError`` with the code ``not-found``."""
    info = calls.get(path_of("connectors", name))
    try:
        status = calls.get(path_of("connectors", name, "status"))
    except ConnectctlError as e:
        if e.code != "not-found":
            raise
        status = None  # just created: no worker has reported a status yet
    data = {"status": status, "info": info}
    remember_passwords(calls, data)
    return from_rest(name, data)


def read_or_not_found(calls: ConnectCalls, name: str) -> Connector | ConnectctlError:
    """Return the connector of ``read_one``, or its error ``not-found``."""
    try:
        return read_one(calls, name)
    except ConnectctlError as e:
        if e.code != "not-found":
            raise
        return e


def from_topics(kafka: KafkaReads, config_topic: str, status_topic: str | None) -> list[Connector]:
    images = kafka.image([t for t in (config_topic, status_topic) if t], patience=PATIENCE)
    state = state_in(kafka, images[config_topic], patience=PATIENCE)
    statuses = (
        statuses_from_topic(images[status_topic].latest, status_topic)
        if status_topic in images
        else {}
    )
    return assembled(state.connectors, statuses)


def assembled(
    configured: Mapping[str, ConfiguredConnector], statuses: Mapping[tuple[str, int], Status]
) -> list[Connector]:
    """Return the connectors of the config topic, with the statuses of their parts."""
    return [
        Connector(
            name=name,
            status=statuses.get((name, CONNECTOR_INSTANCE)),
            tasks={n: statuses.get((name, n)) for n in range(connector.task_count)},
            config=connector.config,
            type=connector.looks_like,
            target_state=None if TARGET in connector.unread else connector.target_state,
            committed_tasks=None if COMMIT in connector.unread else connector.task_count,
        )
        for name, connector in configured.items()
    ]


@dataclass(frozen=True)
class ConnectorListing:
    """The connectors of a cluster, with findings about how they were read.

    ``blind`` is the error if no worker answered; the connectors are from the topics then. ``lists``
    are the connector names of each worker, by URL, if several workers answered.
    """

    connectors: tuple[ConnectorHealth, ...]
    read_from: str
    findings: tuple[Finding, ...] = ()
    blind: ConnectctlError | None = None
    lists: OtherLists = field(default_factory=dict)


def connector_listing(
    calls: ConnectCalls,
    kafka: KafkaReads | None,
    group: ConnectGroup | None,
    named: Named,
    read: Callable[[], Facts] | None = None,
) -> ConnectorListing:
    """Return the connectors from the config topic, the assignments, and the lists of the group's
    workers.

    Contradictions between workers and config topic are read again for a few seconds; connectors
    with remaining ones have a ``doubt``. If no worker of the group answers, the connectors are read
    from the topics. ``read`` reads the facts, if the config topic is known.
    """
    try:
        found = from_workers(calls, timeout=LIST_TIMEOUT)
    except ConnectctlError as e:
        if kafka is None or group is None or not is_no_answer(e):
            raise
        return _from_topics(read_once(kafka), group, named, e)
    gaps: tuple[Gap, ...] = ()
    if read is None and kafka is not None and group is not None:
        answer = look_for_facts(read_once(kafka), group, named)
        read, gaps = answer.seen, answer.gaps
    return listing_of(calls, found, group, read, calls.urls, gaps)


def is_no_answer(error: ConnectctlError) -> bool:
    """Return whether ``error`` means that no worker answered: a refused access and an old release
    are answers.
    """
    return not isinstance(error, (NotAuthorized, NotTrusted)) and error.code != "unsupported"


def listing_of(
    calls: ConnectCalls,
    found: Sequence[Connector],
    group: ConnectGroup | None,
    read: Callable[[], Facts] | None,
    urls: Sequence[str],
    gaps: Sequence[Gap] = (),
    lists: OtherLists | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> ConnectorListing:
    """Return the connectors that a worker lists, compared with the facts and the lists of the
    workers at ``urls``.

    Without ``read`` they are compared with the assignments only; ``gaps`` are the reasons.
    ``lists`` are those of the workers if they have given them already: then they are asked again,
    twice at most, only while a contradiction is found, each time after a ``pause``.
    """
    read = read or partial(Facts, None, owners_of(group))
    facts = read()
    others, skipped = _other_lists(calls, urls) if lists is None else (lists, [])
    anew = read.uncached() if isinstance(read, FactsReader) else read
    first = None if tuple(urls) == tuple(calls.urls) else urls[0]
    found = _with_unreported(calls, found, facts, others, first)

    def again() -> tuple[Sequence[Connector], Facts, OtherLists]:
        found = from_workers(calls, url=first, timeout=LIST_TIMEOUT)
        facts, others = anew(), _other_lists(calls, urls)[0]
        return _with_unreported(calls, found, facts, others, first), facts, others

    if lists is not None:
        given = [(found, facts, others)]
        found, facts, others = observe_again(
            lambda: given.pop() if given else again(),
            lambda reading: not doubts(reading[0], reading[1].configured, reading[2]),
            (PAUSE, LATER),
            sleep=pause,
        )
    elif _is_doubtful(found, facts, others):
        found, facts, others = observe_until(
            again, lambda reading: not _is_doubtful(*reading), AGREEING, PAUSE
        )
    doubtful = doubts(found, facts.configured, others)
    connectors = _with_facts(found, facts, doubtful)
    missing = [*gaps, *skipped, *(doubt_gap(name, why) for name, why in sorted(doubtful.items()))]
    rebalancing = (
        []
        if facts.owners or group is None
        else [cluster_findings.REBALANCING.found(group.id, UNSETTLED)]
    )
    findings = (*gap_findings(missing), *rebalancing)
    return ConnectorListing(_healths(connectors, facts.owners), "workers", findings, lists=others)


def _with_unreported(
    calls: ConnectCalls,
    found: Sequence[Connector],
    facts: Facts,
    others: OtherLists,
    url: str | None,
) -> Sequence[Connector]:
    """Return ``found`` with the connectors of the config topic that the worker lists by their names
    alone.

    It leaves out of its answer with statuses each one that has none, such as a connector that hangs
    in its first start (``ConnectorsResource.listConnectors``).
    """
    if not (missing := _missing(found, facts)):
        return found
    names = others.get(url or "") or _names(calls, url)
    if isinstance(names, ConnectctlError):
        return found  # which leaves doubts
    return [*found, *assembled({n: each for n, each in missing.items() if n in names}, {})]


def _missing(found: Sequence[Connector], facts: Facts) -> dict[str, ConfiguredConnector]:
    """Return the connectors of the config topic that are not in ``found``."""
    listed = {connector.name for connector in found}
    return {n: each for n, each in (facts.configured or {}).items() if n not in listed}


def _names(calls: ConnectCalls, url: str | None) -> frozenset[str] | ConnectctlError:
    """Return the names that a worker lists, or why it gives no answer."""
    try:
        return frozenset(calls.get("/connectors", url=url, timeout=ANSWER))
    except ConnectctlError as e:
        return e


def _is_doubtful(found: Sequence[Connector], facts: Facts, others: OtherLists) -> bool:
    rebalancing = facts.owners is None and facts.configured is not None
    return rebalancing or bool(doubts(found, facts.configured, others))


def _other_lists(calls: ConnectCalls, urls: Sequence[str]) -> tuple[OtherLists, list[Gap]]:
    """Return the names that each of several workers lists, and a gap for each worker that does not
    answer.
    """
    if len(urls) < 2:
        return {}, []
    with ThreadPoolExecutor(len(urls)) as pool:
        answers = dict(zip(urls, pool.map(partial(_names, calls), urls), strict=True))
    lists = {
        url: answer for url, answer in answers.items() if not isinstance(answer, ConnectctlError)
    }
    silent = [
        gap_of(answer, f"worker {url}")
        for url, answer in answers.items()
        if isinstance(answer, ConnectctlError)
    ]
    return lists, silent


def _with_facts(
    found: Sequence[Connector], facts: Facts, doubtful: Mapping[str, str]
) -> list[Connector]:
    every = map(facts.of, [*found, *assembled(_missing(found, facts), {})])
    return [replace(connector, doubt=doubtful.get(connector.name)) for connector in every]


def _from_topics(
    kafka: KafkaReads, group: ConnectGroup, named: Named, error: ConnectctlError
) -> ConnectorListing:
    topics = find_internal_topics(kafka, group, named, needed=("config", "status"))
    if is_unknown(group) and "config" in topics.unproven:
        return ConnectorListing((), "nothing", (), error)  # the topics are another group's
    found = from_topics(kafka, str(topics.config), topics.status)
    # In a rebalance, the addresses of workers are unknown, and no request was sent.
    finding = cluster_findings.rebalancing(group) or cluster_findings.seen_in_topics(group, error)
    return ConnectorListing(
        with_health(found, kafka.group(group.id)), "topics", (finding, *topics.findings), error
    )


def configured(kafka: KafkaReads, config_topic: str, name: str) -> ConfiguredConnector | None:
    """Return the connector ``name`` in the config topic, None if it has none."""
    image = kafka.image([config_topic], patience=PATIENCE)[config_topic]
    return state_in(kafka, image, patience=PATIENCE).connectors.get(name)


def matching(found: Sequence[ConnectorHealth], names: Sequence[str]) -> tuple[ConnectorHealth, ...]:
    """Return the connectors in ``names``, and those that match its globs; raises as ``select``
    does.
    """
    return select(found, matching_names([health.name for health in found], names))


def matching_names(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return ``names`` with each glob (``*``, ``?``, ``[…]``) replaced by its matches in ``known``.
    Raises ``BadInput`` for a glob without matches.
    """
    selected: list[str] = []
    for name in names:
        if name in known or not is_glob(name):
            selected.append(name)
            continue
        matches = [candidate for candidate in known if fnmatchcase(candidate, name)]
        if not matches:
            raise BadInput(
                f"No connector matches {name}",
                next_step="See connectctl connectors list.",
                code="unknown-connector",
            )
        selected += matches
    return selected


def is_glob(name: str) -> bool:
    """Return whether ``name`` is a glob."""
    return bool(set(name) & set("*?["))


def exactly_one(found: Sequence[ConnectorHealth], name: str) -> ConnectorHealth:
    """Return the only connector of a name or a glob. Raises ``BadInput`` if there is none, or
    several.
    """
    matches = matching(found, [name])
    if len(matches) != 1:
        names = ", ".join(health.name for health in matches)
        raise BadInput(
            f"This needs one connector, and {name} matches {names}", next_step="Name one of them."
        )
    return matches[0]


def select(found: Sequence[ConnectorHealth], names: Sequence[str]) -> tuple[ConnectorHealth, ...]:
    """Return the connectors ``names``, in that order. Raises ``BadInput`` with all unknown
    names.
    """
    from difflib import get_close_matches

    known = {health.name: health for health in found}
    unknown = [name for name in names if name not in known]
    if unknown:
        similar = [match for name in unknown for match in get_close_matches(name, known, n=1)]
        hint = (
            f"Did you mean {', '.join(similar)}?" if similar else "See connectctl connectors list."
        )
        what = f"Connector not found: {', '.join(unknown)}"
        raise BadInput(what, next_step=hint, code="unknown-connector")
    return tuple(known[name] for name in dict.fromkeys(names))
