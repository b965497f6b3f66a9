"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from connectctl.ops import contextfile

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A command of the README and what it shows under it."""

    command: str
    output: str


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(README.read_text()) if found == language]


def commands() -> Iterator[Shown]:
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(command, output)


def pattern(shown: str) -> re.Pattern[str]:
    """``shown`` as a pattern: ``…`` on a line of its own is any lines, within a line anything, spaces any spaces."""
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        parts = [r"\s+".join(map(re.escape, piece.split())) for piece in re.split(r"(?:\s*…\s*)", line.strip())]
        lines.append(r"(?:.*\n)*" if line.strip() == "…" else r" *" + r"[^\n]*".join(parts) + r"\s*\n")
    return re.compile("".join(lines))


CURL = """\
#!{python}
import argparse, urllib.request
parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("-X", dest="method")
parser.add_argument("-H", dest="header")
parser.add_argument("-d", dest="data")
parser.add_argument("url")
wish = parser.parse_args()
headers = dict([wish.header.split(": ")])
request = urllib.request.Request(wish.url, wish.data.encode(), headers, method=wish.method)
print(urllib.request.urlopen(request).read().decode(), end="")
"""
"""What the README needs of curl, for machines that have none."""


def curl_if_there_is_none(place: Path) -> None:
    if shutil.which("curl") is None:
        place.mkdir()
        (place / "curl").write_text(CURL.format(python=sys.executable))
        (place / "curl").chmod(0o755)


@pytest.mark.live
def test_every_command_of_the_readme_does_what_it_shows(tmp_path: Path) -> None:
    """One shell, from the first command to the last, with a state directory of its own."""
    home = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    curl_if_there_is_none(tmp_path / "bin")
    path = os.pathsep.join([str(Path(sys.executable).parent), str(tmp_path / "bin"), os.environ["PATH"]])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CONNECTCTL_")} | home | {"PATH": path}
    try:
        for shown in commands():
            if exported := re.fullmatch(r"export (\w+)=(\S+)", shown.command):
                environment[exported[1]] = exported[2]
                continue
            done = subprocess.run(
                ["bash", "-c", shown.command], env=environment, capture_output=True, text=True, timeout=180, check=False
            )
            assert done.returncode == 0, f"$ {shown.command}\n{done.stdout}{done.stderr}"
            if shown.output.strip():
                found = pattern(shown.output).fullmatch(done.stdout.rstrip("\n") + "\n")
                assert found, f"$ {shown.command}\nshows:\n{shown.output}\nprints:\n{done.stdout}\n{done.stderr}"
    finally:
        subprocess.run([sys.executable, "-m", "connectctl.cli", "sandbox", "down"], env=environment, check=True)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_the_readmes_context_file_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert contextfile.read(tmp_path / "config.yaml").content.current == "prod"


def test_the_readmes_two_commands_are_those_of_the_package_and_of_ci() -> None:
    text = README.read_text()
    assert "pip install '.[spark]' && connectctl demo" in text
    assert "pip install -e '.[dev]' && pytest" in text
    extras = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"spark", "dev"} <= extras.keys()
    ci = (README.parent / ".ci/run").read_text()
    assert "pip install --quiet -e '.[dev]'" in ci
    assert "\npytest\n" in ci
