"""The source partitions that a connector reads, by its configuration: facts about connector
classes, as data.

A worker returns the offset whose source partition equals the one that the task looks up. So a
property that is part of the source partition determines whether offsets are kept: the name of a
file, the alias of a cluster, a table, a prefix of topics. Each rule names the page or source file
of its connector that specifies this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectctl.ops.connect import mirror_topics
from connectctl.ops.connect.partition_fields import (
    Config,
    FieldRule,
    PartitionRule,
    SourcePartition,
    both,
    constantly,
    counted,
    entries,
    exactly,
    is_named,
    listed,
    matches,
    names_of,
)

_MIRROR = "org.apache.kafka.connect.mirror"
_MIRROR_DOCS = "https://kafka.apache.org/documentation/#georeplication"


def _mirror_topic() -> FieldRule:
    """Return the rule of Kafka's own topic filter; any other filter is unknown."""

    def reads(config: Config, value: Any) -> bool | None:
        return mirror_topics.replicates(config, str(value))

    def values(config: Config) -> tuple[str, ...]:
        return tuple(
            name for name in names_of(mirror_topics.included(config))[0] if reads(config, name)
        )

    def patterns(config: Config) -> tuple[str, ...]:
        return tuple(names_of(mirror_topics.included(config))[1])

    return FieldRule("topic", mirror_topics.PROPERTIES, reads, values, patterns)


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
        (
            exactly("sourceClusterAlias", "source.cluster.alias"),
            exactly("targetClusterAlias", "target.cluster.alias"),
        ),
        _MIRROR_DOCS,
    ),
    PartitionRule(
        ("org.apache.kafka.connect.tools.VerifiableSourceConnector",),
        (counted("id", "tasks.max"),),
        "https://github.com/apache/kafka/blob/trunk/connect/runtime/src/main/java/"
        "org/apache/kafka/connect/tools/VerifiableSourceTask.java",
        identifies_source=False,
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

# ------------------------------------------------------------------------------------- JDBC sources

_JDBC = (
    "io.confluent.connect.jdbc.JdbcSourceConnector",
    "io.aiven.connect.jdbc.JdbcSourceConnector",
)
_JDBC_DOCS = "https://docs.confluent.io/kafka-connectors/jdbc/current/source-connector/source_config_options.html"
_QUERY = ("query", "query.masked")
_COLUMNS = ("incrementing.column.name", "timestamp.column.name")


def _jdbc_table() -> FieldRule:
    """Return the rule of the table field.

    ``table.whitelist`` has names, with or without catalog and schema; ``table.include.list`` has
    regular expressions for full names. Source partitions have full names; older ones lack catalog
    and schema.
    """

    def reads(config: Config, value: Any) -> bool | None:
        if any(config.get(key, "").strip() for key in _QUERY):
            return False
        name = _plain(str(value))
        if include := entries(config.get("table.include.list", "")):
            found = both(
                matches(include, name), matches(entries(config.get("table.exclude.list", "")), name)
            )
            return None if found is False and "." not in name else found
        whitelist, blacklist = (
            entries(config.get(key, "")) for key in ("table.whitelist", "table.blacklist")
        )
        return (not whitelist or _named(whitelist, name)) and not _named(blacklist, name)

    def values(config: Config) -> tuple[str, ...]:
        names = names_of(entries(config.get("table.include.list", "")))[0] or entries(
            config.get("table.whitelist", "")
        )
        return tuple(_plain(name) for name in names if reads(config, name))

    def patterns(config: Config) -> tuple[str, ...]:
        if any(config.get(key, "").strip() for key in _QUERY):
            return ()
        include, whitelist = (
            entries(config.get(key, "")) for key in ("table.include.list", "table.whitelist")
        )
        return tuple(names_of(include)[1]) if include or whitelist else ("all tables",)

    keys = (
        "table.include.list",
        "table.exclude.list",
        "table.whitelist",
        "table.blacklist",
        *_QUERY,
    )
    return FieldRule(
        "table", keys, reads, values, patterns, same=lambda one, other: _named([one], str(other))
    )


def _named(names: Sequence[str], table: str) -> bool:
    """Return whether one of ``names`` is ``table``, where either may lack catalog and schema."""
    last = table.rpartition(".")[2]
    return any(
        name in (table, last) or name.rpartition(".")[2] == table for name in map(_plain, names)
    )


def _plain(name: str) -> str:
    return name.translate(str.maketrans("", "", '"`[]'))


def _jdbc_offset(config: Config) -> frozenset[str]:
    """Return the required offset field. With both columns it is the timestamp: without it all rows
    are read again.
    """
    mode = config.get("mode", "")
    return frozenset({"timestamp"} if mode.startswith("timestamp") else {"incrementing"} & {mode})


def _jdbc(field: FieldRule, **more: Any) -> PartitionRule:
    how: dict[str, Any] = {
        "offset_fields": _jdbc_offset,
        "offset_keys": ("mode",),
        "where": ("connection.url",),
    }
    return PartitionRule(_JDBC, (field,), _JDBC_DOCS, **how, **more)


_JDBC_RULES = (
    _jdbc(_jdbc_table(), whole=False, inherits=_COLUMNS),
    _jdbc(
        constantly("query", "query", *_QUERY),
        inherits=(*_QUERY, *_COLUMNS),
        identifies_source=False,
    ),
)

# ---------------------------------------------------------------------------- Debezium's connectors

_DEBEZIUM = "https://debezium.io/documentation/reference/stable/connectors"
_PREFIX = ("topic.prefix", "database.server.name")
_DATABASES = ("database.names", "database.dbname")


def _debezium(kind: str, class_: str, *fields: FieldRule, **more: Any) -> PartitionRule:
    where = (
        ("mongodb.connection.string",)
        if kind == "mongodb"
        else ("database.hostname", "database.port")
    )
    path = f"io.debezium.connector.{kind}.{class_}Connector"
    server_fields = fields or (exactly("server", *_PREFIX),)
    return PartitionRule((path,), server_fields, f"{_DEBEZIUM}/{kind}.html", where=where, **more)


def _alone() -> FieldRule:
    """Return the rule of SQL Server with one database before Debezium 2; this form is still read
    with one database.
    """

    def reads(config: Config, value: Any) -> bool:
        names = next((entries(config[key]) for key in _DATABASES if config.get(key)), ())
        return exactly("server", *_PREFIX).reads(config, value) is True and len(names) <= 1

    return FieldRule("server", (*_PREFIX, *_DATABASES), reads)


_DEBEZIUM_RULES = (
    _debezium("mysql", "MySql"),
    _debezium("mariadb", "MariaDb"),
    _debezium("postgresql", "Postgres", inherits=("database.dbname", "slot.name")),
    _debezium("oracle", "Oracle", inherits=("database.dbname", "database.pdb.name")),
    _debezium("db2", "Db2", inherits=("database.dbname",)),
    _debezium(
        "informix", "Informix", exactly("databaseName", *_PREFIX), inherits=("database.dbname",)
    ),
    _debezium("informix", "Informix", older=True),
    _debezium(
        "sqlserver", "SqlServer", exactly("server", *_PREFIX), listed("database", *_DATABASES)
    ),
    _debezium("sqlserver", "SqlServer", _alone(), older=True),
    _debezium("mongodb", "MongoDb", exactly("server_id", "topic.prefix", "mongodb.name")),
)

RULES = (*_KAFKA, *_OWN, *_JDBC_RULES, *_DEBEZIUM_RULES)
"""All rules. The fate of a class without a rule is learned from its stored offsets
(``partition_learning``).
"""


def rules_of(path: str) -> tuple[PartitionRule, ...]:
    """Return the rules of a connector class, by its full name or its last part, as in
    ``connector.class``.
    """
    return tuple(rule for rule in RULES if is_named(path, rule.classes))
