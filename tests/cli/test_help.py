"""The help of every command, walked from the root: what a person needs is found from wherever they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from connectctl.cli import main
from connectctl.cli.help_text import fitted
from fakes.runner import _built, invoke


def walk(path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    command = _built(main.app)
    for word in path:
        command = command.get_command(None, word) if word in main.COMMANDS else command.commands[word]
    yield path
    for name in main.COMMANDS if not path else getattr(command, "commands", {}):
        yield from walk((*path, name))


PATHS = list(walk())


def test_all_commands_are_walked() -> None:
    assert len(PATHS) > 50
    assert {("offsets", "set"), ("run", "status"), ("fence",), ("completion",)} <= set(PATHS)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_is_whole_narrow_and_speaks_of_no_python(path: tuple[str, ...]) -> None:
    result = invoke([*path, "-h"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == invoke([*path, "--help"]).stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert not re.search(
        r"<(?!group)\w|list\[|\b(str|int|float|PATH|TEXT|INTEGER|None)\b[^.]*$", result.stdout, re.MULTILINE
    )
    assert "completion for the current shell" not in result.stdout
    described = re.findall(
        r"^  (\S.*)$", result.stdout.partition("\nArguments:\n")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert [line for line in described if not re.search(r"\S  +[A-Zbac]", line)] == []
    if path:
        assert "environment variables: connectctl --help" in " ".join(result.stdout.split())


def test_the_root_names_every_variable_and_global_option() -> None:
    from connectctl.ops.config.settings import ENVIRONMENT

    text = invoke(["--help"]).stdout
    for variable in (*ENVIRONMENT, "CONNECTCTL_CONTEXT", "CONNECTCTL_CONFIG", "CONNECTCTL_JOURNAL", "NO_COLOR"):
        assert variable in text
    for option in main._GLOBAL_VALUES:
        assert option in text


def test_an_example_that_is_broken_is_still_one_command() -> None:
    long = "\b\nExamples:\n  connectctl " + " ".join(f"--option-{n} value-{n}" for n in range(9)) + "   what it does"
    lines = fitted(long).split("\n")[2:]
    assert lines[0] == "  # what it does"
    assert all(len(line) <= 78 for line in lines)
    words = shlex.split("\n".join(lines[1:]).replace("\\\n", ""))
    assert words == ["connectctl", *(word for n in range(9) for word in (f"--option-{n}", f"value-{n}"))]


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["preflight", "--explain"], "connectctl preflight"),
        (["offsets", "set", "--nonsense"], "connectctl offsets set"),
        (["--timeout"], "connectctl"),
        (["--timeout", "5", "offsets", "show", "--patience", "x"], "connectctl offsets show"),
    ],
)
def test_a_usage_error_points_to_the_help_of_the_command_that_was_typed(args: list[str], path: str) -> None:
    assert invoke(args).stderr.endswith(f"See {path} --help.\n")
