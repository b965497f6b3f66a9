"""The settings of a task's producer and transactions, from the connector's configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from connectctl.ops.connect.offset_store import client_bootstrap, client_overrides
from connectctl.ops.connect.source_transactions import (
    BOUNDARY,
    DEFAULT_INTERVAL_MS,
    DEFAULT_TIMEOUT_MS,
    INTERVAL,
    LATENCY,
    Boundary,
)
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.bootstrap import same_to_connect
from connectctl.ops.task_runtime.spi.error_settings import silent_loss

PRODUCER = "producer.override."
STRICT = "epoch.per.transaction"
SUPPORT = "exactly.once.source.support"
FLUSH = "offset.flush.interval.ms"
"""Two properties of workers, which a job may have: it is its own worker."""
SECURITY = ("sasl.", "ssl.", "security.")
_SAME = {
    "client.id",
    "linger.ms",
    "compression.type",
    "batch.size",
    "request.timeout.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "connections.max.idle.ms",
}
_RENAMED = {"max.request.size": "message.max.bytes"}
WRITER_PROPERTIES = frozenset(
    {"client.id", "compression.type", "batch.size", "max.request.size", "request.timeout.ms"}
)
"""Those that have an effect on a transactional producer, too (``transactional_producer``)."""
_FIXED = {
    "enable.idempotence": ("true", " for connectors when exactly-once source support is enabled"),
    "transactional.id": (None, " for connectors when exactly-once source support is enabled"),
    "acks": ("all", ": required for transactions"),
    "partitioner.class": ("murmur2", ": records are partitioned as by Connect's producer"),
}
_SET_BY_CONNECTCTL = {"transaction.timeout.ms", "bootstrap.servers"}
_UNSUPPORTED = {
    "topic.creation.": "topics are created only by the brokers (auto.create.topics.enable)",
    "consumer.override.": "offsets are read with the client configuration of the context",
    "admin.override.": "topics and tasks are managed with the client configuration of the context",
}
SHORT_TIMEOUT = 15_000
"""Milliseconds: how long readers wait, at most, for a task that died, where its transactions are
short.
"""
GROUP_TIMEOUT, GROUP_INTERVAL = 10_000, 100
"""Milliseconds: the same of a transform's producer, as Kafka Streams has it with exactly-once
(KIP-447).
"""


@dataclass(frozen=True)
class DeliverySettings:
    """How a connector's tasks write. ``properties`` are librdkafka's; ``ignored`` are lines about
    properties without an effect.

    ``interval`` is in seconds: of transactions, or of flushes of offsets without ``exactly_once``.
    A task without records returns offsets at most each ``flush_interval`` seconds. ``latency`` is
    the promise for transactions in seconds, or None.
    """

    boundary: Boundary
    interval: float
    timeout_ms: int
    strict: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    security: Mapping[str, str] = field(default_factory=dict)
    bootstrap: str | None = None
    ignored: tuple[str, ...] = ()
    exactly_once: bool = True
    flush_interval: float = DEFAULT_INTERVAL_MS / 1000
    latency: float | None = None


def delivery_settings(config: Mapping[str, str]) -> DeliverySettings:
    """Return the settings of a validated source ``config``."""
    once = exactly_once(config)
    boundary = Boundary(config.get(BOUNDARY, "poll").lower())
    flush = int(config.get(FLUSH, DEFAULT_INTERVAL_MS))
    interval = int(config.get(INTERVAL, flush)) if once else flush
    latency = int(config[LATENCY]) if once and LATENCY in config else None
    given = client_overrides(config, "producer")
    timeout = given.get("transaction.timeout.ms")
    return DeliverySettings(
        boundary,
        interval / 1000,
        int(timeout) if timeout else _timeout(boundary, interval, latency),
        once and config.get(STRICT, "false").strip().lower() == "true",
        _librdkafka(given),
        {k: v for k, v in given.items() if k.startswith(SECURITY)},
        given.get("bootstrap.servers"),
        (*_ignored(given, once), *_unsupported(config), *silent_loss(config)),
        once,
        flush / 1000,
        latency=None if latency is None else latency / 1000,
    )


def sink_delivery(config: Mapping[str, str], *, exactly_once: bool) -> DeliverySettings:
    """Return the settings of a sink's validated ``config``: a commit each
    ``offset.flush.interval.ms``.
    """
    return _of_a_group(
        config,
        int(config.get(FLUSH, DEFAULT_INTERVAL_MS)),
        GROUP_TIMEOUT,
        exactly_once=exactly_once,
    )


def group_delivery(config: Mapping[str, str]) -> DeliverySettings:
    """Return the settings of a transform's validated ``config``: a transaction each
    ``commit.interval.ms``, with a time-out after which a dead task's pending offsets do not block
    the next owner of its partitions.
    """
    once = config.get("guarantee") != "at-least-once"
    interval = int(config.get("commit.interval.ms", GROUP_INTERVAL))
    how = _of_a_group(config, interval, max(GROUP_TIMEOUT, 2 * interval), exactly_once=once)
    notes = [] if once else ["guarantee=at-least-once: a failure can cause duplicates."]
    return replace(how, ignored=(*how.ignored, *notes))


def _of_a_group(
    config: Mapping[str, str], interval_ms: int, timeout_ms: int, *, exactly_once: bool
) -> DeliverySettings:
    """With ``timeout_ms`` where the configuration gives no ``transaction.timeout.ms``."""
    given = client_overrides(config, "producer")
    timeout = given.get("transaction.timeout.ms")
    return DeliverySettings(
        Boundary.INTERVAL,
        interval_ms / 1000,
        int(timeout) if timeout else timeout_ms,
        properties=_librdkafka(given),
        ignored=(
            *_ignored(given, exactly_once),
            *_without_effect(config, LATENCY, "it is for source connectors"),
            *silent_loss(config),
        ),
        exactly_once=exactly_once,
    )


def _librdkafka(given: Mapping[str, str]) -> dict[str, str]:
    """Return the overrides of a Java producer by librdkafka's names, of those that it has."""
    return {k: v for k, v in given.items() if k in _SAME} | {
        _RENAMED[k]: v for k, v in given.items() if k in _RENAMED
    }


def target_cluster(config: Mapping[str, str], own: str) -> tuple[str, dict[str, str]] | None:
    """Return the cluster of the producers, and their overrides; None if it is the workers' cluster
    at ``own``, by the same client.

    Overrides of security make another client of the same servers, with another principal.
    """
    overrides, bootstrap = (
        client_overrides(config, "producer"),
        client_bootstrap(config, "producer", own),
    )
    apart = not same_to_connect(bootstrap, own) or any(
        name.startswith(SECURITY) for name in overrides
    )
    return (bootstrap, overrides) if apart else None


def exactly_once(config: Mapping[str, str]) -> bool:
    """Return whether the job uses exactly-once delivery."""
    return config.get(SUPPORT, "enabled").strip().lower() == "enabled"


def check(how: DeliverySettings) -> None:
    """Raise ``BadInput`` for a value that librdkafka does not accept, although Java's client
    might.
    """
    from confluent_kafka import KafkaException, Producer

    known = {**_RENAMED, **{name: name for name in _SAME}}
    for java_name, known_name in known.items():
        if known_name not in how.properties:
            continue
        try:
            Producer({known_name: how.properties[known_name], "log_level": 0})
        except KafkaException as e:
            why = e.args[0].str().strip()
            raise BadInput(
                f"{PRODUCER}{java_name}={how.properties[known_name]} is not supported by librdkafka",
                why=why,
                next_step="Correct or remove it.",
                code="bad-config",
            ) from e


def _unsupported(config: Mapping[str, str]) -> Iterator[str]:
    """A line for each family of properties that workers know and a run does not; and what
    at-least-once has no use for.
    """
    for prefix, why in _UNSUPPORTED.items():
        yield from _without_effect(config, prefix, why)
    if not exactly_once(config):
        yield (
            f"{SUPPORT}={config[SUPPORT]}: at-least-once delivery; a failure can cause duplicates."
        )
        idle = [name for name in config if name.startswith(BOUNDARY) or name == STRICT]
        if idle:
            yield (
                f"{', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect without "
                "exactly-once."
            )


def _without_effect(config: Mapping[str, str], prefix: str, why: str) -> Iterator[str]:
    if found := [name for name in config if name.startswith(prefix)]:
        yield f"{', '.join(found)} {'has' if len(found) == 1 else 'have'} no effect here: {why}."


def _timeout(boundary: Boundary, interval: int, latency: int | None) -> int:
    """Return a transaction's time-out: no longer than it takes, for as long as that readers wait
    for one that died.
    """
    if latency is not None:
        return latency + SHORT_TIMEOUT
    if boundary is Boundary.INTERVAL:
        return interval + SHORT_TIMEOUT
    return SHORT_TIMEOUT if boundary is Boundary.POLL else DEFAULT_TIMEOUT_MS


def _ignored(given: Mapping[str, str], once: bool) -> Iterator[str]:
    known = _SAME | _RENAMED.keys()
    supported = (WRITER_PROPERTIES if once else known) | _SET_BY_CONNECTCTL
    for name, value in given.items():
        if name in _FIXED:
            ours, why = _FIXED[name]
            if ours is not None and value.strip().lower() in (ours, "-1"):
                continue
            end = f" The value '{ours}' will be used instead." if ours else ""
            yield (
                f"The value '{value}' for the '{name}' property will be ignored as it cannot be "
                f"overridden{why}.{end}"
            )
        elif name in supported or name.startswith(SECURITY):
            continue
        elif once:
            yield (
                f"{PRODUCER}{name} has no effect with exactly-once delivery: the transactional "
                "producer has no such property."
            )
        else:
            yield f"{PRODUCER}{name} is ignored: librdkafka has no such property."
