"""What a connector's configuration says of its producer and its transactions, in terms of a task here. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connectctl.ops.runtime.boundaries import Boundary

PRODUCER = "producer.override."
STRICT = "epoch.per.transaction"
_SECURITY = ("sasl.", "ssl.", "security.")
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
_FIXED = {
    "enable.idempotence": ("true", " for connectors when exactly-once source support is enabled"),
    "transactional.id": (None, " for connectors when exactly-once source support is enabled"),
    "acks": ("all", ", because transactions need it"),
    "partitioner.class": ("murmur2", ", because Connect's own partitioner is what others rely on"),
}
_ELSEWHERE = {"transaction.timeout.ms", "bootstrap.servers"}
SHORT_TIMEOUT = 15_000
"""Milliseconds: how long readers wait, at most, for a task that died, where its transactions are short."""
DEFAULT_TIMEOUT = DEFAULT_INTERVAL = 60_000
"""Milliseconds: ``transaction.timeout.ms`` of a producer, ``offset.flush.interval.ms`` of a worker."""


@dataclass(frozen=True)
class Manner:
    """How a connector's tasks write. ``properties`` are librdkafka's; ``ignored`` says, in lines, what has no effect."""

    boundary: Boundary
    interval: float
    timeout_ms: int
    strict: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    security: Mapping[str, str] = field(default_factory=dict)
    bootstrap: str | None = None
    ignored: tuple[str, ...] = ()


def manner(config: Mapping[str, str]) -> Manner:
    """What ``config``, which was validated, asks for."""
    boundary = Boundary(config.get("transaction.boundary", "poll").lower())
    interval = int(config.get("transaction.boundary.interval.ms", DEFAULT_INTERVAL))
    given = {k.removeprefix(PRODUCER): v for k, v in config.items() if k.startswith(PRODUCER)}
    timeout = given.get("transaction.timeout.ms")
    properties = {k: v for k, v in given.items() if k in _SAME} | {
        _RENAMED[k]: v for k, v in given.items() if k in _RENAMED
    }
    return Manner(
        boundary,
        interval / 1000,
        int(timeout) if timeout else _timeout(boundary, interval),
        config.get(STRICT, "false").strip().lower() == "true",
        properties,
        {k: v for k, v in given.items() if k.startswith(_SECURITY)},
        given.get("bootstrap.servers"),
        tuple(_ignored(given)),
    )


def _timeout(boundary: Boundary, interval: int) -> int:
    """A transaction's time-out: no longer than it takes, for as long as that readers wait for one that died."""
    if boundary is Boundary.INTERVAL:
        return interval + SHORT_TIMEOUT
    return SHORT_TIMEOUT if boundary is Boundary.POLL else DEFAULT_TIMEOUT


def _ignored(given: Mapping[str, str]) -> Iterator[str]:
    for name, value in given.items():
        if name in _FIXED:
            ours, why = _FIXED[name]
            if ours is not None and value.strip().lower() in (ours, "-1"):
                continue
            end = f" The value '{ours}' will be used instead." if ours else ""
            yield (
                f"The value '{value}' for the '{name}' property will be ignored as it cannot be overridden{why}.{end}"
            )
        elif name not in _SAME and name not in _RENAMED and name not in _ELSEWHERE and not name.startswith(_SECURITY):
            yield f"{PRODUCER}{name} has no equal in librdkafka, and is ignored here."
