"""The table of conformance names each of Kafka's tests, and no test of ours that is not there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/conformance.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", TEXT)))
KAFKAS = {
    "ExactlyOnceSourceIntegrationTest": 9,
    "ExactlyOnceWorkerSourceTaskTest": 28,
    "WorkerTransactionContextTest": 9,
}


@cache
def written_in(path: str) -> frozenset[str]:
    """The tests in a file, those of a class as ``Class::test``."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}::{each.name}"
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            }
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def test_every_test_that_the_table_names_is_there() -> None:
    parts = [named.partition("::") for named in NAMED]
    assert [f"{path}::{name}" for path, _, name in parts if name not in written_in(path)] == []


@pytest.mark.parametrize("section", KAFKAS)
def test_every_method_of_kafkas_has_its_line(section: str) -> None:
    rows = TEXT.partition(f"## `{section}`\n")[2].partition("\n## ")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("|")]
    methods = re.findall(r"`((?:test|should)[A-Z]\w+)`", "".join(cells))
    assert len(methods) == len(set(methods)) == KAFKAS[section]


def test_every_line_of_a_table_names_a_test() -> None:
    rows = [
        line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| ---")
    ]
    assert all("`tests/" in row for row in rows if not row.endswith("| test here |"))
