"""Commands of the operator: however they end, and whatever they print, connectctl goes on and tells
no secret.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from connectctl.ops.clients.drivers.command_runner import CommandFailed, Commands
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from fakes.processes import runs

FAST = 60.0
"""Seconds for commands that end by themselves: never used up."""


def failure(command: str, commands: Commands | None = None) -> CommandFailed:
    with pytest.raises(CommandFailed) as error:
        (commands or Commands(FAST)).run(command, "The restart of w:1")
    return error.value


def pid_in(file: Path) -> int:
    end = time.monotonic() + 600
    while not (file.is_file() and file.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(file.read_text())


def gone(pid: int) -> bool:
    end = time.monotonic() + 600
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not runs(pid)


@pytest.fixture
def background(tmp_path: Path) -> Iterator[Path]:
    """A file for the pid of a process that a command leaves behind; it is ended after the test."""
    file = tmp_path / "pid"
    yield file
    if file.is_file() and runs(int(file.read_text())):
        os.kill(int(file.read_text()), signal.SIGKILL)


def test_what_a_command_prints_is_given() -> None:
    said = Commands(FAST).run("echo one; echo two >&2; echo three", "It")
    assert said.out == "one\nthree\n"
    assert sorted(said.both.split()) == ["one", "three", "two"]
    assert said.last_line == "three"


def test_words_are_run_without_a_shell() -> None:
    assert Commands(FAST).run(["printf", "%s", "$HOME; ls"], "It").out == "$HOME; ls"


def test_a_command_gets_the_environment_and_nothing_on_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_THE_OPERATOR", "here")
    assert Commands(FAST).run("cat; echo $OF_THE_OPERATOR", "It").out == "here\n"


def test_a_failure_tells_the_exit_status_and_the_last_lines() -> None:
    error = failure("for n in 1 2 3 4; do echo line $n; done; echo why >&2; exit 3")
    assert error.what == "The restart of w:1 failed"
    assert error.why is not None
    assert "ended: exit status 3; it printed: " in error.why
    assert error.why.endswith("why")
    assert "line 1" not in error.why


def test_a_silent_failure_says_so() -> None:
    assert str(failure("exit 1")).endswith("exit 1 ended: exit status 1; it printed nothing")


def test_a_command_that_is_not_there_is_told() -> None:
    assert "exit status 127" in str(failure("no-such-command-anywhere"))
    with pytest.raises(ConnectctlError, match="cannot be started: No such file"):
        Commands(FAST).run(["no-such-command-anywhere"], "It")


def test_a_command_with_a_zero_byte_cannot_be_started() -> None:
    with pytest.raises(ConnectctlError, match="cannot be started"):
        Commands(FAST).run("echo \0", "It")


def test_a_command_that_is_killed_tells_the_signal() -> None:
    assert "was ended by SIGKILL" in str(failure("kill -9 $$"))
    assert "exit status 143 (SIGTERM)" in str(failure("sh -c 'kill $$'; exit $?"))


def test_a_command_that_hangs_is_ended_with_all_that_it_started(background: Path) -> None:
    with pytest.raises(TimedOut) as error:
        Commands(1.0).run(
            f"sleep 600 & echo $! > {background}; echo begun; wait", "The restart of w:1"
        )
    assert "took longer than 1 s and was ended" in str(error.value)
    assert "it printed: begun" in str(error.value)
    assert gone(pid_in(background))


def test_a_command_that_ignores_the_polite_signal_is_ended_too(background: Path) -> None:
    with pytest.raises(TimedOut):
        Commands(0.5).run(f"trap '' TERM; echo $$ > {background}; while :; do sleep 1; done", "It")
    assert gone(pid_in(background))


def test_a_command_that_closes_its_output_and_hangs_is_ended() -> None:
    with pytest.raises(TimedOut):
        Commands(0.5).run("exec >&- 2>&-; sleep 600", "It")


def test_a_process_left_in_the_background_neither_holds_nor_is_ended(background: Path) -> None:
    said = Commands(FAST).run(f"sleep 600 & echo $! > {background}; echo started", "It")
    assert said.out == "started\n"
    assert runs(pid_in(background))


def test_megabytes_of_output_are_read_and_only_the_end_is_kept() -> None:
    script = "print('x' * 79); print(('y' * 79 + '\\n') * 200_000); print('end')"
    said = Commands(FAST).run([sys.executable, "-c", script], "It")
    assert said.last_line == "end"
    assert len(said.both) < 20_000
    assert "x" not in said.both


def test_output_that_is_no_text_does_no_harm() -> None:
    error = failure(
        f'{sys.executable} -c "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100); '
        'sys.exit(2)"'
    )
    assert "exit status 2" in str(error)
    assert "\n" not in str(error)


def test_secrets_are_hidden_in_the_command_and_in_what_it_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSHPASS", "from-environment")
    commands = Commands(FAST, lambda: ["known-secret"])
    line = (
        "echo use known-secret; echo got from-environment; echo password=other-secret; false "
        "--token third-secret"
    )
    error = failure(line, commands)
    for secret in ("known-secret", "from-environment", "other-secret", "third-secret"):
        assert secret not in str(error), str(error)
    assert "******" in str(error)


def test_half_a_secret_at_the_cut_is_not_shown() -> None:
    commands = Commands(FAST, lambda: ["S" * 40])
    script = "print('S' * 40 * 1000, end=''); print(' tail'); raise SystemExit(1)"
    error = failure(f'{sys.executable} -c "{script}"', commands)
    assert "SSS" not in str(error)


def test_secrets_are_only_asked_for_when_there_is_something_to_hide() -> None:
    asked: list[int] = []
    Commands(FAST, lambda: asked.append(1) or ()).run(["true"], "It")  # type: ignore[func-returns-value]
    assert asked == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """^C as Python has it: a Spark session of an earlier test may have left a handler of its
    own.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_the_person_can_interrupt_and_the_command_ends(background: Path) -> None:
    me = threading.main_thread().ident
    assert me is not None

    def interrupt() -> None:
        pid_in(background)
        signal.pthread_kill(me, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        Commands(FAST).run(f"echo $$ > {background}; exec sleep 600", "It")
    interrupter.join()
    assert gone(pid_in(background))
