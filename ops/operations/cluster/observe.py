"""Observes a Connect cluster: its group, workers, internal topics and connectors, with findings.

All requests are concurrent, with timeouts of a few seconds. A worker that hangs is a finding, and
does not block the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.connect import cluster_findings
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.internal_topics import Role, TopicChoice
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.visibility import Gap, Reason, describe_configs, gap_findings
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.group_workers import is_unknown
from connectctl.ops.operations.cluster.internal_topic_discovery import not_found, search_topics
from connectctl.ops.operations.cluster.read_once import read_once
from connectctl.ops.operations.cluster.worker_answers import (
    MOST_AT_ONCE,
    PATIENCE,
    ask_for_list,
    observe_worker,
    with_one_described,
)
from connectctl.ops.operations.connectors import cure
from connectctl.ops.operations.connectors import observe as reading
from connectctl.ops.operations.connectors.contradictions import OtherLists
from connectctl.ops.operations.connectors.observe import ConnectorHealth, ConnectorListing

LONGEST_LISTING = PATIENCE * 3
"""Seconds after which no further worker is asked for the connectors."""


@dataclass(frozen=True)
class InternalTopic:
    """One of the workers' topics; its name is None if it was not found."""

    role: str
    name: str | None = None
    facts: TopicFacts | None = None


@dataclass(frozen=True)
class ClusterView:
    """The observation of a cluster. ``connectors_from`` is ``workers``, ``topics``, or ``nothing``
    if neither could be read.

    ``lists`` are the connector names of each worker, by URL, if several workers answer.
    """

    cluster_id: str
    group: ConnectGroup
    workers: tuple[Worker, ...]
    topics: tuple[InternalTopic, ...]
    connectors: tuple[ConnectorHealth, ...]
    connectors_from: str
    findings: tuple[Finding, ...]
    lists: OtherLists = field(default_factory=dict)


def observe_cluster(
    kafka: KafkaReads,
    calls: ConnectCalls,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    *,
    lists_only: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> ClusterView:
    """Return the observation of the cluster. ``named`` are the internal topics that the user names,
    by role.

    ``lists_only``: each worker is asked for the names of its connectors, and whether it is healthy.
    Then one of them, the leader if it answers, is asked for its version and its exactly-once support.
    Where none grants access, the internal topics are read instead, and a finding reports it. ``pause``
    waits before workers that contradict each other are asked again.

    Raises the errors of ``kafka``; without ``lists_only``, ``NotAuthorized`` or ``NotTrusted`` if
    no worker grants access.
    """
    kafka = read_once(kafka)
    ask = ask_for_list if lists_only else observe_worker
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        pending = [pool.submit(ask, calls, member, group) for member in group.members]
        topics, choices, problems = _topics(kafka, group, named)
        workers = tuple(sorted((answer.result() for answer in pending), key=lambda w: w.address))
    if lists_only:
        workers = with_one_described(calls, workers)
    if not lists_only and _all_shut(workers):
        # raises the error of the access, instead of a finding that no worker answers
        calls.get("/", timeout=PATIENCE)
    group_topics = (
        topics
        if not is_unknown(group)
        else [t for t in topics if t.role not in choices or choices[t.role].proven]
    )
    lists = _lists(workers) if lists_only else None
    listing = _connectors(kafka, calls, group, workers, group_topics, lists, pause)
    connectors = listing.connectors
    is_new = (
        listing.read_from == "workers"
        and not connectors
        and bool(group.members)
        and not group.owners
    )
    problems += _not_found(choices, group, is_new=is_new)
    return ClusterView(
        cluster_id=kafka.cluster_id(),
        group=group,
        workers=workers,
        topics=topics,
        connectors=connectors,
        connectors_from=listing.read_from,
        findings=(
            *_worker_findings(group, workers, kafka.cluster_id()),
            *(
                f
                for f in listing.findings
                if f.id != cluster_findings.REBALANCING.id or group.settled
            ),
            *filter(
                None, [cluster_findings.unreported([c.name for c in connectors if c.unreported])]
            ),
            *problems,
            *_topic_findings(kafka, topics),
            *_ignored_records(kafka, next((t.name for t in topics if t.role == Role.CONFIG), None)),
            *cure.findings(kafka, next((t.name for t in topics if t.role == Role.CONFIG), None)),
        ),
        lists=listing.lists,
    )


def _all_shut(workers: Sequence[Worker]) -> bool:
    return bool(workers) and all(worker.shut for worker in workers)


def _lists(workers: Sequence[Worker]) -> OtherLists:
    """Return the connectors of each worker by URL; nothing if there are not two to compare."""
    lists = {worker.url: worker.listed for worker in workers if worker.listed is not None}
    return lists if len(lists) > 1 else {}


def _topics(
    kafka: KafkaReads, group: ConnectGroup, named: Mapping[str, str | None]
) -> tuple[tuple[InternalTopic, ...], dict[str, TopicChoice], list[Finding]]:
    existing = kafka.existing([name for name in named.values() if name])
    problems: list[Finding] = [*gap_findings(existing.gaps)]
    hidden = {gap.right.name for gap in existing.gaps if gap.right}
    missing = {role: name for role, name in named.items() if name and name not in existing.seen}
    for role, name in missing.items():
        if name in hidden:
            continue
        hint = f"Correct --{role}-topic or topics.{role} in the context, or leave it out."
        problems.append(cluster_findings.topic_missing(role, f"Topic not found: {name}", hint))
    known = {role: name for role, name in named.items() if role not in missing}
    choices = search_topics(
        kafka, group, known, [role for role in Role if role not in missing], superseded=True
    )
    names = {role: choices[role].topic if role in choices else None for role in Role}
    facts = kafka.topics([name for name in names.values() if name])
    names |= {Role(role): name for role, name in missing.items() if name in hidden}
    without_config = [
        Gap(f"settings of {n}", Reason.NOT_AUTHORIZED, describe_configs(n))
        for n, f in facts.items()
        if not f.config
    ]
    problems += gap_findings(without_config)
    topics = tuple(InternalTopic(role, name, facts.get(name or "")) for role, name in names.items())
    return topics, choices, problems


def _not_found(
    choices: Mapping[str, TopicChoice], group: ConnectGroup, *, is_new: bool
) -> Iterator[Finding]:
    """Yield the findings on topics that were searched. Two topics of a new cluster without
    connectors are empty.
    """
    for role, choice in choices.items():
        if choice.topic is None:
            error = not_found(role, choice, group)
            why = f"{error.what}: {error.why}" if error.why else error.what
            yield cluster_findings.topic_missing(role, why, str(error.next_step), fresh=is_new)
        elif choice.empty:
            yield cluster_findings.empty_topic_chosen(choice.topic, role)


def _connectors(
    kafka: KafkaReads,
    calls: ConnectCalls,
    group: ConnectGroup,
    workers: Sequence[Worker],
    topics: Sequence[InternalTopic],
    lists: OtherLists | None,
    pause: Callable[[float], None],
) -> ConnectorListing:
    """Return the connectors from the first worker that answers, else from the topics, else none.
    ``lists`` are the connectors of each worker by URL, None if they are not known yet.

    Raises ``NotAuthorized`` or ``NotTrusted`` if no worker grants access.
    """
    names = {topic.role: topic.name for topic in topics}
    config = names.get("config")
    without_answer = {worker.url for worker in workers if worker.problem}
    error: ConnectctlError | None = None
    answering = [url for url in calls.urls if url not in without_answer]
    members = [worker.url for worker in workers if worker.url and not worker.problem]
    began = time.monotonic()
    for number, url in enumerate(answering):
        if time.monotonic() - began > LONGEST_LISTING:
            break  # a plugin that hangs holds the herders of all workers
        try:
            found = reading.from_workers(calls, url=url, timeout=PATIENCE * 2)
            read = _reader(kafka, group, config)
            others = answering[number:] if lists is None else [url]
            compared = tuple(dict.fromkeys([*others, *members]))
            return reading.listing_of(calls, found, group, read, compared, lists=lists, pause=pause)
        except ConnectctlError as e:
            error = e
    if error is not None and not reading.is_no_answer(error):
        raise error
    why = str(error.why or error.what) if error is not None else "no worker answers"
    findings = (
        []
        if cluster_findings.rebalancing(group)
        else [cluster_findings.seen_in_topics(group, error, shut=_all_shut(workers))]
    )
    try:
        if config is not None:
            healths = reading.with_health(
                reading.from_topics(kafka, config, names.get("status")), group
            )
            return ConnectorListing(healths, "topics", tuple(findings), error)
        why = f"{why}, and the config topic is not known"
    except ConnectctlError as e:
        why = f"{why}, and {e.what}"
    return ConnectorListing((), "nothing", (cluster_findings.connectors_unseen(group, why),), error)


def _reader(
    kafka: KafkaReads, group: ConnectGroup, config_topic: str | None
) -> reading.FactsReader | None:
    """Return the reader of facts, None if the config topic is unknown or not readable."""
    if config_topic is None:
        return None
    try:
        kafka.image([config_topic], patience=reading.PATIENCE)
    except ConnectctlError:
        return None
    return reading.FactsReader(kafka, group.id, config_topic)


def _ignored_records(kafka: KafkaReads, config_topic: str | None) -> tuple[Finding, ...]:
    """Return the findings on records of the config topic that workers ignore."""
    try:
        image = (
            kafka.image([config_topic], patience=PATIENCE).get(config_topic)
            if config_topic
            else None
        )
        return state_in(kafka, image, patience=PATIENCE).findings if image is not None else ()
    except ConnectctlError:
        return ()  # reported by the check of its order


def _worker_findings(
    group: ConnectGroup, workers: Sequence[Worker], cluster_id: str
) -> Iterator[Finding]:
    rules = (
        cluster_findings.no_members,
        cluster_findings.rebalancing,
        cluster_findings.rebalance_delayed,
        cluster_findings.config_lag,
    )
    yield from filter(None, (rule(group) for rule in rules))
    yield from filter(None, map(cluster_findings.worker_silent, workers))
    yield from gap_findings(worker.health_gap for worker in workers if worker.health_gap)
    yield from filter(
        None, (cluster_findings.other_cluster(worker, cluster_id) for worker in workers)
    )
    yield from filter(
        None,
        (
            rule(workers)
            for rule in (
                cluster_findings.same_address,
                cluster_findings.versions_differ,
                cluster_findings.support_differs,
            )
        ),
    )


def _topic_findings(kafka: KafkaReads, topics: Sequence[InternalTopic]) -> Iterator[Finding]:
    for topic in topics:
        if topic.facts is not None:
            rules = (
                cluster_findings.too_many_partitions,
                cluster_findings.not_compacted,
                cluster_findings.under_replicated,
            )
            yield from filter(None, (rule(topic.role, topic.facts) for rule in rules))
            yield from filter(
                None, [cluster_findings.not_replicated(topic.role, topic.facts, kafka.brokers())]
            )
