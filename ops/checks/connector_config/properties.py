"""The properties of connectors and clients whose values can be validated alone: types, ranges and
words, as data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from connectctl.ops.checks.connector_config.observe import (
    boolean_problem,
    listed,
    number_problem,
    word_problem,
)

Check = Callable[[str, str], str | None]
"""Connect's error for a property's value, by name and value; None if it is valid."""


def _number(type_: str, least: int | None = None) -> Check:
    return partial(number_problem, type_=type_, least=least)


def _words(*choices: str, any_case: bool = False) -> Check:
    return partial(word_problem, words=choices, any_case=any_case)


def _not_empty(name: str, value: str) -> str | None:
    empty = f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
    return None if listed(value) else empty


FLIGHT = "max.in.flight.requests.per.connection"
CONNECTOR: Mapping[str, Check] = {
    "errors.retry.timeout": _number("LONG"),
    "errors.retry.delay.max.ms": _number("LONG"),
    "errors.tolerance": _words("none", "all"),
    "errors.log.enable": boolean_problem,
    "errors.log.include.messages": boolean_problem,
    "config.action.reload": _words("none", "restart"),
    "tasks.max.enforce": boolean_problem,
}
SINK: Mapping[str, Check] = {
    "errors.deadletterqueue.topic.replication.factor": _number("SHORT"),
    "errors.deadletterqueue.context.headers.enable": boolean_problem,
}
CLIENT: Mapping[str, Check] = {
    "acks": _words("all", "-1", "0", "1"),
    "allow.auto.create.topics": boolean_problem,
    "batch.size": _number("INT", 0),
    "bootstrap.servers": _not_empty,
    "buffer.memory": _number("LONG", 0),
    "compression.type": _words("none", "gzip", "snappy", "lz4", "zstd"),
    "default.api.timeout.ms": _number("INT", 0),
    "delivery.timeout.ms": _number("INT", 0),
    "enable.auto.commit": boolean_problem,
    "enable.idempotence": boolean_problem,
    "fetch.min.bytes": _number("INT", 0),
    "isolation.level": _words("read_committed", "read_uncommitted"),
    "linger.ms": _number("LONG", 0),
    "max.block.ms": _number("LONG", 0),
    FLIGHT: _number("INT", 1),
    "max.poll.interval.ms": _number("INT", 1),
    "max.poll.records": _number("INT", 1),
    "max.request.size": _number("INT", 0),
    "request.timeout.ms": _number("INT", 0),
    "retries": _number("INT", 0),
    "retry.backoff.max.ms": _number("LONG", 0),
    "retry.backoff.ms": _number("LONG", 0),
    "security.protocol": _words("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", any_case=True),
    "session.timeout.ms": _number("INT"),
    "transaction.timeout.ms": _number("INT"),
}


def connector_problem(name: str, value: str, *, sink: bool) -> str | None:
    """Return Connect's error for a connector's own property; None if it is valid, or unknown
    here.
    """
    check = CONNECTOR.get(name) or (SINK.get(name) if sink else None)
    return check(name, value) if check else None


def client_problem(name: str, value: str) -> str | None:
    """Return Kafka's error for a property of a client; None if it is valid, or unknown here."""
    return CLIENT[name](name, value) if name in CLIENT else None
