"""What becomes of source offsets when a configuration changes: by what is known of a class,
learned, or not known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.connect.partition_changes import outlook, partitions_of_others, shared
from connectctl.ops.connect.partition_fate import Fate
from connectctl.ops.connect.partition_rules import RULES, rules_of

FILE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}
MIRROR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "eu",
}
JDBC = {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing"}
MYSQL = {"connector.class": "io.debezium.connector.mysql.MySqlConnector"}
SQLSERVER = {
    "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
    "topic.prefix": "p",
}
OTHER = {
    "connector.class": "com.example.OtherSource",
    "account": "a1",
    "paths": "x, y",
    "page": "5",
}
VERIFIABLE = {"connector.class": "VerifiableSource"}
FRAME = {"connector.class": "DataFrameSource", "partition.columns": "shop", "offset.column": "id"}
COPY = {"cluster": "eu", "topic": "orders", "partition": 0}

CASES: list[
    tuple[
        dict[str, str], dict[str, str], dict[str, Any], dict[str, Any], Fate, dict[str, Any] | None
    ]
] = [
    (FILE | {"file": "a"}, {"topic": "t"}, {"filename": "a"}, {"position": 1}, Fate.KEPT, None),
    (
        FILE | {"file": "a"},
        {"file": "b"},
        {"filename": "a"},
        {"position": 1},
        Fate.ORPHANED,
        {"filename": "b"},
    ),
    (FILE | {"file": "b"}, {"file": "c"}, {"filename": "a"}, {"position": 1}, Fate.LEFT, None),
    (
        MIRROR,
        {"source.cluster.alias": "us"},
        COPY,
        {"offset": 1},
        Fate.ORPHANED,
        COPY | {"cluster": "us"},
    ),
    (
        MIRROR | {"topics": "orders"},
        {"topics": "orders,bills"},
        COPY,
        {"offset": 1},
        Fate.KEPT,
        None,
    ),
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
    (JDBC, {"mode": "timestamp"}, {"table": "b"}, {"incrementing": 1}, Fate.BEGUN, None),
    (
        JDBC,
        {"mode": "timestamp+incrementing"},
        {"table": "b"},
        {"incrementing": 1},
        Fate.BEGUN,
        None,
    ),
    (
        JDBC | {"mode": "timestamp"},
        {"mode": "timestamp+incrementing"},
        {"table": "b"},
        {"timestamp": 1},
        Fate.KEPT,
        None,
    ),
    (
        JDBC | {"mode": "bulk"},
        {"mode": "incrementing"},
        {"table": "b"},
        {"incrementing": 1},
        Fate.RESUMED,
        None,
    ),
    (JDBC, {"mode": "bulk"}, {"table": "b"}, {"incrementing": 1}, Fate.ORPHANED, None),
    (JDBC, {"query": "select 1"}, {"table": "b"}, {"incrementing": 1}, Fate.ORPHANED, None),
    (
        JDBC | {"query": "select 1"},
        {"query": "select 2"},
        {"query": "query"},
        {"incrementing": 1},
        Fate.KEPT,
        None,
    ),
    (
        MYSQL | {"topic.prefix": "p"},
        {"topic.prefix": "q"},
        {"server": "p"},
        {"pos": 4},
        Fate.ORPHANED,
        {"server": "q"},
    ),
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
    (
        SQLSERVER | {"database.names": "a"},
        {"database.names": "a,b"},
        {"server": "p"},
        {"lsn": "1"},
        Fate.ORPHANED,
        None,
    ),
    (FILE | {"file": "b"}, {"file": "a"}, {"filename": "a"}, {"position": 1}, Fate.RESUMED, None),
    (
        MIRROR | {"topics": "x"},
        {"topics": "x,y"},
        COPY | {"topic": "heartbeats"},
        {"offset": 1},
        Fate.KEPT,
        None,
    ),
    (MIRROR, {"topics": "\\p{L}+"}, COPY, {"offset": 1}, Fate.UNKNOWN, None),
    (MIRROR, {"topic.filter.class": "com.example.Filter"}, COPY, {"offset": 1}, Fate.UNKNOWN, None),
    (
        JDBC,
        {"table.include.list": "db.o.*"},
        {"protocol": "1", "table": "db.orders"},
        {"incrementing": 1},
        Fate.KEPT,
        None,
    ),
    (
        JDBC,
        {"table.include.list": "o.*"},
        {"protocol": "1", "table": "db.orders"},
        {"incrementing": 1},
        Fate.ORPHANED,
        None,
    ),
    (
        JDBC,
        {"table.include.list": "db.o.*"},
        {"table": "orders"},
        {"incrementing": 1},
        Fate.UNKNOWN,
        None,
    ),
    (
        JDBC,
        {"table.whitelist": "other.orders"},
        {"protocol": "1", "table": "db.orders"},
        {"incrementing": 1},
        Fate.ORPHANED,
        None,
    ),
    (
        VERIFIABLE | {"tasks.max": "2"},
        {"tasks.max": "1"},
        {"id": 1},
        {"seqno": 1},
        Fate.ORPHANED,
        None,
    ),
    (FRAME, {"partition.columns": "shop,day"}, {"shop": "a"}, {"id": 1}, Fate.ORPHANED, None),
    (FRAME, {"offset.column": "time"}, {"shop": "a"}, {"id": 1}, Fate.BEGUN, None),
    (FRAME, {"partition.columns": "shop,day"}, {"connectctl.stream": "rows"}, {}, Fate.KEPT, None),
    (OTHER | {"account": "a2"}, {"account": "a1"}, {"id": "a1"}, {"n": 1}, Fate.UNKNOWN, None),
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
    assert (
        outlook(FILE | {"file": "a"}, FILE | {"file": "b"}, [({"filename": "b"}, {})]).of(
            Fate.BEGUN
        )
        == []
    )


BEGUN: list[tuple[dict[str, str], dict[str, str], list[dict[str, Any]]]] = [
    (MIRROR | {"topics": "x,y"}, {"topics": "x,y,z"}, [{"cluster": "eu", "topic": "z"}]),
    (JDBC | {"table.whitelist": "x"}, {"table.whitelist": "x,y"}, [{"table": "y"}]),
    (
        JDBC | {"table.whitelist": "x"},
        {"table.whitelist": "", "query": "select 1"},
        [{"query": "query"}],
    ),
    (JDBC | {"table.whitelist": "x"}, {"table.whitelist": "x,y", "mode": "bulk"}, []),
    (
        SQLSERVER | {"database.names": "x"},
        {"database.names": "x,y"},
        [{"server": "p", "database": "y"}],
    ),
    (MYSQL | {"topic.prefix": "p"}, {"topic.prefix": "q"}, [{"server": "q"}]),
    (MYSQL | {"topic.prefix": "p"}, {"snapshot.mode": "never"}, []),
    (VERIFIABLE, {"tasks.max": "3"}, [{"id": 1}, {"id": 2}]),
]


@pytest.mark.parametrize(("old", "change", "begun"), BEGUN)
def test_what_a_change_adds_is_begun_anew(
    old: dict[str, str], change: dict[str, str], begun: list[dict[str, Any]]
) -> None:
    assert [each.partition for each in outlook(old, old | change, []).of(Fate.BEGUN)] == begun


def test_what_only_the_source_knows_may_begin_anew() -> None:
    assert outlook(MIRROR | {"topics": "x"}, MIRROR | {"topics": "x, b.*l"}, []).may_begin == (
        "topic b.*l",
    )
    assert outlook(JDBC | {"table.whitelist": "x"}, JDBC, []).may_begin == ("table all tables",)
    assert outlook(MIRROR, MIRROR | {"topics.exclude": "y"}, []).may_begin == ("topic .*",)
    assert outlook(MIRROR, MIRROR | {"tasks.max": "2"}, []).may_begin == ()


def test_another_source_behind_the_same_source_partitions_is_named() -> None:
    query = JDBC | {"query": "select 1"}
    assert outlook(
        query, query | {"query": "select 2"}, [({"query": "query"}, {"incrementing": 1})]
    ).inherited == ("query",)
    mysql = MYSQL | {"topic.prefix": "p", "database.hostname": "one"}
    assert outlook(mysql, mysql | {"database.hostname": "two"}, []).inherited == (
        "database.hostname",
    )


def test_values_that_a_property_gets_are_learned_to_be_begun_anew_and_older_ones_to_be_resumed() -> (
    None
):
    old = OTHER | {"paths": "left, right"}
    there: list[Any] = [
        ({"path": "left"}, {"n": 1}),
        ({"path": "right"}, {"n": 2}),
        ({"path": "former"}, {"n": 3}),
    ]
    told = outlook(old, old | {"paths": "left,former,new"}, there)
    fates = {each.partition["path"]: each.fate for each in told.fates}
    assert fates == {
        "left": Fate.KEPT,
        "right": Fate.ORPHANED,
        "former": Fate.RESUMED,
        "new": Fate.BEGUN,
    }
    assert told.source.startswith("learned")


def test_a_number_of_one_digit_or_a_truth_is_the_same_by_chance() -> None:
    old = OTHER | {"page": "1"}
    assert [each.fate for each in outlook(old, old | {"page": "2"}, [({"task": 1}, {})]).fates] == [
        Fate.UNKNOWN
    ]


def test_a_new_connector_of_an_old_name_resumes_from_what_it_reads_and_leaves_the_rest() -> None:
    there = [({"filename": "a"}, {"position": 1}), ({"filename": "b"}, {"position": 2})]
    told = outlook(None, FILE | {"file": "b"}, there)
    assert [(each.fate, each.carry_to) for each in told.fates] == [
        (Fate.LEFT, None),
        (Fate.RESUMED, None),
    ]
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
    assert shared(OTHER | {"page": "6"}, others) == []
    assert shared(OTHER | {"tasks.max": "2"}, others) == ["unknown"]
    url = {"connection.url": "jdbc:one"}
    assert shared(JDBC | url | {"table.whitelist": "x,y"}, {"all": JDBC | url, "else": JDBC}) == [
        "all"
    ]
    assert shared(VERIFIABLE, {"same": VERIFIABLE}) == []


def test_offsets_of_the_same_source_partitions_under_another_name_are_found() -> None:
    stored: dict[str, Any] = {
        "gone": [({"filename": "a"}, {"position": 1})],
        "else": [({"filename": "b"}, {})],
    }
    assert partitions_of_others(FILE | {"file": "a"}, stored) == {"gone": [{"filename": "a"}]}
    assert (
        partitions_of_others(
            JDBC | {"query": "select 1"}, {"gone": [({"query": "query"}, {"incrementing": 1})]}
        )
        == {}
    )
    assert partitions_of_others(OTHER, stored) == {}


def test_a_class_may_be_given_by_its_last_part() -> None:
    whole = rules_of("io.debezium.connector.mysql.MySqlConnector")
    assert whole
    assert rules_of("MySql") == rules_of("MySqlConnector") == whole
    assert rules_of("com.example.MySqlConnector") == ()


def test_every_rule_says_where_it_is_from() -> None:
    pages = [rule.source for rule in RULES if not rule.source.startswith("https://")]
    assert all(rule.keys for rule in RULES)
    assert all((Path(__file__).parents[3] / page).exists() for page in pages)
