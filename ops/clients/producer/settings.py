"""The public producer's configuration, by librdkafka's names. A property that affects delivery is
used or refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.kafka_protocol.client import load
from connectctl.ops.clients.kafka_protocol.client_properties import arguments
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.compression import CODECS

CONNECTION = (
    "bootstrap.servers",
    "metadata.broker.list",
    "client.id",
    "enable.ssl.certificate.verification",
    "enable.sasl.oauthbearer.unsecure.jwt",
)
SECURITY = ("security.", "ssl.", "sasl.")
FIXED = {
    "acks": ("all", "-1"),
    "request.required.acks": ("all", "-1"),
    "enable.idempotence": ("true",),
    "partitioner": ("murmur2_random",),
}
"""Properties that can have only these values."""
TUNING = {
    "batch.num.messages",
    "linger.ms",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "queue.buffering.max.ms",
    "socket.keepalive.enable",
    "socket.nagle.disable",
}
"""Properties of librdkafka's queues and sockets that do not affect delivery. They are accepted, and
have no effect.
"""
_NUMBERS = {
    "transaction.timeout.ms": 60_000,
    "socket.timeout.ms": 10_000,
    "topic.metadata.propagation.max.ms": 30_000,
    "batch.size": 1_000_000,
    "message.max.bytes": 1_000_000,
}


@dataclass(frozen=True)
class ProducerSettings:
    """The settings of a producer. ``connection`` are the properties of connections.
    ``request_timeout`` and ``topic_patience`` are in seconds, ``transaction_timeout_ms`` in ms.
    """

    id: str
    connection: Mapping[str, Any] = field(repr=False)
    transaction_timeout_ms: int
    request_timeout: float
    topic_patience: float
    batch_bytes: int
    largest: int
    codec: str


def settings(config: Mapping[str, Any]) -> ProducerSettings:
    """Return the settings in ``config``. Raises ``KafkaException`` with ``_INVALID_ARG`` for a
    property or value that is not supported.
    """
    id_ = config.get("transactional.id")
    if not isinstance(id_, str) or not id_:
        raise invalid("transactional.id is missing")
    numbers = {name: _number(config, name, default) for name, default in _NUMBERS.items()}
    codec = str(config.get("compression.type") or config.get("compression.codec") or "none")
    if codec not in CODECS:
        raise invalid(f"compression.type {codec} is not supported (supported: {', '.join(CODECS)})")
    connection = {
        name: value
        for name, value in config.items()
        if name in CONNECTION or name.startswith(SECURITY)
    }
    if not connection.get("bootstrap.servers") and not connection.get("metadata.broker.list"):
        raise invalid("bootstrap.servers is missing")
    known = {
        *connection,
        *_NUMBERS,
        *TUNING,
        "transactional.id",
        "compression.type",
        "compression.codec",
    }
    for name in config:
        if name in FIXED:
            if str(config[name]).lower() not in FIXED[name]:
                raise invalid(f"{name} must be {FIXED[name][0]} for this producer")
        elif name not in known:
            raise invalid(f"{name} is not a property of this producer")
    load()  # before a part of kafka-python is: several threads may be here
    try:
        arguments(connection)
    except BadInput as e:
        why = f": {e.why}" if e.why else ""
        raise invalid(e.what.removeprefix("client: ") + why) from e
    timeout, largest = numbers["transaction.timeout.ms"], numbers["message.max.bytes"]
    request = min(numbers["socket.timeout.ms"], timeout) / 1000
    patience = numbers["topic.metadata.propagation.max.ms"] / 1000
    return ProducerSettings(
        id_,
        connection,
        timeout,
        request,
        patience,
        min(numbers["batch.size"], largest),
        largest,
        codec,
    )


def invalid(why: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, why))


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    try:
        number = int(config.get(name, default))
    except (TypeError, ValueError):
        number = 0
    if number <= 0:
        raise invalid(f"{name} must be a positive number")
    return number
