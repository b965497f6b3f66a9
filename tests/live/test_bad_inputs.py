"""What people and scripts get wrong: one line that says what, with the documented exit code, and
never a traceback.
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.cli import main
from fakes.runner import invoke
from live import badfiles

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

TABLE = Path(__file__).with_name("badinputs.txt")


@dataclass(frozen=True)
class Case:
    """A line of the table."""

    code: int
    wrong: str
    words: tuple[str, ...]
    command: str

    @property
    def on_cluster(self) -> bool:
        return "@" in shlex.split(self.command)


def cases() -> Iterator[Case]:
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            code, wrong, words, command = line.split(" | ", 3)
            yield Case(int(code), wrong, tuple(word.strip() for word in words.split(";")), command)


CASES = list(cases())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("files")
    badfiles.make(directory)
    return directory


@pytest.fixture
def here(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in [name for name in os.environ if name.startswith("CONNECTCTL_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(files / "config"))
    monkeypatch.chdir(files)
    return files


@pytest.fixture(scope="module")
def dead() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def check(case: Case, dead: int, context: str = "") -> None:
    words, environment = shlex.split(case.command.replace("{dead}", str(dead))), {}
    while "=" in words[0] and words[0].startswith("CONNECTCTL_"):
        name, _, environment[name] = words.pop(0).partition("=")
    args = [
        Path(word[1:]).read_text() if word.startswith("@") and word != "@" else word
        for word in words
    ]
    args = [part for word in args for part in ((["--context", context]) if word == "@" else [word])]
    result = invoke(args, env=environment, input="")
    assert (result.exit_code, result.stdout) == (case.code, ""), result.output
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    missing = [
        word for word in case.words if word.replace("{dead}", str(dead)) not in result.stderr
    ]
    assert not missing, result.stderr


def name(case: Case) -> str:
    return f"{case.wrong}: {case.command}"[:90]


@pytest.mark.parametrize("case", [case for case in CASES if not case.on_cluster], ids=name)
def test_what_is_wrong_is_said_in_one_line(case: Case, here: Path, dead: int) -> None:
    check(case, dead)


@pytest.mark.live
@pytest.mark.parametrize("case", [case for case in CASES if case.on_cluster], ids=name)
def test_what_is_wrong_on_a_cluster_is_said_in_one_line(
    case: Case, cluster: Sandbox, here: Path, dead: int
) -> None:
    check(case, dead, f"sandbox-{cluster.spec.name}")


def test_the_table_is_long_has_no_line_twice_and_knows_every_command() -> None:
    assert len(CASES) >= 250
    assert len({(case.command, case.wrong) for case in CASES}) == len(CASES)
    assert {case.code for case in CASES} <= set(main.EXIT_CODES.values())
    tried = {word for case in CASES for word in shlex.split(case.command)}
    assert set(main.COMMANDS) - tried == {"demo"}, "demo takes nothing"
