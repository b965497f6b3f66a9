"""The source of the product, read and parsed once for all tests of it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path for top in ("cli", "ops", "migrations") for path in (ROOT / top).rglob("*.py"))


def name(path: Path) -> str:
    """Return the path as ``ops/core/plan.py``."""
    return path.relative_to(ROOT).as_posix()


def below(*tops: str) -> list[Path]:
    """Return the files of folders such as ``cli`` or ``ops/checks``."""
    return [path for path in FILES if name(path).startswith(tuple(f"{top}/" for top in tops))]


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file, each after the one that holds it."""
    return tuple(ast.walk(tree(path)))
