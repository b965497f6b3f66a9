"""The pages of the documentation: their blocks, and the commands that they show with what is under
them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


EXAMPLE = re.compile(r"^\| \[.*\| `(connectctl [^`]+)` \|$", re.MULTILINE)
"""A row of the README's table of commands, with what it shows for each."""
_LINE = re.compile(rf"^\$ (.+)$|{EXAMPLE.pattern}", re.MULTILINE)


def lines(page: Path) -> list[str]:
    """Return the commands of a page in their order, those in rows of a table too."""
    return ["".join(found) for found in _LINE.findall(page.read_text())]


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
"""Options of the tests around it are none of a person's tests."""


def passed(directory: Path) -> str:
    """What pytest says at the end in ``directory``, with nothing of this project but what is
    installed.
    """
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        ".",
    ]
    options = ["-c", "/dev/null", "--rootdir", str(directory)]
    done = subprocess.run(
        [*command, *options],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]
