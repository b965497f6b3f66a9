"""Sink connectors as the checks of ACLs look at them: their clients, their group and their topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from connectctl.ops.checks.acls.clusters import ClusterAcls
from connectctl.ops.checks.acls.principals import CLIENTS, Role
from connectctl.ops.checks.types import Unseen
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.sink_group import sink_group, topics_of_sink

_DEAD_LETTERS, _REGEX = "errors.deadletterqueue.topic.name", "topics.regex"
_SPECIAL = frozenset(".^$*+?{}[]()|\\")
_REPEATS = frozenset("*?{")


@dataclass(frozen=True)
class SinkAccess:
    """A sink connector: who its clients are and to which cluster each speaks, as bootstrap servers.

    ``group`` is None where only its workers can resolve it. ``topics`` are those that it names; ``regex`` is the pattern
    that it has in their place, empty where it has none.
    """

    name: str
    principals: Mapping[Role, str]
    clusters: Mapping[Role, str]
    group: str | None
    topics: tuple[str, ...] = ()
    regex: str = ""
    dead_letters: str | None = None

    @property
    def roles(self) -> tuple[Role, ...]:
        """Its clients: without a topic for dead letters, a consumer only."""
        return CLIENTS if self.dead_letters else (Role.CONSUMER,)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """``regex``; None where it has none, or one that Python does not take."""
        try:
            return re.compile(self.regex) if self.regex else None
        except re.error:
            return None

    @property
    def prefix(self) -> str:
        """What the name of every topic that ``regex`` matches begins with, as far as that can be said."""
        return literal_prefix(self.regex)


def sink_access(connector: Connector, principals: Mapping[Role, str], clusters: Mapping[Role, str]) -> SinkAccess:
    """What the configuration of a sink says."""
    config = connector.config
    group = sink_group(connector.name, config)
    regex = config.get(_REGEX, "").strip()
    return SinkAccess(
        name=connector.name,
        principals=principals,
        clusters=clusters,
        group=None if "${" in group else group,
        topics=() if regex else tuple(sorted(topics_of_sink(config))),
        regex=regex,
        dead_letters=config.get(_DEAD_LETTERS, "").strip() or None,
    )


def unseen_of_sinks(sinks: Iterable[SinkAccess], clusters: Mapping[str, ClusterAcls]) -> Iterator[Unseen]:
    """What cannot be known from the configuration of a sink."""
    for sink in sinks:
        there = clusters.get(sink.clusters[Role.CONSUMER])
        if there is None or there.acls is None:
            continue
        if sink.group is None:
            why = "only its workers can resolve consumer.override.group.id"
            yield Unseen(f"the permissions of {sink.name} on its group", why, "Check Read on that group by hand.")
        if sink.regex and sink.pattern is None:
            why = f"{_REGEX} {sink.regex} is not a pattern that Python reads as Java does"
            yield Unseen(f"the permissions of {sink.name} on its topics", why, "Check Read on those topics by hand.")


def literal_prefix(regex: str) -> str:
    """The literal text at the beginning of a Java pattern: ``orders.`` of ``orders\\..*``; empty where it has none."""
    if "|" in regex:
        return ""
    found, rest = "", regex.removeprefix("^")
    while rest:
        size = 2 if rest[0] == "\\" and rest[1:2] in _SPECIAL else 1
        if (size == 1 and rest[0] in _SPECIAL) or rest[size : size + 1] in _REPEATS:
            break
        found, rest = found + rest[size - 1], rest[size:]
    return found
