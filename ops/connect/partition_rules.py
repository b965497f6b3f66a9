"""Which source partitions a connector reads, by its configuration: what is known of connector classes, as data.

A worker gives a task the offset whose source partition the task asks for, key for key. So a property that is part of the
source partition decides whether offsets are kept: a file's name, an alias of a cluster, a table, a prefix of topics. Each
rule names where its connector's documentation or source says so.
"""

from __future__ import annotations

from typing import Any

from connectctl.ops.connect.partition_fields import (
    Config,
    FieldRule,
    PartitionRule,
    SourcePartition,
    both,
    counted,
    entries,
    exactly,
    matches,
    names_of,
)
from connectctl.ops.connect.partition_rules_of_databases import DEBEZIUM_RULES, JDBC_RULES

_MIRROR = "org.apache.kafka.connect.mirror"
_MIRROR_DOCS = "https://kafka.apache.org/documentation/#georeplication"
_MIRROR_TOPICS = (("topics", ".*"), ("topics.exclude", r".*[\-\.]internal, .*\.replica, __.*"))
_BEATS = "heartbeats.replication.enabled"


def _mirror_topic() -> FieldRule:
    """By Kafka's own filter; another one decides as it likes. Heartbeats of other clusters are replicated besides."""

    def lists(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
        (include, exclude) = (entries(config.get(key, default)) for key, default in _MIRROR_TOPICS)
        return include, exclude

    def reads(config: Config, value: Any) -> bool | None:
        include, exclude = lists(config)
        beats = str(value) == "heartbeats" or str(value).endswith(".heartbeats")
        if beats and config.get(_BEATS, "true").lower() != "false":
            return True
        if not config.get("topic.filter.class", "DefaultTopicFilter").endswith("DefaultTopicFilter"):
            return None
        return both(matches(include, str(value)), matches(exclude, str(value)))

    def values(config: Config) -> tuple[str, ...]:
        return tuple(each for each in names_of(lists(config)[0])[0] if reads(config, each))

    def patterns(config: Config) -> tuple[str, ...]:
        return tuple(names_of(lists(config)[0])[1])

    return FieldRule("topic", ("topics", "topics.exclude", _BEATS, "topic.filter.class"), reads, values, patterns)


_KAFKA = (
    PartitionRule(
        ("org.apache.kafka.connect.file.FileStreamSourceConnector",),
        (exactly("filename", "file"),),
        "https://kafka.apache.org/documentation/#connect_running",
    ),
    PartitionRule(
        (f"{_MIRROR}.MirrorSourceConnector", "TopicCopy"),
        (exactly("cluster", "source.cluster.alias"), _mirror_topic()),
        _MIRROR_DOCS,
        whole=False,
        inherits=("source.cluster.bootstrap.servers",),
    ),
    PartitionRule(
        (f"{_MIRROR}.MirrorHeartbeatConnector",),
        (exactly("sourceClusterAlias", "source.cluster.alias"), exactly("targetClusterAlias", "target.cluster.alias")),
        _MIRROR_DOCS,
    ),
    PartitionRule(
        ("org.apache.kafka.connect.tools.VerifiableSourceConnector",),
        (counted("id", "tasks.max"),),
        "https://github.com/apache/kafka/blob/trunk/connect/runtime/src/main/java/"
        "org/apache/kafka/connect/tools/VerifiableSourceTask.java",
        telling=False,
    ),
)


def _columns(config: Config, partition: SourcePartition) -> str | None:
    if set(partition) == set(entries(config.get("partition.columns", ""))):
        return None
    return f"its fields are not partition.columns {config.get('partition.columns', '')}"


_OWN = (
    PartitionRule(
        ("DataFrameSource",),
        (),
        "docs/how-to/dataframes.md",
        form=_columns,
        offset_fields=lambda config: frozenset((config.get("offset.column", "").strip(),)),
        offset_keys=("partition.columns", "offset.column"),
        where=("load",),
        inherits=("query",),
    ),
)

RULES = (*_KAFKA, *_OWN, *JDBC_RULES, *DEBEZIUM_RULES)
"""What is known. A class that is not here is learned from the offsets that it has (``partition_learning``)."""


def rules_of(path: str) -> tuple[PartitionRule, ...]:
    """The rules of a connector class, by its whole name or its last part, as ``connector.class`` may have it."""
    simple = path.rpartition(".")[2]
    short = {simple, f"{simple}Connector"} if "." not in path else set()
    return tuple(rule for rule in RULES for each in rule.classes if each == path or each.rpartition(".")[2] in short)
