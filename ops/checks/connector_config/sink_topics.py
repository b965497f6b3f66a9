"""Which topics a connector reads from Kafka, by its configuration. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MIRROR_CLASS = "MirrorSourceConnector"
_EXCLUDED = "mm2.*\\.internal,.*\\.replica,__.*"
"""What a mirror leaves out where ``topics.exclude`` says nothing (``DefaultTopicFilter``)."""


def of_sink(config: Mapping[str, str], topics: frozenset[str]) -> frozenset[str]:
    """Those of ``topics`` that a sink subscribes to."""
    pattern = config.get("topics.regex")
    if pattern:
        return frozenset(topic for topic in topics if _matches(pattern, topic))
    return topics & {part.strip() for part in config.get("topics", "").split(",")}


def of_mirror(config: Mapping[str, str], topics: frozenset[str]) -> frozenset[str]:
    """Those of ``topics`` that a mirror copies, by its filter's defaults (``DefaultTopicFilter``)."""
    wanted, left_out = config.get("topics", ".*"), config.get("topics.exclude", _EXCLUDED)
    return frozenset(topic for topic in topics if _any(wanted, topic) and not _any(left_out, topic, doubt=False))


def _any(patterns: str, topic: str, *, doubt: bool = True) -> bool:
    return any(_matches(pattern.strip(), topic, doubt) for pattern in patterns.split(",") if pattern.strip())


def _matches(pattern: str, topic: str, doubt: bool = True) -> bool:
    """Whether a Java pattern fits the whole name; ``doubt`` for one that Python does not take, so that it is read."""
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:
        return doubt


def is_mirror(config: Mapping[str, str]) -> bool:
    """Whether this is a MirrorSourceConnector: a source connector that reads from Kafka."""
    return config.get("connector.class", "").rsplit(".", 1)[-1] == _MIRROR_CLASS
