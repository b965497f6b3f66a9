"""The help of every command, walked from the root: what a person needs is found from wherever they
are.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import defaultdict

import pytest
import typer
from connectctl.cli import main
from connectctl.cli.help_text import fitted
from connectctl.cli.session import Session
from fakes.runner import command_at, commands, invoke
from helpexamples import examples, logical_lines, parts_of

DIFFERENT = {
    "--from": "the files of a worker of context add, a moment of audit",
    "--all": "connectors of the cluster; sandboxes of this user",
    "--engine": "Spark pays off from another number of records on for offsets than for an audit",
    "--exit-code": "1 where a cluster is not healthy, as of a probe; 3 where a change is pending, "
    "as of a plan",
    "--file": "each command reads a file of its own kind",
    "--for": "a downgrade is a target of a cluster, and not of one configuration",
    "--force": "what is dared differs: running tasks fail; a commit that was decided is lost",
    "--group": "in place of a connector; besides the topics of a transform, in an audit of it",
    "--interval": "a look of doctor reads more than one of cluster show",
    "--limit": "rows of a table of offsets; examples of each violation",
    "--name": "sandbox status shows all of them, others work on one",
    "--out": "a backup is the output of its command; a plan is written beside it",
    "--output": "findings have three forms more, for CI",
    "--partition": "a source partition is JSON; one of Kafka's is a number",
    "--patience": "for open transactions to end; for a Kafka that does not answer a job",
    "--prefix": "ids to fence; ids to list",
    "--set": "a key of a context; what a migration has to be told",
    "--to": "the release that workers are to have; the version that a connector is to have",
    "--topic": "the topic that a connector is to get; topics to read; the topic of one transaction",
}
"""Options that are declared more than once, and why."""


PATHS = list(commands())


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
        r"<(?!group)\w|list\[|\b(str|int|float|PATH|TEXT|INTEGER|None)\b[^.]*$",
        result.stdout,
        re.MULTILINE,
    )
    assert "completion for the current shell" not in result.stdout
    listed = result.stdout.partition("\nCommands:\n")[2].partition("\n\n")[0]
    assert [line for line in listed.splitlines() if line.endswith("...")] == [], "it is cut"
    described = re.findall(
        r"^  (\S.*)$",
        result.stdout.partition("\nArguments:\n")[2].partition("\n\n")[0],
        re.MULTILINE,
    )
    assert [line for line in described if not re.search(r"\S  +[A-Zbac]", line)] == []
    if path:
        assert "environment variables: connectctl --help" in " ".join(result.stdout.split())


def test_the_root_names_every_variable_and_global_option() -> None:
    from connectctl.ops.config.settings import ENVIRONMENT

    text = invoke(["--help"]).stdout
    for variable in (
        *ENVIRONMENT,
        "CONNECTCTL_CONTEXT",
        "CONNECTCTL_CONFIG",
        "CONNECTCTL_JOURNAL",
        "NO_COLOR",
    ):
        assert variable in text
    for option in command_at(()).params:
        assert all(name in text for name in option.opts)


def test_every_global_option_with_a_value_may_stand_anywhere() -> None:
    options = [p for p in command_at(()).params if not p.is_flag and p.param_type_name == "option"]
    for name in (name for option in options for name in option.opts):
        assert main.globals_first(["fence", name, "value"], options) == [name, "value", "fence"]


def test_an_option_means_the_same_in_every_command() -> None:
    declared: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for path in PATHS[1:]:
        for param in command_at(path).params:
            if param.param_type_name == "option":
                shape = (
                    param.help,
                    param.metavar,
                    repr(param.default),
                    tuple(sorted(param.opts)),
                    param.is_flag,
                )
                declared[max(param.opts, key=len)].add(shape)
    assert {name for name, shapes in declared.items() if len(shapes) > 1} == set(DIFFERENT)


def _script() -> str:
    """The examples of all commands as one script of functions that are never called."""
    script = []
    for number, path in enumerate(PATHS):
        assert all(len(line) <= 78 for line in examples(path)), path
        script.append("\n".join([f"examples_{number}() {{", ":", *examples(path), "}"]))
    return "\n".join(script)


def test_examples_are_commands_of_a_shell() -> None:
    found = subprocess.run(
        ["bash", "-n"], input=_script(), capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert len([line for path in PATHS for line in logical_lines(path)]) > 190


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_example_has_the_options_and_arguments_that_its_command_takes(
    path: tuple[str, ...],
) -> None:
    for line in logical_lines(path):
        for part in parts_of(line):
            if part.words[:1] == ["connectctl"]:
                parse(part.words[1:])


def parse(args: list[str]) -> None:
    """Parse a command line as the command does. Raises ``TyperException`` for a usage error."""
    command, context, obj = command_at(()), None, Session()
    words = main.globals_first(args, command.params)
    while command is not None:
        context = command.make_context(command.name, words, parent=context, obj=obj)
        words = [*getattr(context, "_protected_args", ()), *context.args]
        is_group = hasattr(command, "resolve_command") and words
        _, command, words = command.resolve_command(context, words) if is_group else (0, None, [])


@pytest.mark.parametrize("line", ["cluster show a page", "offsets show --nonsense", "fence -o"])
def test_what_a_command_does_not_take_is_no_example(line: str) -> None:
    with pytest.raises(typer.TyperException):
        parse(line.split())


def test_an_example_that_is_broken_is_still_one_command() -> None:
    long = (
        "\b\nExamples:\n  connectctl "
        + " ".join(f"--option-{n} value-{n}" for n in range(9))
        + "   what it does"
    )
    lines = fitted(long).split("\n")[2:]
    assert lines[0] == "  # what it does"
    assert all(len(line) <= 78 for line in lines)
    words = shlex.split("\n".join(lines[1:]).replace("\\\n", ""))
    assert words == [
        "connectctl",
        *(word for n in range(9) for word in (f"--option-{n}", f"value-{n}")),
    ]


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["preflight", "--explain"], "connectctl preflight"),
        (["offsets", "set", "--nonsense"], "connectctl offsets set"),
        (["--timeout"], "connectctl"),
        (["--timeout", "5", "offsets", "show", "--patience", "x"], "connectctl offsets show"),
    ],
)
def test_a_usage_error_points_to_the_help_of_the_command_that_was_typed(
    args: list[str], path: str
) -> None:
    assert invoke(args).stderr.endswith(f"See {path} --help.\n")
