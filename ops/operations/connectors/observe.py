"""Connectors of a cluster: seen through its workers, or in its topics when no worker answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.masking import remember
from connectctl.ops.connect import cluster_findings
from connectctl.ops.connect.config_topic import COMMIT, TARGET
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
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, NotTrusted, TimedOut, Unreachable
from connectctl.ops.kafka.visibility import Complete, Observation, Partial, gap_findings, gap_of, observation_of
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics, look_for_topics
from connectctl.ops.operations.cluster.read_once import read_once

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
    from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
    from connectctl.ops.core.finding import Finding

Named = Mapping[str, str | None]
PATIENCE = 2.0
"""Seconds to wait for open transactions on the config topic."""
LIST_TIMEOUT = 10.0
"""Seconds in which the workers must list all their connectors."""
EVERYTHING = "/connectors?expand=status&expand=info"


@dataclass(frozen=True)
class Facts:
    """What decides on the state of connectors: the config topic, and the group's assignments.

    ``configured`` is None where the config topic could not be read to its end, ``owners`` in a rebalance. The status topic
    is a remark to these: its last record may be a dead worker's, or that of a run that took a connector over.
    """

    configured: Mapping[str, ConfiguredConnector] | None = None
    owners: Owners | None = None

    def of(self, connector: Connector) -> Connector:
        """``connector`` with what these add to it."""
        found = (self.configured or {}).get(connector.name)
        return replace(
            connector,
            target_state=found.target_state if found and TARGET not in found.unread else None,
            committed_tasks=found.task_count if found and COMMIT not in found.unread else None,
            assigned=self.owners.parts(connector.name) if self.owners else None,
        )


def read_facts(kafka: KafkaReads, group_id: str, config_topic: str) -> Facts:
    """The facts of this moment. Raises what ``KafkaReads`` raises."""
    image = kafka.image([config_topic], patience=PATIENCE)[config_topic]
    state = None if image.held_back else state_in(kafka, image, patience=PATIENCE)
    # Assignments last: a worker has stopped its tasks before it joins the rebalance that takes them away.
    return Facts(state.connectors if state else None, owners_of(kafka.group(group_id)))


def look_for_facts(kafka: KafkaReads, group: ConnectGroup, named: Named) -> Observation[Callable[[], Facts] | None]:
    """What reads facts again and again; None where the config topic is not found or not provably the group's.

    Partial where it is not found because something may not be seen.
    """
    try:
        choice = look_for_topics(kafka, group, named, ["config"])["config"]
        if choice.topic is None or not choice.proven:
            return observation_of(None, choice.gaps)
        read_facts(kafka, group.id, choice.topic)
    except NotAuthorized as e:
        return Partial(None, (gap_of(e, f"config topic of {group.id}"),))
    except BadInput:
        return Complete(None)
    return Complete(lambda: read_facts(kafka, group.id, str(choice.topic)))


def facts_reader(kafka: KafkaReads, group: ConnectGroup, named: Named) -> Callable[[], Facts] | None:
    """As ``look_for_facts``, for callers that report otherwise what could not be seen."""
    return look_for_facts(kafka, group, named).seen


@dataclass(frozen=True)
class ConnectorHealth:
    """A connector and the verdict on it. ``workers`` have it or its tasks; ``unreported``: one of them does not say how."""

    connector: Connector
    verdict: Verdict
    workers: tuple[str, ...] = ()
    unreported: bool = False

    @property
    def name(self) -> str:
        return self.connector.name


def with_health(connectors: Iterable[Connector], group: ConnectGroup | None) -> tuple[ConnectorHealth, ...]:
    owners = owners_of(group)
    return tuple(_with_health(connector, owners) for connector in sorted(connectors, key=lambda c: c.name))


def _with_health(connector: Connector, owners: Owners | None) -> ConnectorHealth:
    if owners is not None:
        connector = replace(connector, assigned=owners.parts(connector.name))
    verdict = verdict_of(connector, owners)
    if owners is None:
        parts = [connector.status, *connector.tasks.values()]
        return ConnectorHealth(connector, verdict, tuple(dict.fromkeys(s.worker for s in parts if s and s.worker)))
    return ConnectorHealth(connector, verdict, owners.of(connector.name), owners.unreported(connector))


def from_workers(calls: ConnectCalls, *, url: str | None = None, timeout: float | None = None) -> list[Connector]:
    """Every connector as a worker knows it, in one request."""
    found = calls.get(EVERYTHING, url=url, timeout=timeout)
    if not isinstance(found, dict):
        raise ConnectctlError(
            "The worker does not report the status of its connectors",
            why="it lists only their names, as workers before 2.3 do",
            next_step="Upgrade the workers.",
            code="unsupported",
        )
    for data in found.values():
        _know_secrets(calls, data)
    return [from_rest(name, data) for name, data in found.items()]


def _know_secrets(calls: ConnectCalls, data: Mapping[str, Any]) -> None:
    """Before a trace is shown that may repeat it: what plugins define as a password, and no name calls so."""
    status, info = data.get("status") or {}, data.get("info") or {}
    if any(part.get("trace") for part in (status.get("connector") or {}, *(status.get("tasks") or ()))):
        config = info.get("config") or {}
        remember(config, defined_passwords(calls, config))


def read_one(calls: ConnectCalls, name: str) -> Connector:
    """One connector as a worker knows it. Raises ``ConnectctlError`` with the code ``not-found``."""
    info = calls.get(path_of("connectors", name))
    try:
        status = calls.get(path_of("connectors", name, "status"))
    except ConnectctlError as e:
        if e.code != "not-found":
            raise
        status = None  # created a moment ago: no worker has said anything yet
    data = {"status": status, "info": info}
    _know_secrets(calls, data)
    return from_rest(name, data)


def defined_passwords(calls: ConnectCalls, config: Mapping[str, str]) -> frozenset[str]:
    """The properties of ``config`` that its plugins define with the type PASSWORD, as far as a worker tells (KIP-769).

    Asked are the connector's class, its converters, transforms and predicates, each about the properties below its own.
    """
    found: set[str] = set()
    for prefix, plugin in _plugins(config):
        if plugin not in _PASSWORDS_OF:
            try:
                reported = calls.get(path_of("connector-plugins", plugin, "config"), timeout=PATIENCE)
            except ConnectctlError:
                continue  # Workers before 3.2 do not tell; then names and values decide alone.
            each = (each for each in reported if isinstance(each, dict)) if isinstance(reported, list) else ()
            _PASSWORDS_OF[plugin] = frozenset(str(e.get("name")) for e in each if e.get("type") == "PASSWORD")
        found |= {f"{prefix}{name}" for name in _PASSWORDS_OF[plugin]}
    return frozenset(found)


_PASSWORDS_OF: dict[str, frozenset[str]] = {}
"""What plugins told, by class: it is asked for once, also where a wait looks at a failed connector again and again."""


def _plugins(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    named = [("", "connector.class")]
    named += [(f"{each}.", each) for each in ("key.converter", "value.converter", "header.converter")]
    for kind in ("transforms", "predicates"):
        for alias in (config.get(kind) or "").split(","):
            named.append((f"{kind}.{alias.strip()}.", f"{kind}.{alias.strip()}.type"))
    for prefix, name in named:
        if plugin := (config.get(name) or "").strip():
            yield prefix, plugin


def from_topics(kafka: KafkaReads, config_topic: str, status_topic: str | None) -> list[Connector]:
    images = kafka.image([t for t in (config_topic, status_topic) if t], patience=PATIENCE)
    state = state_in(kafka, images[config_topic], patience=PATIENCE)
    statuses = statuses_from_topic(images[status_topic].latest, status_topic) if status_topic in images else {}
    return assembled(state, statuses)


def assembled(state: ConfigState, statuses: Mapping[tuple[str, int], Status]) -> list[Connector]:
    return [
        Connector(
            name=name,
            status=statuses.get((name, CONNECTOR_INSTANCE)),
            tasks={n: statuses.get((name, n)) for n in range(configured.task_count)},
            config=configured.config,
            type=configured.looks_like,
            target_state=None if TARGET in configured.unread else configured.target_state,
            committed_tasks=None if COMMIT in configured.unread else configured.task_count,
        )
        for name, configured in state.connectors.items()
    ]


@dataclass(frozen=True)
class ConnectorListing:
    """The connectors of a cluster, and what to say about how they were seen."""

    connectors: tuple[ConnectorHealth, ...]
    read_from: str
    findings: tuple[Finding, ...] = ()


def see(
    calls: ConnectCalls,
    kafka: KafkaReads | None,
    group: ConnectGroup | None,
    named: Named,
    read: Callable[[], Facts] | None = None,
) -> ConnectorListing:
    """The connectors through the workers; in the topics where no worker answers and Kafka can be asked.

    ``read`` gives the facts, where the config topic is known already.
    """
    if kafka is not None and read is None:
        kafka = read_once(kafka)
    try:
        found = from_workers(calls, timeout=LIST_TIMEOUT)
        answer: Observation[Callable[[], Facts] | None] = Complete(read)
        if read is None and kafka is not None and group is not None:
            answer = look_for_facts(kafka, group, named)
        facts = answer.seen() if answer.seen else Facts()
        return ConnectorListing(with_health(map(facts.of, found), group), "workers", gap_findings(answer.gaps))
    except (NotAuthorized, NotTrusted):
        raise  # workers are there: to read their topics instead would mean that they do not answer
    except ConnectctlError as e:
        # Configurations that are not texts break the workers' own answer in its middle.
        unreadable = e.why if e.code == "not-connect" else None
        if not (unreadable or isinstance(e, Unreachable | TimedOut)) or kafka is None or group is None:
            raise

    topics = find_internal_topics(kafka, group, named, needed=("config", "status"))
    found = from_topics(kafka, str(topics.config), topics.status)
    return ConnectorListing(
        with_health(found, group), "topics", (cluster_findings.seen_in_topics(group, unreadable), *topics.findings)
    )


def configured(kafka: KafkaReads, config_topic: str, name: str) -> ConfiguredConnector | None:
    """The connector called ``name`` as the config topic has it, None where it has none."""
    image = kafka.image([config_topic], patience=PATIENCE)[config_topic]
    return state_in(kafka, image, patience=PATIENCE).connectors.get(name)


def matching(found: Sequence[ConnectorHealth], names: Sequence[str]) -> tuple[ConnectorHealth, ...]:
    """As ``select``, with the connectors that match the globs among ``names``."""
    return select(found, matching_names([each.name for each in found], names))


def matching_names(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """``names`` with globs (``*``, ``?``, ``[…]``) as those ``known`` that match. Raises ``BadInput`` where none does."""
    wanted: list[str] = []
    for name in names:
        if name in known or not is_glob(name):
            wanted.append(name)
            continue
        there = [each for each in known if fnmatchcase(each, name)]
        if not there:
            raise BadInput(
                f"No connector matches {name}", next_step="See connectctl connectors list.", code="unknown-connector"
            )
        wanted += there
    return wanted


def is_glob(name: str) -> bool:
    """Whether ``name`` may mean several connectors."""
    return bool(set(name) & set("*?["))


def the_one(found: Sequence[ConnectorHealth], name: str) -> ConnectorHealth:
    """The connector that a name or a glob means. Raises ``BadInput`` where that is none, or several."""
    several = matching(found, [name])
    if len(several) != 1:
        names = ", ".join(each.name for each in several)
        raise BadInput(f"This needs one connector, and {name} matches {names}", next_step="Name one of them.")
    return several[0]


def select(found: Sequence[ConnectorHealth], names: Sequence[str]) -> tuple[ConnectorHealth, ...]:
    """The connectors called ``names``, in that order. Raises ``BadInput`` that names all that do not exist."""
    from difflib import get_close_matches

    known = {each.name: each for each in found}
    unknown = [name for name in names if name not in known]
    if unknown:
        near = [match for name in unknown for match in get_close_matches(name, known, n=1)]
        hint = f"Did you mean {', '.join(near)}?" if near else "See connectctl connectors list."
        what = f"Connector not found: {', '.join(unknown)}"
        raise BadInput(what, next_step=hint, code="unknown-connector")
    return tuple(known[name] for name in dict.fromkeys(names))
