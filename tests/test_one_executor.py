"""What changes a cluster goes through one executor: nothing else loops over steps, or writes how far a run is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXECUTOR = "ops/core/executor.py"
LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for top in ("cli", "ops", "migrations"):
        for path in (ROOT / top).rglob("*.py"):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def test_only_the_executor_loops_over_steps() -> None:
    found = {
        name
        for name, tree in _trees()
        for loop in ast.walk(tree)
        if isinstance(loop, LOOPS) and any(_calls(loop, "apply"))
    }
    assert found == set()
    executor = ast.parse((ROOT / EXECUTOR).read_text())
    assert len(list(_calls(executor, "apply"))) == 1


def test_only_the_executor_writes_how_far_a_run_is() -> None:
    assert {name for name, tree in _trees() if any(_calls(tree, "mark")) and "journal" in ast.unparse(tree)} == {
        EXECUTOR
    }
