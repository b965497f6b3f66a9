"""The consumer group of a sink connector's tasks, by its configuration (``SinkUtils.consumerGroupId``)."""

from __future__ import annotations

from collections.abc import Mapping

from connectctl.ops.connect.connector_class import has_reference

_GROUP = "consumer.override.group.id"
_BOOTSTRAP = "consumer.override.bootstrap.servers"


def sink_group(connector: str, config: Mapping[str, str]) -> str:
    """``connect-<name>``, or what ``consumer.override.group.id`` says."""
    return config.get(_GROUP) or f"connect-{connector}"


def topics_of_sink(config: Mapping[str, str]) -> frozenset[str]:
    """The topics that ``topics`` names; which ones ``topics.regex`` takes is not known from the configuration."""
    return frozenset(name for part in config.get("topics", "").split(",") if (name := part.strip()))


def unknown_group(connector: str, config: Mapping[str, str]) -> str | None:
    """Why the group is not known to be on the workers' own Kafka cluster under a known name; None where it is."""
    if has_reference(config.get(_GROUP, "")):
        return f"{_GROUP} of {connector} is {config[_GROUP]}, which only its workers can resolve"
    if elsewhere := config.get(_BOOTSTRAP):
        return f"the consumers of {connector} are on another Kafka cluster ({_BOOTSTRAP}={elsewhere})"
    return None
