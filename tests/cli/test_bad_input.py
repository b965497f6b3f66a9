"""Whatever a command is given that cannot be right is one line on standard error, with a documented
exit code.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.ops.core.plan import Plan
from fakes.changingworld import COMMANDS, EDITOR, World
from fakes.offsetworld import World as OffsetWorld
from fakes.rollingworld import RollingWorld
from fakes.runner import commands, invoke
from typer.testing import Result

PATHS = list(commands())
LEAVES = [
    path for path in PATHS if not [other for other in PATHS if other[: len(path)] == path != other]
]
NAMES = {
    "empty": "",
    "escape": "a\x1b[2Jb",
    "two lines": "a\nb",
    "path": "../../etc/passwd",
    "slash": "a/b?c#d",
    "long": "x" * 5_000,
    "foreign": "häuser 東京",
    "half a character": "a\udcff",
    "blank": " ",
    "percent": "%s{0}%00",
}
NAMED: dict[str, tuple[str, ...]] = {
    "connectors show": ("NAME",),
    "connectors stop": ("NAME", "--yes"),
    "connectors pause": ("NAME", "--yes"),
    "connectors resume": ("NAME", "--yes"),
    "connectors restart": ("NAME", "--yes"),
    "connectors cure": ("NAME", "--yes"),
    "connectors create": ("-f", "nowhere/NAME", "--yes"),
    "connectors apply": ("-f", "nowhere/NAME", "--yes"),
    "connectors edit": ("NAME", "--yes"),
    "connectors patch": ("NAME", "a=1", "--yes"),
    "connectors delete": ("NAME", "--yes"),
    "connectors diff": ("NAME", "-f", "nowhere/NAME"),
    "connectors history": ("NAME",),
    "connectors rollback": ("NAME", "--to", "1", "--yes"),
    "runs undo": ("NAME", "--yes"),
    "offsets show": ("NAME",),
    "offsets merge": ("NAME", "--into", "global", "--yes"),
    "offsets copy": ("NAME", "plain", "--yes"),
    "offsets reset": ("NAME", "--yes"),
    "offsets diff": ("NAME",),
    "offsets undo": ("NAME", "--yes"),
    "fence": ("NAME", "--yes"),
    "tasks check": ("NAME",),
    "preflight": ("NAME",),
    "doctor": ("NAME",),
    "bundle": ("NAME", "--out", "never.zip"),
    "transactions show": ("NAME",),
    "transactions hanging": ("--topic", "NAME"),
    "transactions lag": ("--topic", "NAME"),
    "transactions abort": ("NAME", "--yes"),
    "transactions commit": ("--topic", "NAME", "--partition", "0", "--yes"),
    "audit": ("NAME", "--headers-only"),
    "upgrade plan": ("--migration", "NAME"),
    "upgrade resume": ("NAME", "--yes"),
    "upgrade abort": ("NAME", "--yes"),
    "runs show": ("NAME",),
    "runs resume": ("NAME", "--yes"),
    "sandbox down": ("--name", "NAME/"),
    "sandbox status": ("--name", "NAME/"),
    "sandbox logs": ("--name", "NAME/"),
    "context show": ("-c", "NAME"),
}
FILES = {
    "empty": b"",
    "binary": b"\xff\xfe\x00\x01",
    "null": b"null",
    "number": b"1",
    "list": b"[]",
    "lists": b"[[]]",
    "object": b"{}",
    "string": b'"x"',
    "cut": b'{"kind": "Plan", "steps": [',
    "kind": b'{"apiVersion": "connectctl/v1", "kind": "Plan", "steps": 1}',
    "roll": b'{"apiVersion": "connectctl/v1", "kind": "UpgradePlan", "steps": [{}]}',
    "not there": None,
}
READ: dict[str, tuple[str, ...]] = {
    "connectors create": ("-f", "FILE", "--yes"),
    "connectors apply": ("-f", "FILE", "--yes"),
    "connectors diff": ("plain", "-f", "FILE"),
    "offsets set": ("plain", "-f", "FILE", "--stop", "--yes"),
    "offsets restore": ("plain", "-f", "FILE", "--stop", "--yes"),
    "offsets diff": ("-f", "FILE"),
    "offsets show": ("-f", "FILE"),
    "validate": ("--offline", "-f", "FILE"),
    "fence": ("-f", "FILE", "--yes"),
    "run": ("FILE", "--yes"),
    "upgrade apply": ("FILE", "--yes"),
    "runs apply": ("FILE", "--yes"),
    "context list": ("--config", "FILE"),
}
HARMLESS = {
    *((command, "empty") for command in ("offsets show", "offsets diff", "offsets restore")),
    *(("fence", content) for content in ("null", "number", "string")),
    *(("context list", content) for content in ("empty", "null", "list", "object")),
}
"""A dump without records, lines that are ids, and a context file without contexts."""
EXPIRED = {"transactions show": 1, "transactions abort": 1}
"""The exit code where it is not 2: a transactional id that no coordinator knows may have been
right, and have expired.
"""
REFUSED = {("offsets restore", "empty"): 4}
"""A dump that can be read, and has nothing of the connector."""
WITHOUT_CONTEXT = {
    *(
        "offsets history",
        "offsets undo",
        "runs list",
        "runs show",
        "runs prune",
        "runs resume",
        "runs undo",
        "loggers undo",
        "context use",
        "context add",
        "context remove",
    ),  # the journal, before any cluster
    *(
        "sandbox up",
        "sandbox down",
        "sandbox status",
        "sandbox logs",
        "demo",
        "completion",
        "docs man",
        "context list",
    ),
}
"""Commands that need no context, or need it only for a run that the journal has."""
OF_CONTEXT: dict[str, tuple[str, ...]] = {
    **{name: args for name, args in NAMED.items() if not name.startswith("context")},
    "connectors create": ("-f", "connector", "--yes"),
    "connectors apply": ("-f", "connector", "--yes"),
    "connectors diff": ("x", "-f", "connector"),
    "offsets set": ("x", "-f", "offsets", "--yes"),
    "offsets restore": ("x", "-f", "nothing", "--yes"),
    "connectors topics": ("x",),
    "plugins show": ("x",),
    "loggers set": ("x", "DEBUG"),
    "validate": ("-f", "connector"),
    "run job": ("job",),
    "runs apply": ("plan", "--yes"),
    "upgrade plan": (),
    "upgrade resume": (),
    "upgrade abort": (),
}
"""Arguments with which a command comes to its context; files are those of
``test_a_context_that_is_not_there``.
"""
ASKING: dict[str, tuple[str, ...]] = {
    **{name: tuple(args) for name, args in COMMANDS.items()},
    "offsets merge": ("moved", "--into", "dedicated", "--stop"),
    "offsets copy": ("moved", "plain", "--stop"),
    "offsets reset": ("plain", "--stop"),
    "upgrade apply": (),
}


@pytest.fixture(autouse=True)
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("EDITOR", EDITOR)


def run(command: str, args: tuple[str, ...], directory: Path) -> Result:
    """``command`` on the cluster in memory that has what it looks at."""
    words = (*command.split(), *args)
    if command in ("context show", "context list") or command.startswith("sandbox"):
        return invoke(words)
    if command.startswith("offsets"):
        return OffsetWorld(directory / "journal").run(*words)
    if command.startswith("upgrade"):
        return RollingWorld.of(directory / "journal", "disabled", "disabled").run(*words)
    world = World(directory)
    world.kafka.records["t"] = []
    world.prepare(command)
    return world.run(*(word.replace("{directory}", str(directory)) for word in words))


def is_one_line(result: Result, code: int = 2) -> None:
    assert result.exit_code == code, result.output
    *noted, line = result.stderr.rstrip("\n").split("\n")
    assert line.startswith("error: "), result.output
    assert not [each for each in noted if not each.startswith("warning: ")], result.output
    assert "bug in connectctl" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
@pytest.mark.parametrize("option", ["--nonsense", "--output=xml"])
def test_an_option_that_is_not_there(path: tuple[str, ...], option: str) -> None:
    result = invoke([*path, option])
    is_one_line(result)
    assert f"See connectctl {' '.join(path)}".removesuffix(" job") in result.stderr


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", NAMED)
def test_a_name_that_nothing_has(command: str, name: str, tmp_path: Path) -> None:
    result = run(
        command, tuple(word.replace("NAME", NAMES[name]) for word in NAMED[command]), tmp_path
    )
    is_one_line(result, EXPIRED.get(command, 2))


@pytest.mark.parametrize("content", FILES)
@pytest.mark.parametrize("command", READ)
def test_a_file_that_is_something_else(command: str, content: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    if (data := FILES[content]) is not None:
        file.write_bytes(data)
    result = run(
        command, tuple(str(file) if word == "FILE" else word for word in READ[command]), tmp_path
    )
    if command == "validate" and result.stdout:
        assert (result.exit_code, "refused" in result.stdout) == (1, True)  # as findings
    elif result.exit_code or (command, content) not in HARMLESS:
        is_one_line(result, REFUSED.get((command, content), 2))


@pytest.mark.parametrize(
    "path", [path for path in LEAVES if " ".join(path) not in WITHOUT_CONTEXT], ids=" ".join
)
def test_a_context_that_is_not_there(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nothing").touch()
    Path("offsets").write_text('{"offsets": [{"partition": {"a": 1}, "offset": {"b": 1}}]}')
    Path("connector").write_text('{"name": "x", "config": {"connector.class": "FileStreamSource"}}')
    Path("job").write_text('{"name": "x", "config": {"connector.class": "FileStreamSource"}}')
    Path("plan").write_text(
        json.dumps({"kind": "Plan", **Plan("transactions abort", "c", ()).as_json()})
    )
    result = invoke([*path, *OF_CONTEXT.get(" ".join(path), ()), "--context", "nowhere"])
    is_one_line(result)
    assert "Context not found: nowhere (--context)" in result.stderr


@pytest.mark.parametrize("command", ASKING)
def test_without_a_terminal_and_without_yes_nothing_is_done(command: str, tmp_path: Path) -> None:
    result = run(command, ASKING[command], tmp_path)
    assert result.exit_code == 2, result.output
    line = result.stderr.rstrip("\n").split("\n")[-1]
    assert line.startswith("error: Confirmation required, but standard input is not a terminal")
    assert "Give --yes" in line
    assert '"runs": []' in invoke(["runs", "list", "-o", "json"]).stdout
