"""SqliteTables without a cluster."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlite_table
from connectctl.testing import check_exactly_once, run_source
from sqlite_table import SqliteTables


def change(config: dict[str, str], *statements: str) -> None:
    with closing(sqlite3.connect(config["database"])) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(sqlite_table, "PAUSE", 0.0)
    fixed = {
        "database": str(tmp_path / "shop ?.db"),
        "topic.prefix": "shop-",
        "batch.max.rows": "2",
    }
    fixed |= {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    change(
        fixed,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT, price REAL)",
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO orders VALUES (-3, 'back', 0.5), (1, 'tea', 2.5), (2, 'milk', NULL), (7, "
        "'tea', 2.5), (8, 'x', 1)",
        "INSERT INTO customers VALUES (1, 'Ann')",
    )
    return fixed


def rows(values: list[bytes | None]) -> list[Any]:
    return [json.loads(value or b"") for value in values]


@pytest.mark.parametrize("tasks", ["1", "2"])
def test_each_row_of_each_table_is_a_record_of_its_topic(
    config: dict[str, str], tasks: str
) -> None:
    run = run_source(SqliteTables, config | {"tasks.max": tasks})
    orders = rows(run.values("shop-orders"))
    assert [row["id"] for row in orders] == [-3, 1, 2, 7, 8]
    assert orders[2] == {"id": 2, "what": "milk", "price": None}
    assert rows(run.values("shop-customers")) == [{"id": 1, "name": "Ann"}]
    offsets = {partition["table"]: offset for partition, offset in run.offsets}
    assert offsets == {"orders": {"id": 8}, "customers": {"id": 1}}


def test_new_rows_are_read_behind_the_committed_one(config: dict[str, str]) -> None:
    first = run_source(SqliteTables, config)
    change(config, "INSERT INTO customers VALUES (2, 'Bob')")
    second = run_source(SqliteTables, config, offsets=first.offsets)
    assert rows(second.values()) == [{"id": 2, "name": "Bob"}]


def test_a_database_that_is_locked_is_asked_again(config: dict[str, str]) -> None:
    with closing(sqlite3.connect(config["database"], isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        task = SqliteTables.task
        patched = type("Quick", (task,), {"start": _with_a_short_timeout})
        kind = type(
            "Quick", (SqliteTables,), {"task": patched, "validate": lambda self, configs: {}}
        )
        run = run_source(kind, config | {"tables": "orders"}, polls=3)
    assert (run.records, run.occasions["poll"]) == ([], 3)


def _with_a_short_timeout(self: Any, configs: Any) -> None:
    SqliteTables.task.start(self, configs)
    self.database.execute("PRAGMA busy_timeout = 1")


def test_it_is_exactly_once_whatever_fails(config: dict[str, str]) -> None:
    check_exactly_once(lambda fail_at: run_source(SqliteTables, config, fail_at=fail_at))


def test_a_table_or_database_that_is_not_there_is_refused(config: dict[str, str]) -> None:
    assert (
        "has no table prders"
        in SqliteTables().validate(config | {"tables": "prders,orders"})["tables"][0]
    )
    assert (
        "is not a file"
        in SqliteTables().validate(config | {"database": "nowhere.db"})["database"][0]
    )
    assert list(SqliteTables().validate({})) == ["database", "topic.prefix"]
