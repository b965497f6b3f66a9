"""The pages of the documentation: their blocks, and the commands that they show with what is under them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of a page; one with a ``file`` is what that file of the examples holds."""

    language: str
    file: str
    text: str


@dataclass(frozen=True)
class Shown:
    """A command and what a page shows under it."""

    command: str
    output: str


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str = "") -> list[Block]:
    found = [Block(*match) for match in _BLOCK.findall(page.read_text())]
    return [block for block in found if language in ("", block.language)]


def commands(page: Path) -> Iterator[Shown]:
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(command, output)
