"""What becomes of source offsets when a configuration changes: by what is known of a class, learned, or not known."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.connect.partition_changes import Fate, outlook, shared
from connectctl.ops.connect.partition_rules import RULES, rules_of

FILE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}
MIRROR = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "source.cluster.alias": "eu"}
JDBC = {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing"}
MYSQL = {"connector.class": "io.debezium.connector.mysql.MySqlConnector"}
SQLSERVER = {"connector.class": "io.debezium.connector.sqlserver.SqlServerConnector", "topic.prefix": "p"}
OTHER = {"connector.class": "com.example.OtherSource", "account": "a1", "paths": "x, y", "page": "5"}
COPY = {"cluster": "eu", "topic": "orders", "partition": 0}

CASES: list[tuple[dict[str, str], dict[str, str], dict[str, Any], dict[str, Any], Fate, dict[str, Any] | None]] = [
    (FILE | {"file": "a"}, {"topic": "t"}, {"filename": "a"}, {"position": 1}, Fate.KEPT, None),
    (FILE | {"file": "a"}, {"file": "b"}, {"filename": "a"}, {"position": 1}, Fate.ORPHANED, {"filename": "b"}),
    (FILE | {"file": "b"}, {"file": "c"}, {"filename": "a"}, {"position": 1}, Fate.LEFT, None),
    (MIRROR, {"source.cluster.alias": "us"}, COPY, {"offset": 1}, Fate.ORPHANED, COPY | {"cluster": "us"}),
    (MIRROR | {"topics": "orders"}, {"topics": "orders,bills"}, COPY, {"offset": 1}, Fate.KEPT, None),
    (MIRROR | {"topics": "orders"}, {"topics": "bil.*"}, COPY, {"offset": 1}, Fate.ORPHANED, None),
    (MIRROR, {"topics.exclude": "ord.*"}, COPY, {"offset": 1}, Fate.ORPHANED, None),
    (
        JDBC | {"table.whitelist": "a,b"},
        {"table.whitelist": "a"},
        {"table": "b"},
        {"incrementing": 1},
        Fate.ORPHANED,
        None,
    ),
    (
        JDBC | {"table.whitelist": "a"},
        {"table.whitelist": "a,b"},
        {"protocol": "1", "table": "db.a"},
        {"incrementing": 1},
        Fate.KEPT,
        None,
    ),
    (JDBC, {"mode": "timestamp"}, {"table": "b"}, {"incrementing": 1}, Fate.ORPHANED, None),
    (JDBC, {"mode": "timestamp+incrementing"}, {"table": "b"}, {"incrementing": 1}, Fate.KEPT, None),
    (JDBC, {"mode": "bulk"}, {"table": "b"}, {"incrementing": 1}, Fate.ORPHANED, None),
    (JDBC, {"query": "select 1"}, {"table": "b"}, {"incrementing": 1}, Fate.ORPHANED, None),
    (JDBC | {"query": "select 1"}, {"query": "select 2"}, {"query": "query"}, {"incrementing": 1}, Fate.KEPT, None),
    (MYSQL | {"topic.prefix": "p"}, {"topic.prefix": "q"}, {"server": "p"}, {"pos": 4}, Fate.ORPHANED, {"server": "q"}),
    (
        MYSQL | {"database.server.name": "p"},
        {"database.server.name": "", "topic.prefix": "p"},
        {"server": "p"},
        {"pos": 4},
        Fate.KEPT,
        None,
    ),
    (
        SQLSERVER | {"database.names": "a,b"},
        {"database.names": "b"},
        {"server": "p", "database": "a"},
        {"lsn": "1"},
        Fate.ORPHANED,
        None,
    ),
    (MYSQL | {"topic.prefix": "p"}, {}, {"another": "form"}, {"pos": 4}, Fate.UNKNOWN, None),
    (OTHER, {"tasks.max": "4", "transforms": "t"}, {"id": "a1"}, {"n": 1}, Fate.KEPT, None),
    (OTHER, {"account": "a2"}, {"id": "a1"}, {"n": 1}, Fate.ORPHANED, {"id": "a2"}),
    (OTHER, {"paths": "y"}, {"path": "x"}, {"n": 1}, Fate.ORPHANED, {"path": "y"}),
    (OTHER, {"paths": "x,z"}, {"path": "x"}, {"n": 1}, Fate.KEPT, None),
    (OTHER, {"page": "6"}, {"id": "a1"}, {"n": 1}, Fate.UNKNOWN, None),
    (OTHER | {"tenant": "a1"}, {"tenant": "a2"}, {"id": "a1"}, {"n": 1}, Fate.UNKNOWN, None),
    (OTHER, {"connector.class": "com.example.Another"}, {"id": "a1"}, {"n": 1}, Fate.UNKNOWN, None),
]


@pytest.mark.parametrize(("old", "change", "partition", "offset", "fate", "carry_to"), CASES)
def test_a_change_does_to_an_offset_what_tasks_will_make_of_it(
    old: dict[str, str],
    change: dict[str, str],
    partition: dict[str, Any],
    offset: dict[str, Any],
    fate: Fate,
    carry_to: dict[str, Any] | None,
) -> None:
    told = outlook(old, old | change, [(partition, offset)]).fates[0]
    assert (told.partition, told.fate, told.carry_to) == (partition, fate, carry_to)
    assert told.why


def test_what_is_begun_anew_is_named_where_it_is_known_whole() -> None:
    told = outlook(FILE | {"file": "a"}, FILE | {"file": "b"}, [])
    assert [(each.partition, each.fate) for each in told.fates] == [({"filename": "b"}, Fate.BEGUN)]
    assert outlook(FILE | {"file": "a"}, FILE | {"file": "b"}, [({"filename": "b"}, {})]).of(Fate.BEGUN) == []


def test_a_new_connector_of_an_old_name_resumes_from_what_it_reads_and_leaves_the_rest() -> None:
    there = [({"filename": "a"}, {"position": 1}), ({"filename": "b"}, {"position": 2})]
    told = outlook(None, FILE | {"file": "b"}, there)
    assert [(each.fate, each.carry_to) for each in told.fates] == [(Fate.LEFT, None), (Fate.KEPT, None)]
    assert {each.fate for each in outlook(None, OTHER, there).fates} == {Fate.UNKNOWN}


def test_two_connectors_that_would_read_the_same_are_named() -> None:
    others = {
        "same": FILE | {"file": "a"},
        "else": FILE | {"file": "b"},
        "mirror": MIRROR | {"topics": "x"},
        "unknown": OTHER,
    }
    assert shared(FILE | {"file": "a"}, others) == ["same"]
    assert shared(MIRROR | {"topics": "x"}, others) == ["mirror"]
    assert shared(MIRROR | {"topics": "y"}, others) == []
    assert shared(OTHER, others) == []


def test_a_class_may_be_given_by_its_last_part() -> None:
    whole = rules_of("io.debezium.connector.mysql.MySqlConnector")
    assert whole
    assert rules_of("MySql") == rules_of("MySqlConnector") == whole
    assert rules_of("com.example.MySqlConnector") == ()


def test_every_rule_says_where_it_is_from() -> None:
    assert all(rule.source.startswith("https://") and rule.keys for rule in RULES)
