"""The clients for a copy's source cluster: MirrorMaker's prefixes and Java's names in librdkafka's
terms.

A consumer's properties are those of ``source.cluster.`` that serve to connect, then those of
``consumer.``, then those of ``source.consumer.``; an admin client's the same with ``admin.``, as
``MirrorConnectorConfig`` has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from connectctl.ops.clients.first_contact import first_contact
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.config.java_clients import from_java
from connectctl.ops.core.errors import (
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    UnknownHost,
    Unreachable,
)
from connectctl.ops.task_runtime.group.consumer_settings import SAME_FOR_READERS

CLUSTER = "source.cluster."
CONSUMER, ADMIN = ("consumer.", "source.consumer."), ("admin.", "source.admin.")
ISOLATION, RESET = "isolation.level", "auto.offset.reset"
UNREADABLE = "Cannot read the source cluster {}"
_CONNECTING = ("bootstrap.servers", "security.", "ssl.", "sasl.")
_OF_CONSUMERS = {"check.crcs", ISOLATION, RESET}
_OF_ALL = {"client.dns.lookup", "metadata.max.age.ms", "retry.backoff.ms", "retry.backoff.max.ms"}
_SAME = SAME_FOR_READERS | _OF_CONSUMERS | _OF_ALL
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
_OF_THE_CONNECTOR = {"consumer.poll.timeout.ms", "admin.timeout.ms"}
"""MirrorMaker's own properties, which only look like a client's."""
_WITHOUT_EFFECT = {"enable.auto.commit", "group.id", "key.deserializer", "value.deserializer"}
"""Properties without an effect in MirrorMaker, too: no group is joined and nothing is committed to
one.
"""


def java(config: Mapping[str, str], prefixes: tuple[str, str]) -> dict[str, str]:
    """Return a source client's properties by Java's names."""
    clusters = {k.removeprefix(CLUSTER): v for k, v in config.items() if k.startswith(CLUSTER)}
    found = {k: v for k, v in clusters.items() if k.startswith(_CONNECTING)}
    for prefix in prefixes:
        found |= {
            k.removeprefix(prefix): v
            for k, v in config.items()
            if k.startswith(prefix) and k not in _OF_THE_CONNECTOR
        }
    return found


def client(config: Mapping[str, str], prefixes: tuple[str, str] = ADMIN) -> dict[str, Any]:
    """Return a source client's properties by librdkafka's names; properties without an equivalent
    are left out, and returned by ``unknown``.
    """
    javas = java(config, prefixes)
    found: dict[str, Any] = {
        k: v for k, v in javas.items() if k in _SAME or k == "bootstrap.servers"
    }
    found |= {_RENAMED[k]: v for k, v in javas.items() if k in _RENAMED}
    if prefixes == ADMIN:
        found = {k: v for k, v in found.items() if "fetch" not in k and k not in _OF_CONSUMERS}
    return found | from_java(javas)


def isolation(config: Mapping[str, str]) -> str:
    """Return ``isolation.level`` of the source consumer: read_committed where nothing is given,
    unlike a Java consumer's.
    """
    return java(config, CONSUMER).get(ISOLATION, "read_committed").lower()


def reset(config: Mapping[str, str]) -> str:
    """Return ``auto.offset.reset`` of the source consumer: earliest where nothing is given, as
    MirrorMaker has it.
    """
    return java(config, CONSUMER).get(RESET, "earliest").lower()


def reset_given(config: Mapping[str, str]) -> bool:
    """Return whether the user has configured the reset of a partition whose source has lost the
    committed offset.
    """
    return RESET in java(config, CONSUMER)


def problems(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the errors of the configuration, by property."""
    level, start, javas = isolation(config), reset(config), java(config, CONSUMER)
    if level not in ("read_committed", "read_uncommitted"):
        yield "source.consumer.isolation.level", f"Invalid isolation level {level}"
    if start not in ("earliest", "latest", "none"):
        yield "source.consumer.auto.offset.reset", f"auto.offset.reset={start} is not supported"
    for store in ("keystore", "truststore"):
        if f"ssl.{store}.location" in javas and javas.get(f"ssl.{store}.type", "").upper() != "PEM":
            text = f"A Java {store} is not supported for the source cluster; configure it as PEM"
            yield f"{CLUSTER}ssl.{store}.location", text


def unknown(config: Mapping[str, str]) -> list[str]:
    """Return the names of source client properties that have no equal here, and are ignored."""
    known = _SAME | _RENAMED.keys() | _WITHOUT_EFFECT
    found = {
        prefix + name
        for prefix in (*CONSUMER, *ADMIN)
        for name in (
            k.removeprefix(prefix)
            for k in config
            if k.startswith(prefix) and k not in _OF_THE_CONNECTOR
        )
        if name not in known and not name.startswith(_CONNECTING)
    }
    return sorted(found)


@contextmanager
def unreachable(alias: str, first: str | None = None) -> Iterator[None]:
    """Raise errors as those of the source cluster ``alias``; with ``first`` it is the first
    request, at these servers.
    """
    try:
        with nullcontext() if first is None else first_contact(first):
            yield
    except (NotAuthorized, NotTrusted):
        raise
    except Unreachable as e:
        hint = "Check source.cluster.bootstrap.servers."
        why = e.why if isinstance(e, UnknownHost) else e.what
        raise type(e)(UNREADABLE.format(alias), why=why, next_step=hint) from e


def partition_gone(alias: str, topic: str) -> ConnectctlError:
    """Return the error for a topic, or a partition as TOPIC-N, that the source does not have any
    more.
    """
    return ConnectctlError(
        f"{topic} no longer exists on the source cluster {alias}",
        why="it was deleted, or recreated with fewer partitions",
        next_step="Restart the run to use the current topics.",
        code="no-topic",
    )


def source_of(config: Mapping[str, str], timeout: float) -> Kafka:
    return Kafka(client(config), timeout=timeout)
