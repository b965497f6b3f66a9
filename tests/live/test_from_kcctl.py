"""Somebody who knows kcctl does a day's work from the page alone, on a terminal of 80 columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.testing
from connectctl.cli.output.printed_commands import words_of
from connectctl.cli.output.tables import cells
from documentation import ROOT, blocks, commands
from live.real import Ran, Workers, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PAGE = ROOT / "docs" / "how-to" / "from-kcctl.md"
COLUMNS = 80
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LOGGER = "org.apache.kafka.connect.file"
LAST_RUN = "$(connectctl runs list -o name | head -n 1)"
Check = Callable[[Workers, Ran], object]


def state(**expected: str) -> Check:
    """The states of connectors, by the workers; ``_`` for ``-`` in a name."""
    wanted = {name.replace("_", "-"): each for name, each in expected.items()}

    def check(rest: Workers, ran: Ran) -> object:
        return eventually(lambda: {name: rest.state(name)[0] for name in wanted} == wanted)

    return check


def batch_size(expected: str | None) -> Check:
    def check(rest: Workers, ran: Ran) -> object:
        found = rest.call("GET", "/connectors/orders/config").json().get("batch.size")
        assert found == expected
        return True

    return check


def debug(*, expected: bool) -> Check:
    def check(rest: Workers, ran: Ran) -> object:
        path = f"/admin/loggers/{LOGGER}"
        return eventually(lambda: (rest.call("GET", path).json()["level"] == "DEBUG") is expected)

    return check


def position(expected: int | None) -> Check:
    def check(rest: Workers, ran: Ran) -> object:
        found = [each["offset"]["position"] for each in rest.offsets("orders")]
        assert found == ([] if expected is None else [expected])
        return True

    return check


def prints(*words: str) -> Check:
    return lambda rest, ran: all(word in ran.out for word in words)


def gone(rest: Workers, ran: Ran) -> object:
    return not {"orders", "invoices", "payments", "payments-old"} & {
        *rest.call("GET", "/connectors").json()
    }


RESULTS: list[tuple[str, Check]] = [
    ("context add prod", lambda rest, ran: "prod" in Path("day.yaml").read_text()),
    ("context use prod", lambda rest, ran: "current: prod" in Path("day.yaml").read_text()),
    ("context list", prints("prod")),
    ("context remove prod", lambda rest, ran: "worker-1" not in Path("day.yaml").read_text()),
    ("context show", prints("bootstrap_servers", "group_id")),
    ("cluster show", prints("GROUP", "WORKER", "TOPIC")),
    ("plugins list", prints("FileStreamSourceConnector")),
    ("plugins show", prints("batch.size")),
    (
        "connectors list",
        lambda rest, ran: prints(*rest.call("GET", "/connectors").json())(rest, ran),
    ),
    ("connectors create", state(orders="RUNNING")),
    ("connectors apply", state(invoices="RUNNING", payments="RUNNING", payments_old="STOPPED")),
    ("connectors apply", state(payments_old="STOPPED")),
    ("connectors show", prints("orders", "RUNNING")),
    ("connectors patch", batch_size("500")),
    ("connectors patch", batch_size(None)),
    ("connectors diff", batch_size(None)),
    ("runs undo", batch_size("500")),
    ("connectors edit", batch_size("700")),
    ("connectors diff", prints("batch.size", "700")),
    ("loggers get", prints("root")),
    ("loggers set", debug(expected=True)),
    ("loggers undo", debug(expected=False)),
    ("connectors pause", state(orders="PAUSED")),
    ("connectors resume", state(orders="RUNNING")),
    ("connectors restart", state(orders="RUNNING", payments="RUNNING")),
    ("connectors restart", state(orders="RUNNING")),
    ("connectors restart", state(orders="RUNNING")),
    ("connectors stop", state(orders="STOPPED")),
    ("offsets show", prints('"position":')),
    ("offsets set", position(292)),
    ("offsets reset", position(None)),
    ("offsets undo", position(292)),
    ("offsets show", prints('{"position":292}')),
    ("connectors delete", prints("delete orders")),
    ("connectors delete", gone),
    ("runs list", prints("connectors delete", "offsets reset")),
]
"""What each command of the page does, in its order, and how the workers show it."""


def carried_out(command: str, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run a line of the page in this process, as on a terminal."""
    if LAST_RUN in command:
        command = command.replace(LAST_RUN, connectctl("runs", "list", "-o", "name").out.split()[0])
    words = shlex.split(command, comments=True)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    ran = connectctl(*words[1:])
    assert ran.code == 0, f"$ {command}\n{ran.out}{ran.err}"
    return Ran(ran.code, *(STYLE.sub("", text) for text in (ran.out, ran.err)))


def test_a_day_of_kcctl_is_done_from_the_page_at_80_columns(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("CONNECTCTL_CONTEXT", "sandbox-tests")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(typer.testing._NamedTextIOWrapper, "isatty", lambda self: True)
    for block in (block for block in blocks(PAGE) if block.file):
        (tmp_path / block.file).write_text(block.text.replace("/tmp/connectctl-", f"{tmp_path}/"))
    for name in ("orders", "invoices", "payments"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{n}\n" for n in range(1, 1001)))
    lines = [
        shown.command for shown in commands(PAGE) if re.match(r"connectctl|EDITOR", shown.command)
    ]
    assert len(lines) == len(RESULTS) >= 30
    rest = workers(cluster)
    # Another file's example may have left the page's level, and then nothing would change.
    rest.call("PUT", f"/admin/loggers/{LOGGER}?scope=cluster", {"level": "INFO"})
    try:
        for line, (command, check) in zip(lines, RESULTS, strict=True):
            assert re.search(rf"connectctl (--config \S+ )?{command}\b", line), line
            ran = carried_out(line, monkeypatch)
            assert check(rest, ran), f"$ {line}\n{ran.out}{ran.err}"
            wide = [text for text in f"{ran.out}{ran.err}".splitlines() if not fits(text)]
            assert wide == [], f"$ {line}\n" + "\n".join(wide)
    finally:
        for name in ("orders", "invoices", "payments", "payments-old"):
            rest.delete(name)


def fits(line: str) -> bool:
    """Whether a line is on the terminal, or is wide because of a single name, value or command."""
    return cells(line) <= COLUMNS or any(cells(word) > COLUMNS // 4 for word in words_of(line))
