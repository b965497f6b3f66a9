"""What tests share lies in modules that are no tests: a test module that another imports cannot be
moved or read alone.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [path for folder in ("tests", "docs/examples") for path in (ROOT / folder).rglob("*.py")]


def test_no_module_imports_a_test_module() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names))
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert found == [], (
        "move what it imports to tests/fakes or, with real brokers, to a module of tests/live"
    )
