"""The commands in the texts of the code, which connectctl prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sources import FILES, name, nodes
from sources import text as source

HOLE = "X1"
"""What stands for a value that a text is formatted with."""
_COMMAND = re.compile(r"connectctl ([a-z][^\n`;|()]*)")
_NAMED = re.compile(r"connectctl(?![.\w])")
"""The name of connectctl, which is that of a package before a dot."""
_END = re.compile(r"[.,:?!'\"]+$")
PROSE = frozenset(
    [
        "by",
        "changes",
        "is",
        "itself",
        "lacks",
        "made",
        "needs",
        "on",
        "prints",
        "process",
        "that",
        "there",
    ]
)
"""Words after the name of connectctl in sentences about it."""
OF_A_RUN = frozenset(["ended", "has", "is", "needs"])
"""The same after ``connectctl run``."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module that is printed: no docstrings, f-strings with a word for each
    value.
    """
    inner = {
        id(part) for node in nodes(path) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    docs = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    left_out = inner | docs
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else HOLE for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in left_out
        ):
            yield node.lineno, node.value


@cache
def promised() -> list[tuple[str, list[str]]]:
    """Each command in a text with the place of the text: its words up to the end of the
    sentence.
    """
    found = []
    for path in FILES:
        if not _NAMED.search(source(path)):
            continue  # to parse all takes seconds
        for line, text in texts(path):
            for match in _COMMAND.finditer(text):
                words = re.split(r"(?<=[.,:?!])\s|\s{2,}|, ", match.group(1))[0].split()
                found.append((f"{name(path)}:{line}", [_END.sub("", word) for word in words]))
    return found


def is_prose(words: list[str]) -> bool:
    return words[0] in PROSE or (words[0] == "run" and bool({*words[1:2]} & OF_A_RUN))
