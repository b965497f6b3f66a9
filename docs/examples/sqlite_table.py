"""A source connector that reads tables of an SQLite database: each inserted row becomes a record.

A table is a source partition, and its offset is the value of a column that only grows, such as an
``INTEGER PRIMARY KEY``. Later changes and deletions of rows are not read, as with
``mode=incrementing`` of the JDBC connector.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from connectctl.source import (
    ExactlyOnceSupport,
    RetriableError,
    Setting,
    SourceConnector,
    SourceRecord,
    SourceTask,
)

PAUSE = 0.5
"""Seconds between two polls without rows."""


class SqliteTableTask(SourceTask):
    """Reads its share of the tables in turn, some rows per poll. One thread calls ``start`` and
    ``poll``, so one connection is sufficient.
    """

    def start(self, configs: Mapping[str, str]) -> None:
        """Open the database, and start after the committed rows."""
        self.configs = configs
        self.column = configs.get("incrementing.column", "id")
        self.tables = configs["task.tables"].split(",")
        self.last: dict[str, Any] = {}
        for table in self.tables:
            committed = self.context.offsets.offset({"table": table})
            self.last[table] = committed[self.column] if committed else None
        self.database = sqlite3.connect(
            f"{Path(configs['database']).absolute().as_uri()}?mode=ro", uri=True
        )
        self.database.row_factory = sqlite3.Row
        self.turn = 0

    def poll(self) -> list[SourceRecord] | None:
        """Return rows of the next table that has some, or None. Raises ``RetriableError`` while the
        file is locked.
        """
        for _ in self.tables:
            table = self.tables[self.turn % len(self.tables)]
            self.turn += 1
            if rows := self._rows(table):
                self.last[table] = rows[-1][self.column]
                return [self._record(table, row) for row in rows]
        time.sleep(PAUSE)
        return None

    def stop(self) -> None:
        """Close the database, if it was opened."""
        if hasattr(self, "database"):
            self.database.close()

    def _rows(self, table: str) -> list[sqlite3.Row]:
        limit, last = int(self.configs.get("batch.max.rows", "500")), self.last[table]
        where = "" if last is None else f"WHERE {_quoted(self.column)} > :last"
        query = (
            f"SELECT * FROM {_quoted(table)} {where} ORDER BY {_quoted(self.column)} LIMIT {limit}"
        )
        try:
            return self.database.execute(query, {"last": last}).fetchall()
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            raise RetriableError(f"{self.configs['database']}: {e}") from e

    def _record(self, table: str, row: sqlite3.Row) -> SourceRecord:
        topic, at = self.configs["topic.prefix"] + table, row[self.column]
        return SourceRecord({"table": table}, {self.column: at}, topic, dict(row), key=str(at))


class SqliteTables(SourceConnector):
    """Distributes the tables among the tasks."""

    task = SqliteTableTask
    settings = (
        Setting("database", "the file of the database", required=True),
        Setting("tables", "names of tables, separated by commas; all of them where it is missing"),
        Setting("topic.prefix", "begins the names of topics; the table follows", required=True),
        Setting("incrementing.column", "the column that only grows", default="id"),
        Setting("batch.max.rows", "rows in a poll, and so in a transaction", default="500"),
    )

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        """Also check that the database exists, with these tables."""
        problems = super().validate(configs)
        if not problems:
            if not Path(configs["database"]).is_file():
                problems["database"] = [f"{configs['database']} is not a file"]
            elif missing := sorted(set(_names(configs)) - set(_tables(configs["database"]))):
                problems["tables"] = [f"{configs['database']} has no table {', '.join(missing)}"]
        return problems

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return at most one task per table."""
        names = sorted(set(_names(self.configs) or _tables(self.configs["database"])))
        shares = [names[n::max_tasks] for n in range(min(max_tasks, len(names)))]
        return [{**self.configs, "task.tables": ",".join(share)} for share in shares]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: rows after a committed id can be read again, in the same order."""
        return ExactlyOnceSupport.SUPPORTED


def _names(configs: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in configs.get("tables", "").split(",") if name.strip()]


def _tables(file: str) -> list[str]:
    with closing(
        sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True)
    ) as database:
        found = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        return [name for (name,) in found]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
