"""How Connect parses a property's text (``ConfigDef.parseType``), and the properties of connectors
and clients whose values can be validated alone: types, ranges and words, as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

_SIZES = {"SHORT": 15, "INT": 31, "LONG": 63}
_NUMBER = re.compile(r"[+-]?[0-9]+")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
LONGEST_TOPIC = 249


def invalid(name: str, value: object, why: str) -> str:
    """Return the message of ``ConfigException``."""
    return f"Invalid value {value} for configuration {name}: {why}"


def number_problem(
    name: str, value: str, type_: str = "INT", least: int | None = None
) -> str | None:
    """Return Connect's error if ``value`` is not a number of that type, or is less than ``least``;
    else None.
    """
    text = value.strip()
    if not _NUMBER.fullmatch(text) or not -(1 << _SIZES[type_]) <= int(text) < 1 << _SIZES[type_]:
        return invalid(name, value, f"Not a number of type {type_}")
    if least is not None and int(text) < least:
        return invalid(name, int(text), f"Value must be at least {least}")
    return None


def boolean_problem(name: str, value: str) -> str | None:
    """Return Connect's error if ``value`` is neither true nor false."""
    if value.strip().lower() in ("true", "false"):
        return None
    return invalid(name, value, "Expected value to be either true or false")


def word_problem(
    name: str, value: str, words: tuple[str, ...], *, any_case: bool = False
) -> str | None:
    """Return Connect's error if ``value`` is not one of ``words``."""
    text = value.strip()
    if text in words or (any_case and text.upper() in words):
        return None
    return invalid(
        name,
        text,
        f"String must be one of{' (case insensitive)' if any_case else ''}: {', '.join(words)}",
    )


def listed(value: str | None) -> list[str]:
    """Return a list as Connect splits it; an empty text is an empty list, and empty parts are
    kept.
    """
    text = (value or "").strip()
    return re.split(r"\s*,\s*", text) if text else []


def topic_problem(name: str) -> str | None:
    """Return the brokers' error about a topic of this name (``Topic.validate``)."""
    if name == "":
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > LONGEST_TOPIC:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST_TOPIC}"
    if not _TOPIC.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', "
            "'_' and '-'"
        )
    return None


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
