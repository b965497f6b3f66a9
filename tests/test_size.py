"""The size of the product in statements, by package: dense code has fewer lines and is no smaller."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 56_300
"""Statements of Python in ``cli``, ``ops`` and ``migrations``. A change that removes code lowers it."""


def statements_by_package() -> Counter[str]:
    """Statements of each package, down to three folders."""
    found = Counter[str]()
    for top in ("cli", "ops", "migrations"):
        for path in (ROOT / top).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            package = "/".join(path.relative_to(ROOT).parts[:-1][:3])
            found[package] += sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
    return found


def test_the_product_has_at_most_the_agreed_number_of_statements() -> None:
    found = statements_by_package()
    table = "\n".join(f"{count:>7,}  {package}" for package, count in found.most_common())
    print(f"\n{table}\n{found.total():>7,}  in all")
    assert found.total() <= MOST
