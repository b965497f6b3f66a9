"""TAB after what has names: from files and the journal here, from clusters in
``live/test_completion.py``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.cli import completed_names
from connectctl.cli.completed_names import KEPT, completes
from connectctl.ops.config import paths
from fakes.changingworld import World
from fakes.runner import command_at, commands
from typer._completion_classes import FishComplete

NAMED = {
    "CLASS",
    "CONNECTOR",
    "CONNECTOR...",
    "CONTEXT",
    "FROM",
    "LOGGER",
    "NAME=VALUE|NAME-...",
    "RUN",
    "TO",
    "TRANSACTIONAL-ID",
    "[CONNECTOR]",
    "[CONNECTOR]...",
    "[LOGGER]",
    "[RUN]",
    "[TRANSACTIONAL-ID]",
}
"""What stands for a name that exists somewhere."""
NEW = {("", "confirm"), ("connectors rollback", "to"), ("upgrade plan", "parameters")}
"""Parameters of these forms that name nothing, or that a person has to type."""


def offered(*words: str) -> list[str]:
    """The candidates for the last word."""
    *before, last = words
    complete = FishComplete(command_at(()), {}, "connectctl", "_CONNECTCTL_COMPLETE")
    return [item.value for item in complete.get_completions(before, last)]


def test_every_parameter_that_names_something_is_completed() -> None:
    lacking = [
        (" ".join(path), param.name)
        for path in commands()
        for param in command_at(path).params
        if param.metavar in NAMED
        and getattr(param, "_custom_shell_complete", None) is None
        and (" ".join(path), param.name) not in NEW
    ]
    assert lacking == []


def test_contexts_are_those_of_the_file_and_of_sandboxes_and_only_the_former_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = paths.sandbox_directory("x") / "context.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("contexts: {sandbox-x: {bootstrap_servers: 'b:1', group_id: g}}\n")
    file = tmp_path / "config.yaml"
    file.write_text("contexts: {prod: {}, stage: {}}\n")
    where = ("--config", str(file))
    assert offered(*where, "--context", "") == ["prod", "sandbox-x", "stage"]
    assert offered(*where, "context", "use", "s") == ["sandbox-x", "stage"]
    assert offered(*where, "context", "remove", "s") == ["stage"]
    assert offered("sandbox", "down", "--name", "") == ["x"]


def test_runs_are_those_that_the_command_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    world = World(tmp_path)
    assert world.change("connectors stop", "--yes").exit_code == 0
    (run,) = offered("runs", "show", "")
    assert offered("runs", "undo", run[:8]) == [run]
    assert offered("runs", "resume", "") == []
    assert offered("loggers", "undo", "") == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("sandbox", "up", "--support", "e"), ["enabled"]),
        (("plugins", "list", "--type", "si"), ["sink"]),
        (("preflight", "--explain", "STORE00"), [f"STORE00{n}" for n in range(1, 10)]),
        (("offsets", "merge", "--via", ""), ["kafka", "rest"]),
    ],
)
def test_what_is_the_same_everywhere(words: tuple[str, ...], names: list[str]) -> None:
    assert offered(*words)[: len(names)] == names


def test_names_of_a_cluster_are_kept_for_some_seconds_for_their_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []

    def names(session: Any, ctx: Any) -> list[str]:
        asked.append("cluster")
        return ["b", "a\x1b[2J", "a"]

    complete = completes(names)
    ctx: Any = SimpleNamespace(params={})
    ctx.find_root = lambda: ctx
    assert [complete(ctx, "") for _ in range(3)] == [["a", "b"]] * 3
    assert asked == ["cluster"]
    ctx.params["context"] = "another"
    complete(ctx, "")
    assert asked == ["cluster"] * 2
    files = list((tmp_path / "cache" / "connectctl" / "completion").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    for file in files:
        os.utime(file, (time.time() - KEPT - 1,) * 2)
    complete(ctx, "")
    assert asked == ["cluster"] * 3


def test_a_cluster_that_cannot_be_read_has_no_names_and_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("connectors", "plugin_classes", "transactional_ids", "topics"):
        ctx: Any = SimpleNamespace(params={})
        ctx.find_root = lambda ctx=ctx: ctx
        assert getattr(completed_names, name)(ctx, "") == []
