"""Reads source offsets from the offsets topics. It works without workers, and with workers that
have no offsets endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import cast

from connectctl.ops.clients.protocols import KafkaReads, KafkaWrites, TransactionCalls
from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.connect.offset_store import Store, separate_store
from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka import memory
from connectctl.ops.kafka.bootstrap import NAME_IT
from connectctl.ops.kafka.records import TopicImage
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.connectors.observe import Facts, read_facts
from connectctl.ops.operations.offsets.snapshot import (
    OffsetsQuery,
    OffsetsSnapshot,
    ReadTopic,
    WorkerFacts,
)

MISSING = Rule("OFFSETS010", Severity.WARNING)
UNREADABLE = Rule("OFFSETS011", Severity.ERROR)
SAME_CLUSTER = Rule("OFFSETS015", Severity.WARNING)
MAYBE_DEDICATED = Rule("OFFSETS016", Severity.INFO)


@dataclass(frozen=True)
class Sources:
    """The Kafka cluster, its internal topics, and clients that are opened when they are needed.

    ``coordinators`` opens the client for the coordinators of a connector's producers, from its
    ``producer.override.`` properties.
    """

    kafka: KafkaReads
    bootstrap: str
    config_topic: str | None
    offsets_topic: str
    other_kafka: Callable[[str, Mapping[str, str]], KafkaReads]
    workers: Callable[[], WorkerFacts]
    patience: float
    unproven: Mapping[str, str] = field(default_factory=dict)
    """Topics that may belong to another group, by role; see ``InternalTopics``."""
    coordinators: Callable[[Mapping[str, str]], TransactionCalls] | None = None

    def check_proven(self) -> None:
        """Raise ``Refused`` if offsets might be written to a topic of another group."""
        for role, topic in self.unproven.items():
            raise Refused(
                f"The {role} topic {topic} may be another group's",
                why="it is only the last one left: nothing in it names a worker or a connector of "
                "this group",
                next_step=f"Check --group-id; or give --{role}-topic TOPIC, or topics.{role} in "
                "the context.",
                code="topic-not-proven",
            )

    def facts(self, group_id: str) -> Facts:
        return read_facts(self.kafka, group_id, self.config_topic) if self.config_topic else Facts()

    def writes(
        self, bootstrap: str | None = None, overrides: Mapping[str, str] = MappingProxyType({})
    ) -> KafkaWrites:
        """Return the writing client of the cluster at ``bootstrap``, of the workers' own cluster
        for None.

        Raises ``Refused`` as ``check_proven`` does.
        """
        self.check_proven()
        return cast(
            "KafkaWrites",
            self.kafka if bootstrap is None else self.other_kafka(bootstrap, overrides),
        )


def observe(sources: Sources, query: OffsetsQuery) -> OffsetsSnapshot:
    topics = [
        t for t in (sources.config_topic, sources.offsets_topic if query.read_global else None) if t
    ]
    images = sources.kafka.image(
        topics, patience=sources.patience, superseded=query.superseded, includes=query.chosen
    )
    configs = None
    findings: list[Finding] = []
    if sources.config_topic in images:
        image = images[sources.config_topic]
        configs = state_in(sources.kafka, image, patience=sources.patience)
        findings += [
            *configs.findings,
            *offsets_findings.of_open_transactions(sources.config_topic, image.held_back),
        ]
    global_topic = None
    if query.read_global and sources.offsets_topic in images:
        global_topic = ReadTopic(images[sources.offsets_topic], "global")
        findings += _policies(sources.kafka, [sources.offsets_topic])
    stores = _stores(sources, configs, query, findings)
    dedicated, unread = _read_dedicated(sources, stores, query, findings)
    return OffsetsSnapshot(global_topic, dedicated, configs, stores, tuple(findings), unread)


def _stores(
    sources: Sources, configs: ConfigState | None, query: OffsetsQuery, findings: list[Finding]
) -> dict[str, Store]:
    found: dict[str, Store] = {}
    for name, connector in (configs.connectors if configs else {}).items():
        if connector.looks_like == "sink" or not query.includes(name):
            continue
        store = separate_store(connector.config, sources.offsets_topic, sources.bootstrap)
        if store is not None:
            found[name] = store
    if not found:
        return found
    workers = sources.workers()
    if older(workers.version, EXACTLY_ONCE):
        return {}
    return {
        name: store for name, store in found.items() if _applies(name, store, workers, findings)
    }


def _applies(name: str, store: Store, workers: WorkerFacts, findings: list[Finding]) -> bool:
    """Return whether workers use the store: an implicit one is used only with exactly-once
    support.
    """
    if not store.implicit or workers.enabled:
        return True
    if workers.enabled is None:
        message = (
            f"It writes to {store.bootstrap}. With exactly-once enabled on the workers its "
            f"offsets live there, in {store.topic}; no worker answered. Both places are shown."
        )
        findings.append(MAYBE_DEDICATED.found(name, message))
        return True
    return False


def _read_dedicated(
    sources: Sources, stores: dict[str, Store], query: OffsetsQuery, findings: list[Finding]
) -> tuple[dict[str, ReadTopic], dict[str, ConnectctlError]]:
    """Return the dedicated topics by connector, and the errors of those that could not be read.

    The topics of a cluster are read together.
    """
    found: dict[str, ReadTopic] = {}
    unread: dict[str, ConnectctlError] = {}
    if not query.read_dedicated:
        return found, unread
    for bootstrap in dict.fromkeys(store.bootstrap for store in stores.values()):
        on_cluster = {name: store for name, store in stores.items() if store.bootstrap == bootstrap}
        images: dict[str, TopicImage] = {}
        try:
            images = _images(sources, bootstrap, on_cluster, query, findings)
        except NotAuthorized:
            # Read the topics one by one: a topic that this principal may not read must not hide the
            # others.
            for name, store in on_cluster.items():
                try:
                    images |= _images(sources, bootstrap, {name: store}, query, findings)
                except ConnectctlError as e:
                    unread[name] = e
        except ConnectctlError as e:
            if e.code == memory.CODE:
                raise
            unread |= dict.fromkeys(on_cluster, e)
        for name, store in on_cluster.items():
            if name in unread:
                findings.append(_unreadable(name, store, unread[name]))
                continue
            if store.topic in images:
                found[name] = ReadTopic(images[store.topic], "dedicated", bootstrap)
            else:
                findings.append(_missing(name, store))
    return found, unread


def _unreadable(name: str, store: Store, error: ConnectctlError) -> Finding:
    location = f" on {store.bootstrap}" if store.bootstrap else ""
    denied = isinstance(error, NotAuthorized) and error.right is not None
    reason = f"{error.what}: {error.why}" if error.why else error.what
    message = (
        f"Its dedicated topic {store.topic}{location} cannot be read: "
        f"{error.why if denied else reason}."
    )
    hint = NAME_IT
    if denied:
        hint = str(error.next_step)
    right = error.right if isinstance(error, NotAuthorized) else None
    return replace(UNREADABLE.found(name, message, hint), denied=right)


def _missing(name: str, store: Store) -> Finding:
    where = f" on {store.bootstrap}" if store.bootstrap else ""
    message = (
        f"Its dedicated topic {store.topic}{where} does not exist yet. The workers create it when "
        "the connector next starts, empty, and its tasks then start from the beginning, even if "
        "the global topic has their offsets."
    )
    return MISSING.found(name, message)


def _images(
    sources: Sources,
    bootstrap: str | None,
    stores: dict[str, Store],
    query: OffsetsQuery,
    findings: list[Finding],
) -> dict[str, TopicImage]:
    kafka = sources.kafka
    if bootstrap is not None:
        kafka = sources.other_kafka(bootstrap, next(iter(stores.values())).overrides)
    topics = sorted({store.topic for store in stores.values()})
    images = kafka.image(
        topics, patience=sources.patience, superseded=query.superseded, includes=query.chosen
    )
    if bootstrap is not None and kafka.cluster_id() == sources.kafka.cluster_id():
        findings += _same_cluster(sources, stores)
    findings += _policies(kafka, topics)
    return images


def _policies(kafka: KafkaReads, topics: list[str]) -> Iterator[Finding]:
    for name, facts in kafka.topics(topics).items():
        if facts.config:
            yield from offsets_findings.of_policy(name, facts.config.get("cleanup.policy"))
        else:
            yield offsets_findings.of_unseen_configuration(name)


def _same_cluster(sources: Sources, stores: dict[str, Store]) -> Iterator[Finding]:
    for name, store in stores.items():
        message = (
            f"producer.override.bootstrap.servers={store.bootstrap} is this same cluster in "
            f"another spelling than {sources.bootstrap}: Connect compares the text, and keeps two "
            "stores where one would be enough."
        )
        yield SAME_CLUSTER.found(name, message)
