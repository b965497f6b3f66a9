"""The examples in the help of all commands, as the help prints them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from connectctl.cli.help_text import fitted
from fakes.runner import command_at

OPERATORS = frozenset(("|", "||", "&&", ">"))


@dataclass(frozen=True)
class Part:
    """A command of a line: what joins it to the one before, and its words without the variables
    that are set for it.
    """

    joined: str
    words: list[str]


def examples(path: tuple[str, ...]) -> list[str]:
    """The lines of examples of a command."""
    for paragraph in fitted(command_at(path).help or "").split("\n\n"):
        heading, *lines = paragraph.removeprefix("\b").strip("\n").split("\n")
        if heading == "Examples:":
            return lines
    return []


def logical_lines(path: tuple[str, ...]) -> Iterator[str]:
    """The commands of the examples, each on one line."""
    text = "\n".join(line for line in examples(path) if not line.lstrip().startswith("#"))
    pending = ""
    for line in text.replace("\\\n", " ").split("\n"):
        pending = f"{pending} {line.strip()}" if pending else line.strip()
        if pending and pending.count("'") % 2 == 0:
            yield re.sub(r" {2,}", " ", pending)
            pending = ""


def parts_of(line: str) -> Iterator[Part]:
    """The commands of a line."""
    joined, words = "", list[str]()
    for word in shlex.split(line):
        if word in OPERATORS:
            yield Part(joined, words)
            joined, words = word, []
        elif words or not re.match(r"[A-Z]+=", word):
            words.append(word)
    yield Part(joined, words)
