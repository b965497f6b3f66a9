"""Which stores a worker gives a source connector for its offsets. Pure; ``Worker.offsetStoreFor…`` and KIP-618."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

TOPIC = "offsets.storage.topic"
CLIENTS = ("producer", "consumer", "admin")


class Mode(StrEnum):
    """What a worker does about exactly-once, as far as offset stores depend on it."""

    ENABLED = "enabled"
    NOT_ENABLED = "not enabled"
    STANDALONE = "standalone"


class Kind(StrEnum):
    """Which stores: the workers' own; their topic through the connector's clients; a separate one, with a copy in theirs."""

    WORKERS = "workers"
    OWN_CLIENTS = "own clients"
    SEPARATE = "separate"


@dataclass(frozen=True)
class Store:
    """Where a connector's offsets are. ``bootstrap`` is None where it is spelled as the workers spell theirs.

    ``implicit``: nobody asked for a separate topic; it comes of writing to other bootstrap servers.
    """

    kind: Kind
    topic: str
    bootstrap: str | None = None
    implicit: bool = False


def store_of(
    mode: Mode,
    config: Mapping[str, str],
    offsets_topic: str,
    worker_bootstrap: str,
    producer_bootstrap: str | None = None,
) -> Store:
    """The store that a worker gives a connector (``Worker.offsetStoreFor…Source…``, ``sameOffsetTopicAsWorker``).

    ``offsets_topic`` and ``worker_bootstrap`` are the worker's ``offset.storage.topic`` and ``bootstrap.servers``,
    ``producer_bootstrap`` its ``producer.bootstrap.servers``, where it has one. Bootstrap servers are compared as Connect
    does it: as sets of texts, whatever cluster they lead to, and those of the producer alone.
    """
    named = config.get(TOPIC)
    writes_to = client_bootstrap(config, "producer", producer_bootstrap or worker_bootstrap)
    elsewhere = servers(writes_to) != servers(worker_bootstrap)
    if mode is Mode.STANDALONE or (mode is Mode.NOT_ENABLED and named is None):
        return Store(Kind.WORKERS, offsets_topic)
    topic = offsets_topic if named is None else named
    if topic == offsets_topic and not elsewhere:
        return Store(Kind.OWN_CLIENTS, topic)
    return Store(Kind.SEPARATE, topic, writes_to if elsewhere else None, named is None)


def client_bootstrap(config: Mapping[str, str], client: str, default: str) -> str:
    """The bootstrap servers of a connector's ``producer``, ``consumer`` or ``admin``."""
    return config.get(f"{client}.override.bootstrap.servers") or default


@lru_cache
def servers(bootstrap: str) -> frozenset[str]:
    """Bootstrap servers as Connect compares them: a set of texts."""
    return frozenset(part.strip() for part in bootstrap.split(",") if part.strip())
