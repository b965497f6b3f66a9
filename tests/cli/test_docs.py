"""Pages for man: of every command, as man reads them; and the same facts on the page about
commands.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from connectctl.cli.help_text import ENVIRONMENT, EXIT_STATUS
from connectctl.cli.main import EXIT_CODES
from connectctl.cli.output.man_pages import title
from fakes.runner import commands, invoke

PAGE = Path(__file__).parents[2] / "docs/commands/README.md"


def page(*path: str) -> str:
    result = invoke(["docs", "man", *path])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_every_command_has_a_page_and_the_same_release_gives_the_same_bytes(tmp_path: Path) -> None:
    for directory in ("one", "two"):
        assert invoke(["docs", "man", "--directory", str(tmp_path / directory)]).exit_code == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert written == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert written.keys() == {f"{title(path)}.1" for path in commands()}


def test_a_page_has_what_help_has() -> None:
    told = page("offsets", "set")
    assert re.findall(r"^\.SH (.*)$", told, re.MULTILINE) == [
        *("NAME", "SYNOPSIS", "DESCRIPTION", "ARGUMENTS", "OPTIONS", "SEE ALSO")
    ]
    options = (
        invoke(["offsets", "set", "-h"]).stdout.partition("\nOptions:\n")[2].partition("\n\n")[0]
    )
    for option in re.findall(r"^  (?:-\w, )?--([a-z-]+)", options, re.MULTILINE):
        assert option == "help" or f"--{option}".replace("-", "\\-") in told


def test_a_group_names_its_commands_and_the_programs_page_the_environment_and_the_exit_codes() -> (
    None
):
    assert "connectctl\\-offsets\\-set\\fR(1)" in page("offsets")
    told = page()
    assert all(f"\\fB{name}\\fR".replace("…", "\\[u2026]") in told for name in ENVIRONMENT)
    assert all(f"\\fB{code}\\fR" in told for code in EXIT_STATUS)


@pytest.mark.skipif(
    shutil.which("groff") is None, reason="needs groff, which reads pages as man does; any version"
)
def test_no_page_has_anything_that_roff_warns_of(tmp_path: Path) -> None:
    assert invoke(["docs", "man", "--directory", str(tmp_path)]).exit_code == 0
    command = ["groff", "-man", "-Tutf8", "-ww", *sorted(map(str, tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # Bold letters are overstruck.
    shown = re.sub(r".\x08|\x1b\[\d+m", "", done.stdout)
    assert "connectctl-fence - Fence" in shown
    assert "CONNECTCTL_CLIENT_…" in shown


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["nothing"], "Unknown command: nothing"),
        (["fence", "--directory", "d"], "COMMAND and --directory cannot be combined"),
    ],
)
def test_what_cannot_be_printed_is_one_line(args: list[str], why: str) -> None:
    result = invoke(["docs", "man", *args])
    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = invoke(["docs", "man", "--directory", str(tmp_path / "file")])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_the_page_about_commands_has_the_same_variables_and_exit_codes() -> None:
    rows = dict(re.findall(r"^\| `?([^|`]+?)`? \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
    for table in (ENVIRONMENT, EXIT_STATUS):
        assert {name: rows.get(name) for name in table} == table


def test_the_page_about_commands_names_every_command() -> None:
    rows = dict(re.findall(r"^\| \[(\w+)\]\(\w+\.md\) \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
    named = {noun: set(re.findall(r"`(?:\w+ )?(\w+)`", row)) for noun, row in rows.items()}
    unnamed = [path for path in commands() if len(path) == 2 and path[1] not in named[path[0]]]
    assert unnamed == [("run", "job")], "job is what run does by itself"


def test_every_exit_code_is_told() -> None:
    assert {str(code) for code in EXIT_CODES.values()} <= EXIT_STATUS.keys()
