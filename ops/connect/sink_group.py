"""The consumer group of a sink connector's tasks, and its topics, by its configuration
(``SinkUtils.consumerGroupId``).
"""

from __future__ import annotations

from collections.abc import Mapping

from connectctl.ops.connect.connector_class import has_reference

DEAD_LETTERS = "errors.deadletterqueue.topic.name"
_GROUP = "consumer.override.group.id"
_BOOTSTRAP = "consumer.override.bootstrap.servers"


def sink_group(connector: str, config: Mapping[str, str]) -> str:
    """Return ``consumer.override.group.id`` if it is set, else ``connect-<name>``."""
    return config.get(_GROUP) or f"connect-{connector}"


def topics_of_sink(config: Mapping[str, str]) -> frozenset[str]:
    """Return the topics in ``topics``; the configuration does not determine those that
    ``topics.regex`` matches.
    """
    return frozenset(name for part in config.get("topics", "").split(",") if (name := part.strip()))


def dead_letters(config: Mapping[str, str]) -> str | None:
    """Return the topic of the dead letter queue, None without one."""
    return config.get(DEAD_LETTERS, "").strip() or None


def unknown_group(connector: str, config: Mapping[str, str]) -> str | None:
    """Return why the group's name or cluster is unknown; None for a known name on the workers'
    cluster.
    """
    if has_reference(config.get(_GROUP, "")):
        return f"{_GROUP} of {connector} is {config[_GROUP]}, which only its workers can resolve"
    if elsewhere := config.get(_BOOTSTRAP):
        return (
            f"the consumers of {connector} are on another Kafka cluster ({_BOOTSTRAP}={elsewhere})"
        )
    return None
