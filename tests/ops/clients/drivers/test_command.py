"""Shell lines of the operator change, restart and read a worker."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.clients.drivers.command import Command, ShellLines, value_in
from connectctl.ops.clients.drivers.command_runner import Commands
from connectctl.ops.core.errors import BadInput, ConnectctlError

KEY = "exactly.once.source.support"


def driver(**lines: str) -> Command:
    return Command(ShellLines(lines, Commands(60.0), "https"))


def test_placeholders_are_the_workers(tmp_path: Path) -> None:
    found = driver(
        change=f"echo {{worker}} {{host}} {{port}} {{url}} {{property}} {{value}} > {tmp_path}/out"
    )
    found.change("[::1]:8083", KEY, "a b")
    assert (tmp_path / "out").read_text() == f"[::1]:8083 ::1 8083 https://[::1]:8083 {KEY} a b\n"


def test_the_last_line_printed_is_what_came_of_it() -> None:
    assert (
        driver(restart="echo stopping; echo started with password=x").restart("w:1")
        == "started with password=******"
    )
    assert driver(restart="true").restart("w:1") is None


def test_the_plan_shows_the_commands_as_they_will_run_without_secrets() -> None:
    said = driver(change="set {property} {value} --token=abc", restart="r {host}").describe(
        "w:1", KEY, "enabled"
    )
    assert said == f"set {KEY}=enabled by: set {KEY} enabled --token=******, then run: r w"


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("enabled\n", "enabled"),
        (f"{KEY}=enabled\n", "enabled"),
        (f"{KEY} : preparing", "preparing"),
        (f"a=b\n{KEY}=x\\\n  y\n", "xy"),
        (f"#{KEY}=enabled\n", None),
        (f"#{KEY}=enabled\npreparing\n", "preparing"),
        ("a=b\nc=d\n", None),
        ("", None),
        ("\\uzzzz", "\\uzzzz"),
    ],
)
def test_a_value_a_line_or_a_whole_file_may_be_printed(printed: str, value: str | None) -> None:
    assert value_in(printed, KEY) == value


def test_a_grep_that_finds_nothing_says_that_it_is_not_set(tmp_path: Path) -> None:
    file = tmp_path / "w.properties"
    file.write_text(f"a=b\n{KEY}=enabled\n")
    found = driver(read=f"grep ^{{property}} {file}")
    told = found.configured("w:1", KEY)
    assert told is not None
    assert (told.value, told.source) == ("enabled", f"command grep ^{KEY} {file}")
    other = found.configured("w:1", "other")
    assert other is not None
    assert other.value is None


@pytest.mark.parametrize("line", ["exit 255", "grep x /no/such/file", "echo problem; exit 1"])
def test_a_read_that_fails_is_an_error(line: str) -> None:
    with pytest.raises(ConnectctlError, match=f"Reading {KEY} of w:1 failed"):
        driver(read=line).configured("w:1", KEY)


def test_without_a_command_that_reads_nothing_is_known() -> None:
    assert driver().configured("w:1", KEY) is None


def test_the_check_is_the_operators_too() -> None:
    assert driver().check("w:1") is None
    assert driver(check="test {host} = w").check("w:1") is None
    assert "it printed: no sudo" in str(driver(check="echo no sudo; exit 1").check("w:1"))
    assert "not an address" in str(driver().check("-oProxyCommand=x:1"))


def test_a_host_that_is_an_option_reaches_no_command(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        driver(restart=f"touch {tmp_path}/ran {{host}}").restart("-oProxyCommand=x:1")
    assert not (tmp_path / "ran").exists()
