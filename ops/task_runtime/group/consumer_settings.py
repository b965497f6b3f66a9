"""Translates ``consumer.override.*`` of a sink or transform into properties of librdkafka. Pure.

A member waits for pending offsets of transactions and never commits automatically. So the values of
a few properties are fixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.core.errors import BadInput

OVERRIDE = "consumer.override."
GROUP_PREFIX = "connect-"
"""The prefix of a connector's name in the name of its consumer group
(``SinkUtils.consumerGroupId``).
"""
SESSION_MS = 45_000
"""``session.timeout.ms`` of Kafka's consumers since 3.0 (KIP-735)."""
POLL_INTERVAL_MS = 300_000
"""``max.poll.interval.ms`` of Kafka's consumers, and of librdkafka's."""
MOST_RECORDS = 500
"""``max.poll.records`` of Kafka's consumers."""
GAPS = 3
"""The least number of gaps between two leases that a session time-out has to cover."""
_FETCHES = {"client.rack", "fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes"}
_CONNECTIONS = {
    "client.id",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "connections.max.idle.ms",
}
SAME_FOR_READERS = _FETCHES | _CONNECTIONS
"""Properties of any consumer that have the same name in librdkafka and in Kafka's Java client."""
_MEMBERSHIP = {
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "group.protocol",
}
_SAME = SAME_FOR_READERS | _MEMBERSHIP | {"group.remote.assignor"}
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    # librdkafka's own metadata.max.age.ms only expires cached metadata. It looks for new partitions
    # at this interval, and expires metadata after three of them.
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
}
_SHORTEST_REFRESH, _LONGEST_REFRESH = 100, 3_600_000
"""Milliseconds: 0 would refresh without a pause, and librdkafka accepts an hour at most."""
_FIXED = {
    "isolation.level": "read_committed",
    "enable.auto.commit": "false",
    "partition.assignment.strategy": "cooperative-sticky",
}
_OURS = {"group.id", "auto.offset.reset", "max.poll.records"}
_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}
_PROTOCOLS = ("classic", "consumer")
_BROKERS = ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms")
"""Properties that brokers determine for members of the consumer protocol (KIP-848). Kafka's
consumers refuse them, too.
"""
_CLIENT = ("sasl.", "ssl.", "security.", "bootstrap.servers")


@dataclass(frozen=True)
class ConsumerSettings:
    """The settings of the consumers of one connector: their ``group``, librdkafka's ``properties``,
    ``reset`` as a value of librdkafka's ``auto.offset.reset``, and the most records of a poll.
    ``dynamic`` members have no ``group.instance.id``.
    """

    group: str
    reset: str = "earliest"
    most_records: int = MOST_RECORDS
    properties: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def dynamic(self) -> bool:
        """True for the consumer protocol of KIP-848. In it a new attempt cannot take over the
        instance id of a live one (brokers of 4.3.1 return UNRELEASED_INSTANCE_ID).
        """
        return self.properties.get("group.protocol", "classic").strip().lower() == "consumer"

    @property
    def session_ms(self) -> int:
        """The session time-out in ms of members of the classic protocol."""
        return int(self.properties.get("session.timeout.ms", SESSION_MS))

    @property
    def poll_interval_ms(self) -> int:
        """``max.poll.interval.ms``: the longest time between two polls of a member."""
        return int(self.properties.get("max.poll.interval.ms", POLL_INTERVAL_MS))


def consumer_settings(name: str, config: Mapping[str, str]) -> ConsumerSettings:
    """Return the consumer settings of the connector ``name``. Raises ``BadInput``."""
    overrides = client_overrides(config, "consumer")
    reset = overrides.get("auto.offset.reset", "earliest").strip().lower()
    if reset not in _RESETS:
        raise _invalid("auto.offset.reset", reset, f"use one of {', '.join(_RESETS)}")
    most = overrides.get("max.poll.records", str(MOST_RECORDS)).strip()
    if not (most.isascii() and most.isdigit() and int(most)):
        raise _invalid("max.poll.records", most, "it must be a number above 0")
    if elsewhere := sorted(each for each in overrides if each.startswith(_CLIENT)):
        where = (
            "--bootstrap-servers"
            if elsewhere[0] == "bootstrap.servers"
            else "client in the context"
        )
        raise BadInput(
            f"{OVERRIDE}{elsewhere[0]} is not supported: sinks and transforms read from the "
            "cluster of the context",
            why="input, output and the consumer group's offsets are in one Kafka cluster, by one "
            "client",
            next_step=f"Remove it, and name the cluster with {where}; TopicCopy copies topics of "
            "another cluster.",
            code="bad-config",
        )
    _check_protocol(overrides)
    _check_numbers(overrides)
    properties = {k: v.strip() for k, v in overrides.items() if k in _SAME}
    properties |= {_RENAMED[k]: v.strip() for k, v in overrides.items() if k in _RENAMED}
    if (refresh := properties.get("topic.metadata.refresh.interval.ms")) is not None:
        properties["topic.metadata.refresh.interval.ms"] = str(
            min(max(int(refresh), _SHORTEST_REFRESH), _LONGEST_REFRESH)
        )
    group = overrides.get("group.id", "").strip() or f"{GROUP_PREFIX}{name}"
    return ConsumerSettings(
        group, _RESETS[reset], int(most), properties, tuple(_ignored(overrides))
    )


def _check_protocol(given: Mapping[str, str]) -> None:
    protocol = given.get("group.protocol", "classic").strip().lower()
    if protocol not in _PROTOCOLS:
        raise _invalid("group.protocol", protocol, f"use one of {', '.join(_PROTOCOLS)}")
    if protocol == "consumer" and (refused := [name for name in _BROKERS if name in given]):
        instead = "group.remote.assignor" if refused[0] == _BROKERS[0] else "group.protocol=classic"
        raise BadInput(
            f"{OVERRIDE}{refused[0]} cannot be set when {OVERRIDE}group.protocol=consumer",
            why="the brokers decide it for members of this protocol (KIP-848)",
            next_step=f"Remove it, or use {OVERRIDE}{instead}.",
            code="bad-config",
        )


def _check_numbers(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        # librdkafka would refuse it only when a task opens its consumer.
        is_number = name.endswith((".ms", ".bytes")) and (name in _SAME or name in _RENAMED)
        if is_number and not re.fullmatch(r"\s*-?[0-9]+\s*", value):
            raise _invalid(name, value, "it must be a whole number")


def _invalid(name: str, value: str, why: str) -> BadInput:
    return BadInput(f"Invalid value {value} of {OVERRIDE}{name}", why=why, code="bad-config")


def _ignored(given: Mapping[str, str]) -> Iterator[str]:
    for name, value in given.items():
        if name in _FIXED:
            if value.strip().lower() != _FIXED[name]:
                yield f"{OVERRIDE}{name}={value} is ignored: {_FIXED[name]} is used."
        elif name == "group.instance.id":
            yield f"{OVERRIDE}{name} is ignored: each task uses its transactional id."
        elif name not in _SAME and name not in _RENAMED and name not in _OURS:
            yield f"{OVERRIDE}{name} is ignored: librdkafka has no such property."


def session_warning(session_ms: int, gap: float) -> str | None:
    """Return a warning if a session could time out in ``gap`` seconds between two leases, else
    None.
    """
    if gap * 1000 * GAPS <= session_ms:
        return None
    return (
        f"{gap:.1f} s passed between two leases, and the session time-out is "
        f"{session_ms / 1000:g} s: the group may take partitions from tasks that are about to "
        f"continue. Increase {OVERRIDE}session.timeout.ms to {int(gap * 1000 * GAPS)} or more (at "
        "most group.max.session.timeout.ms of the brokers)."
    )
