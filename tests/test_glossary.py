"""Names and messages use the words of docs/glossary.md: a list of words that are not used, with
those to use instead.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sources import FILES, ROOT, nodes

WORDS = {
    "wish": "request, changes, target",
    "wished": "requested",
    "says": "description",
    "needless": "unchanged, unused",
    "takes": "parameters, includes, accepts",
    "ground": "baseline",
    "told": "reported, configured",
    "judged": "health, evaluated",
    "judge": "evaluate",
    "hands": "context",
    "eyes": "reader",
    "stand": "status",
    "standing": "status",
    "whose": "owner",
    "chase": "attempt",
    "caught": "fenced",
    "oddity": "finding",
    "oddities": "findings",
    "manner": "mode",
    "surroundings": "context",
    "clues": "signals",
    "testimony": "candidate",
    "beliefs": "journal records",
    "belief": "journal record",
    "newcomers": "new members",
    "unwell": "unhealthy",
    "neighbours": "shared, other groups",
    "hear": "receive",
    "heard": "received",
}
"""Words that no name of a class, function, argument, attribute or variable contains, nor a key or
value of JSON, and what to say instead.
"""

PHRASES = {
    "nobody knows": "unknown",
    "nobody can tell": "could not list, could not determine",
    "is told": "is reported",
    "comes true": "is reached",
    "come true": "be reached",
    "gives up": "stops, fails",
    "as wished": "as requested",
    "not to be had": "unavailable",
    "at that moment": "then, while",
    "goes on": "resumes, continues",
    "go on": "resume, continue",
    "is no yaml": "invalid YAML",
    "out of reach": "could not be read",
    "tells of": "describes, reports",
    "does not tell": "does not report",
    "as far as it stands": "currently",
    "by now": "so far",
}
"""What no string that is shown says, and what it says instead."""


def package(path: Path) -> str:
    """``cli/commands`` of ``cli/commands/offsets/show.py``: two levels at most."""
    return "/".join(path.relative_to(ROOT).parts[:-1][:2])


def names(tree: Iterable[ast.AST]) -> Iterator[str]:
    """What is defined: classes, functions, arguments, fields, attributes and variables."""
    for node in tree:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def words(name: str) -> list[str]:
    """``TransactionalIdIndex`` and ``transactional_id_index`` have the same three words."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def keys(tree: Iterable[ast.AST]) -> Iterator[str]:
    """The strings that may be keys or values of JSON: those that are one word."""
    for node in tree:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch("[a-z][A-Za-z]*", node.value)
        ):
            yield node.value


def strings(tree: Iterable[ast.AST]) -> Iterator[str]:
    """Every string, docstrings too: those of commands are their help."""
    for node in tree:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.lower().split())


def private_names(path: Path) -> list[str]:
    found = {
        name
        for name in (*names(nodes(path)), *keys(nodes(path)))
        if WORDS.keys() & set(words(name))
    }
    return sorted(found)


_ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b")


def _phrases(text: str) -> list[str]:
    """The phrases in a text; most have none, and are searched once for all."""
    if not _ANY_PHRASE.search(text):
        return []
    return [phrase for phrase in PHRASES if re.search(rf"\b{phrase}\b", text)]


def private_phrases(path: Path) -> list[str]:
    found = strings(nodes(path))
    return [phrase for text in found for phrase in _phrases(text)]


@pytest.mark.parametrize("which", sorted({package(path) for path in FILES}))
def test_names_and_strings_use_the_words_of_the_field(which: str) -> None:
    paths = [path for path in FILES if package(path) == which]
    held = {path.relative_to(ROOT).as_posix(): private_names(path) for path in paths}
    said = {path.relative_to(ROOT).as_posix(): private_phrases(path) for path in paths}
    assert {path: found for path, found in held.items() if found} == {}
    assert {path: found for path, found in said.items() if found} == {}


def schema_words(schema: Any) -> Iterator[str]:
    """The names of properties in a schema, and the values that it enumerates."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        yield from (value for value in schema.get("enum", ()) if isinstance(value, str))
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from schema_words(part)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/schema").glob("*.json")), ids=lambda path: path.name
)
def test_schemas_use_the_words_of_the_field(path: Path) -> None:
    found = [
        each
        for each in schema_words(json.loads(path.read_text()))
        if WORDS.keys() & set(words(each))
    ]
    assert found == []


def test_names_are_taken_apart() -> None:
    source = "class ToldOff:\n    def hear_them(self, wish_list): self.as_HTTPEyes = whose = 1"
    found = sorted(names(ast.walk(ast.parse(source))))
    assert found == ["ToldOff", "as_HTTPEyes", "hear_them", "self", "whose", "wish_list"]
    assert [words(each) for each in ("ToldOff", "as_HTTPEyes")] == [
        ["told", "off"],
        ["as", "http", "eyes"],
    ]


def test_every_word_of_the_architecture_is_in_the_glossary() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text()
    rows = re.findall(
        r"^\| (\w+) \| .* \|$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE
    )
    found = [word for word in rows if word[0].isupper()]
    assert found == ["Snapshot", "Plan", "Step", "Operation", "Run", "Finding"]
    assert [word for word in found if f"\n| {word} |" not in glossary] == []


def test_the_files_of_the_glossary_are_there() -> None:
    files = re.findall(
        r"`((?:ops|cli|migrations)/[\w/]+\.py)`", (ROOT / "docs/glossary.md").read_text()
    )
    assert [file for file in files if not (ROOT / file).is_file()] == []
