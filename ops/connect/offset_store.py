"""The stores that a worker gives a source connector for its offsets. Pure;
``Worker.offsetStoreFor…`` and KIP-618.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from connectctl.ops.kafka.bootstrap import same_to_connect, share_a_server

TOPIC = "offsets.storage.topic"
CLIENTS = ("producer", "consumer", "admin")


class StoreMode(StrEnum):
    """The workers' exactly-once mode, where offset stores depend on it."""

    ENABLED = "enabled"
    NOT_ENABLED = "not enabled"
    STANDALONE = "standalone"


class Kind(StrEnum):
    """The kind of store: the workers' own; their topic with the connector's clients; a separate
    one, copied to theirs.
    """

    WORKERS = "workers"
    OWN_CLIENTS = "own clients"
    SEPARATE = "separate"


@dataclass(frozen=True)
class Store:
    """The store of a connector's offsets. ``bootstrap`` is None if it equals the workers' bootstrap
    servers.

    ``implicit``: no separate topic is configured; it follows from other bootstrap servers.
    ``overrides`` are those of the connector's clients if they connect to other servers; those of
    the consumer have priority.
    """

    kind: Kind
    topic: str
    bootstrap: str | None = None
    implicit: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict, compare=False)


def store_of(
    mode: StoreMode,
    config: Mapping[str, str],
    offsets_topic: str,
    worker_bootstrap: str,
    producer_bootstrap: str | None = None,
) -> Store:
    """Return the store that a worker gives a connector.

    Source: ``Worker.offsetStoreFor…Source…``, ``sameOffsetTopicAsWorker``. ``offsets_topic`` and
    ``worker_bootstrap`` are the worker's ``offset.storage.topic`` and ``bootstrap.servers``,
    ``producer_bootstrap`` its ``producer.bootstrap.servers``, if it has one. Bootstrap servers are
    compared as Connect does it: as sets of texts, whichever cluster they are, and only those of the
    producer.
    """
    named = config.get(TOPIC)
    writes_to = client_bootstrap(config, "producer", producer_bootstrap or worker_bootstrap)
    elsewhere = not same_to_connect(writes_to, worker_bootstrap)
    if mode is StoreMode.STANDALONE or (mode is StoreMode.NOT_ENABLED and named is None):
        return Store(Kind.WORKERS, offsets_topic)
    topic = offsets_topic if named is None else named
    if topic == offsets_topic and not elsewhere:
        return Store(Kind.OWN_CLIENTS, topic)
    if not elsewhere:
        return Store(Kind.SEPARATE, topic)
    overrides = {
        k: v
        for client in ("producer", "admin", "consumer")
        for k, v in client_overrides(config, client).items()
    }
    return Store(Kind.SEPARATE, topic, writes_to, named is None, overrides)


def client_bootstrap(config: Mapping[str, str], client: str, default: str) -> str:
    override = config.get(f"{client}.override.bootstrap.servers")
    return default if override is None else override  # an empty value is an override, too


def client_overrides(config: Mapping[str, str], client: str) -> dict[str, str]:
    prefix = f"{client}.override."
    return {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }


def separate_store(config: Mapping[str, str], offsets_topic: str, bootstrap: str) -> Store | None:
    """Return the store that a connector has besides the global topic, or will have with
    exactly-once, if any.
    """
    store = store_of(StoreMode.ENABLED, config, offsets_topic, bootstrap)
    return store if store.kind is Kind.SEPARATE else None


def connects_to(config: Mapping[str, str], client: str, bootstrap: str) -> bool:
    """Return whether a connector's ``client`` certainly connects to the workers' cluster at
    ``bootstrap``.
    """
    return share_a_server(client_bootstrap(config, client, bootstrap), bootstrap)
