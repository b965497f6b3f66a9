"""What ``consumer.override.*`` says of the consumers of a sink or transform, in librdkafka's terms.
Pure.

A member waits for what a transaction has pending and commits by itself never, so a few settings are
not the job's to give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.core.errors import BadInput

OVERRIDE = "consumer.override."
GROUP_PREFIX = "connect-"
"""What Connect puts before a connector's name for its consumer group
(``SinkUtils.consumerGroupId``).
"""
SESSION_MS = 45_000
"""``session.timeout.ms`` of Kafka's consumers since 3.0 (KIP-735)."""
POLL_INTERVAL_MS = 300_000
"""``max.poll.interval.ms`` of Kafka's consumers, and of librdkafka's."""
MOST_RECORDS = 500
"""``max.poll.records`` of Kafka's consumers."""
GAPS = 3
"""A session lasts for so many gaps between two leases, at least."""
_FETCHES = {"client.rack", "fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes"}
_CONNECTIONS = {
    "client.id",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "connections.max.idle.ms",
}
SAME_FOR_READERS = _FETCHES | _CONNECTIONS
"""Properties of a consumer, of whatever kind, for which librdkafka has the names of Java's."""
_MEMBERSHIP = {
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "group.protocol",
}
_SAME = SAME_FOR_READERS | _MEMBERSHIP | {"group.remote.assignor"}
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    # librdkafka's own metadata.max.age.ms only drops what is old; it looks for new partitions at
    # this interval, and drops what was not seen for three of them.
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
}
_SHORTEST_REFRESH, _LONGEST_REFRESH = 100, 3_600_000
"""Milliseconds: 0 would ask without a pause, and librdkafka takes an hour at most."""
_FIXED = {
    "isolation.level": "read_committed",
    "enable.auto.commit": "false",
    "partition.assignment.strategy": "cooperative-sticky",
}
_OURS = {"group.id", "auto.offset.reset", "max.poll.records"}
_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}
_PROTOCOLS = ("classic", "consumer")
_BROKERS = ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms")
"""What the brokers decide for members of the consumer protocol (KIP-848): Kafka's consumers refuse
them, too.
"""
_CLIENT = ("sasl.", "ssl.", "security.", "bootstrap.servers")


@dataclass(frozen=True)
class ConsumerSettings:
    """The consumers of one connector: their ``group``, librdkafka's ``properties``, ``reset`` as
    ``auto.offset.reset`` of librdkafka has it, and how many records a poll gives. ``dynamic``
    members have no ``group.instance.id``.
    """

    group: str
    reset: str = "earliest"
    most_records: int = MOST_RECORDS
    properties: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def dynamic(self) -> bool:
        """Whether it is KIP-848's protocol, in which a new attempt cannot take a living one's
        instance id over (4.3.1 answers UNRELEASED_INSTANCE_ID).
        """
        return self.properties.get("group.protocol", "classic").strip().lower() == "consumer"

    @property
    def session_ms(self) -> int:
        """The session time-out in ms, where members have one of their own."""
        return int(self.properties.get("session.timeout.ms", SESSION_MS))

    @property
    def poll_interval_ms(self) -> int:
        """``max.poll.interval.ms``: how long a member may take between two polls."""
        return int(self.properties.get("max.poll.interval.ms", POLL_INTERVAL_MS))


def consumer_settings(name: str, config: Mapping[str, str]) -> ConsumerSettings:
    """What the configuration of the connector ``name`` asks for. Raises ``BadInput``."""
    given = client_overrides(config, "consumer")
    reset = given.get("auto.offset.reset", "earliest").strip().lower()
    if reset not in _RESETS:
        raise _invalid("auto.offset.reset", reset, f"use one of {', '.join(_RESETS)}")
    most = given.get("max.poll.records", str(MOST_RECORDS)).strip()
    if not (most.isascii() and most.isdigit() and int(most)):
        raise _invalid("max.poll.records", most, "it must be a number above 0")
    if elsewhere := sorted(each for each in given if each.startswith(_CLIENT)):
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
    _check_protocol(given)
    _check_numbers(given)
    properties = {k: v.strip() for k, v in given.items() if k in _SAME}
    properties |= {_RENAMED[k]: v.strip() for k, v in given.items() if k in _RENAMED}
    if (refresh := properties.get("topic.metadata.refresh.interval.ms")) is not None:
        properties["topic.metadata.refresh.interval.ms"] = str(
            min(max(int(refresh), _SHORTEST_REFRESH), _LONGEST_REFRESH)
        )
    group = given.get("group.id", "").strip() or f"{GROUP_PREFIX}{name}"
    return ConsumerSettings(group, _RESETS[reset], int(most), properties, tuple(_ignored(given)))


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
    """What to say where ``gap`` seconds between two leases could cost a member its session; None
    where they cannot.
    """
    if gap * 1000 * GAPS <= session_ms:
        return None
    return (
        f"{gap:.1f} s passed between two leases, and the session time-out is "
        f"{session_ms / 1000:g} s: the group may take partitions from tasks that are about to "
        f"continue. Increase {OVERRIDE}session.timeout.ms to {int(gap * 1000 * GAPS)} or more (at "
        "most group.max.session.timeout.ms of the brokers)."
    )
