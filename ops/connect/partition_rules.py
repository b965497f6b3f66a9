"""Which source partitions a connector reads, by its configuration: what is known of connector classes, as data.

A worker gives a task the offset whose source partition the task asks for, key for key. So a property that is part of the
source partition decides whether offsets are kept: a file's name, an alias of a cluster, a table, a prefix of topics. Each
rule names where its connector's documentation or source says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, str]
SourcePartition = Mapping[str, Any]


@dataclass(frozen=True)
class FieldRule:
    """How one field of a source partition follows from the configuration. ``keys`` are the properties, newest name first;
    ``reads`` says whether a task of ``config`` asks for ``value``; ``value`` gives the only value, None where there may be
    several or the configuration has none.
    """

    name: str
    keys: tuple[str, ...]
    reads: Callable[[Config, Any], bool]
    value: Callable[[Config], str | None] = lambda config: None


@dataclass(frozen=True)
class PartitionRule:
    """Source partitions of connector ``classes``. ``only`` chooses among partitions of several forms by their fields'
    names; ``offset_fields`` are fields of the source offset of which a task of a configuration needs at least one, None
    where any will do; ``source`` is where that is written.
    """

    classes: tuple[str, ...]
    fields: tuple[FieldRule, ...]
    source: str
    only: frozenset[str] | None = None
    offset_fields: Callable[[Config], frozenset[str] | None] = lambda config: None
    offset_keys: tuple[str, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The properties that decide."""
        return frozenset(key for each in self.fields for key in each.keys) | frozenset(self.offset_keys)


def exactly(name: str, *keys: str) -> FieldRule:
    """The field is the value of the first of ``keys`` that is set."""

    def value(config: Config) -> str | None:
        return next((config[key].strip() for key in keys if config.get(key, "").strip()), None)

    return FieldRule(name, keys, lambda config, given: value(config) == given, value)


def constantly(name: str, constant: str, *keys: str) -> FieldRule:
    """The field is ``constant`` wherever one of ``keys`` is set."""

    def value(config: Config) -> str | None:
        return constant if any(config.get(key, "").strip() for key in keys) else None

    return FieldRule(name, keys, lambda config, given: value(config) == given, value)


def entries(text: str) -> list[str]:
    """A list of a configuration, which commas separate."""
    return [each.strip() for each in text.split(",") if each.strip()]


def _matching(name: str, include: str, exclude: str, otherwise: tuple[str, str]) -> FieldRule:
    def reads(config: Config, value: Any) -> bool:
        wanted, not_wanted = (
            "|".join(f"(?:{each})" for each in entries(config.get(key, default)))
            for key, default in zip((include, exclude), otherwise, strict=True)
        )
        found = re.fullmatch(wanted, str(value)) is not None
        return found and not (not_wanted and re.fullmatch(not_wanted, str(value)))

    return FieldRule(name, (include, exclude), reads)


_TABLES = (("table.whitelist", "table.include.list"), ("table.blacklist", "table.exclude.list"))


def _jdbc_table() -> FieldRule:
    """Tables are listed by name, or by catalog and schema, too; partitions have as much as the database tells."""
    (included, excluded) = _TABLES

    def named(config: Config, keys: Sequence[str], value: str) -> bool | None:
        listed = [each for key in keys for each in entries(config.get(key, ""))]
        parts = value.replace('"', "").replace("`", "").split(".")
        return (
            any(parts[-len(own) :] == own or own[-len(parts) :] == parts for own in _split(listed)) if listed else None
        )

    def reads(config: Config, value: Any) -> bool:
        if config.get("query", "").strip():
            return False
        return named(config, included, str(value)) is not False and not named(config, excluded, str(value))

    return FieldRule("table", (*included, *excluded, "query"), reads)


def _split(names: Sequence[str]) -> list[list[str]]:
    return [name.replace('"', "").replace("`", "").split(".") for name in names]


def _jdbc_offset(config: Config) -> frozenset[str] | None:
    modes = config.get("mode", "").split("+")
    return frozenset(mode for mode in modes if mode in ("incrementing", "timestamp"))


def _database() -> FieldRule:
    """Of SQL Server: each database is a source partition."""

    def reads(config: Config, value: Any) -> bool:
        names = entries(config.get("database.names", "") or config.get("database.dbname", ""))
        return not names or str(value) in names

    return FieldRule("database", ("database.names", "database.dbname"), reads)


_JDBC = ("io.confluent.connect.jdbc.JdbcSourceConnector", "io.aiven.connect.jdbc.JdbcSourceConnector")
_JDBC_DOCS = "https://docs.confluent.io/kafka-connectors/jdbc/current/source-connector/source_config_options.html"
_PREFIX = exactly("server", "topic.prefix", "database.server.name")
_DEBEZIUM = "https://debezium.io/documentation/reference/stable/connectors"


def _debezium(kind: str, *fields: FieldRule) -> PartitionRule:
    name = {"mysql": "MySql", "mariadb": "MariaDb", "postgresql": "Postgres", "sqlserver": "SqlServer"}
    simple = name.get(kind) or {"oracle": "Oracle", "db2": "Db2", "mongodb": "MongoDb", "informix": "Informix"}[kind]
    path = f"io.debezium.connector.{kind}.{simple}Connector"
    return PartitionRule((path,), fields or (_PREFIX,), f"{_DEBEZIUM}/{kind}.html")


def _mirror_topic() -> FieldRule:
    return _matching("topic", "topics", "topics.exclude", (".*", r".*[\-\.]internal, .*\.replica, __.*"))


_MIRROR = "org.apache.kafka.connect.mirror"
_MIRROR_DOCS = "https://kafka.apache.org/documentation/#georeplication"
RULES = (
    PartitionRule(
        ("org.apache.kafka.connect.file.FileStreamSourceConnector",),
        (exactly("filename", "file"),),
        "https://kafka.apache.org/documentation/#connect_running",
    ),
    PartitionRule(
        (f"{_MIRROR}.MirrorSourceConnector", "TopicCopy"),
        (exactly("cluster", "source.cluster.alias"), _mirror_topic()),
        _MIRROR_DOCS,
    ),
    PartitionRule(
        (f"{_MIRROR}.MirrorHeartbeatConnector",),
        (exactly("sourceClusterAlias", "source.cluster.alias"), exactly("targetClusterAlias", "target.cluster.alias")),
        _MIRROR_DOCS,
    ),
    PartitionRule(
        _JDBC,
        (_jdbc_table(),),
        _JDBC_DOCS,
        only=frozenset({"table"}),
        offset_fields=_jdbc_offset,
        offset_keys=("mode",),
    ),
    PartitionRule(
        _JDBC,
        (constantly("query", "query", "query"),),
        _JDBC_DOCS,
        only=frozenset({"query"}),
        offset_fields=_jdbc_offset,
        offset_keys=("mode",),
    ),
    *map(_debezium, ("mysql", "mariadb", "postgresql", "oracle", "db2", "informix")),
    _debezium("sqlserver", _PREFIX, _database()),
    _debezium("mongodb", exactly("server_id", "topic.prefix", "mongodb.name")),
)
"""What is known. A class that is not here is learned from the offsets that it has (``partition_changes``)."""


def rules_of(path: str, known: Sequence[PartitionRule] = RULES) -> tuple[PartitionRule, ...]:
    """The rules of a connector class, by its whole name or its last part, as ``connector.class`` may have it."""
    simple = path.rpartition(".")[2]
    short = {simple, f"{simple}Connector"} if "." not in path else set()
    return tuple(rule for rule in known for each in rule.classes if each == path or each.rpartition(".")[2] in short)
