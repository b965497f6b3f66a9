"""The topics that a MirrorSourceConnector replicates, by its configuration
(``DefaultTopicFilter``). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from connectctl.ops.connect.partition_fields import both, entries, matches

PROPERTIES = ("topics", "topics.exclude", "heartbeats.replication.enabled", "topic.filter.class")
INCLUDED = ".*"
EXCLUDED_BEFORE_4 = r".*[\-\.]internal, .*\.replica, __.*"
"""The default of ``topics.exclude`` before Kafka 4.0, and that of TopicCopy."""
EXCLUDED = r"mm2.*\.internal, .*\.replica, __.*"
"""The default of ``topics.exclude`` from Kafka 4.0 on."""


def replicates(config: Mapping[str, str], topic: str) -> bool | None:
    """Return whether a connector with ``config`` replicates ``topic``; None if that is unknown.

    It is unknown with a topic filter of another class, with a pattern that only Java supports, and
    without ``topics.exclude`` for a topic that only one of the releases' defaults excludes.
    Heartbeats topics of other clusters are replicated as well.
    """
    beats = topic == "heartbeats" or topic.endswith(".heartbeats")
    if beats and config.get("heartbeats.replication.enabled", "true").lower() != "false":
        return True
    if not config.get("topic.filter.class", "DefaultTopicFilter").endswith("DefaultTopicFilter"):
        return None
    return both(matches(included(config), topic), _is_excluded(config, topic))


def included(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names and patterns of ``topics``."""
    return entries(config.get("topics", INCLUDED))


def _is_excluded(config: Mapping[str, str], topic: str) -> bool | None:
    defaults = [EXCLUDED_BEFORE_4]
    if not config.get("connector.class", "").endswith("TopicCopy"):
        defaults.append(EXCLUDED)
    texts = [config["topics.exclude"]] if "topics.exclude" in config else defaults
    found = {matches(entries(text), topic) for text in texts}
    return found.pop() if len(found) == 1 else None
