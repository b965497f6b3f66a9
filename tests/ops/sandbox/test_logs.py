"""What is worth showing of a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.logs import follow, last_lines, log_files, telling_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the log is empty"),
        ("a\nb\n\n", "b"),
        ("x ERROR it broke\nINFO bye", "x ERROR it broke"),
        (
            "ERROR x\njava.net.BindException: Address already in use\n\tat a.b\nINFO",
            "java.net.BindException: Address already in use",
        ),
        ("[1] ERROR Failed\nE: a\n\tat x\nCaused by: b: no\n\tat y\nINFO end", "Caused by: b: no"),
        ("ERROR " * 100, ("ERROR " * 100)[:297] + "..."),
    ],
)
def test_the_line_that_says_why(text: str, line: str) -> None:
    assert telling_line(text) == line


@pytest.mark.parametrize(
    ("count", "first"), [(1, "line 19999"), (100, "line 19900"), (30000, "line 0"), (0, None)]
)
def test_the_last_lines(tmp_path: Path, count: int, first: str | None) -> None:
    log = tmp_path / "x.log"
    log.write_text("".join(f"line {n}\n" for n in range(20000)))
    lines = last_lines(log, count)
    assert lines[:1] == ([first] if first else [])
    assert len(lines) == min(count, 20000)


def test_no_log_has_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none", 5) == []


def test_following_gives_whole_lines_as_they_come(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("old\n")
    writes = iter(["new", " line\nsecond\nhalf"])

    def is_over() -> bool:
        text = next(writes, None)
        with log.open("a") as out:
            out.write(text or "")
        return text is None

    assert list(follow({"x": log}, is_over=is_over, pause=0)) == [
        ("x", "new line"),
        ("x", "second"),
    ]


def test_logs_by_name(tmp_path: Path) -> None:
    layout = SandboxLayout(tmp_path)
    layout.logs.mkdir()
    for name in ("broker", "worker-1"):
        layout.log(name).touch()
    assert list(log_files(layout, [])) == ["broker", "worker-1"]
    assert list(log_files(layout, ["worker-1"])) == ["worker-1"]
    with pytest.raises(
        BadInput, match=r"Log not found in sandbox \S+: nope\. Available: broker, worker-1"
    ):
        log_files(layout, ["nope"])
