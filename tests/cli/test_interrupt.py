"""^C ends every command soon, also while it waits for somebody who does not answer; each command is
a real process.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from connectctl.ops.core.wait import wait_until

PATIENCE = 3600
"""Seconds that the commands would wait for an answer."""
SOON = 120
"""Seconds in which a command ends on a machine that is busy with other things; many fewer than
``PATIENCE``.
"""


class Silent:
    """A port that accepts connections, and answers nothing."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.server.getsockname()[1]
        self._held: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                self._held.append(self.server.accept()[0])
        except OSError:
            return

    def met_by(self, process: subprocess.Popen[str]) -> bool:
        """Whether the process has connected, soon. Another one may know the port from a server that
        had it before.
        """

        def met() -> bool | None:
            if process.poll() is not None:
                return False
            connections = psutil.Process(process.pid).net_connections("tcp")
            return any(each.raddr and each.raddr.port == self.port for each in connections) or None

        return bool(wait_until(met, SOON, 0.02))

    def close(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for each in self._held:
            each.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    port = Silent()
    yield port
    port.close()


@contextmanager
def started(*args: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


BROKER = ["--bootstrap-servers", "127.0.0.1:{port}", "--group-id", "g", "--timeout", str(PATIENCE)]
WAITING = {
    "metadata": ["cluster", "show", *BROKER],
    "offsets": ["offsets", "show", *BROKER],
    "coordinators": ["transactions", "list", *BROKER],
    "fencing": ["fence", "--transactional-id", "a", "--yes", *BROKER],
    "threads": ["preflight", *BROKER],
    "batches": ["audit", "t", *BROKER],
    "a change": ["upgrade", "apply", "--yes", *BROKER],
    "REST": ["connectors", "list", "--rest", "http://127.0.0.1:{port}", *BROKER],
}


@pytest.mark.parametrize("case", WAITING)
def test_a_command_that_waits_for_an_answer_ends_with_one_line_and_130(
    case: str, silent: Silent
) -> None:
    with started(
        "-m", "connectctl.cli", *(word.format(port=silent.port) for word in WAITING[case])
    ) as process:
        assert silent.met_by(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out, err) == (130, "", "error: Interrupted\n")


def test_a_polite_end_is_heard_as_soon(silent: Silent) -> None:
    with started(
        "-m",
        "connectctl.cli",
        *(word.format(port=silent.port) for word in WAITING["metadata"]),
        "-o",
        "json",
    ) as process:
        assert silent.met_by(process)
        process.terminate()
        process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGTERM


LONG = """
import contextlib, sys, time
from connectctl.cli import main
from connectctl.ops.core import interrupts

def work():
    with {scope}:
        try:
            print("begun", flush=True)
            {wait}
        finally:
            {last}

sys.argv = ["connectctl", *sys.argv[1:]]
main.app = lambda: sys.exit(main._run(work, sys.argv[1:]))
main.main()
"""
ASLEEP = "[time.sleep(0.05) for _ in range(72_000)]"
"""Waits in Python: many short sleeps, as a signal that comes between Python's look for signals and
a call that waits is heard only when the call is over.
"""
BLOCKED = "import ctypes; [ctypes.CDLL(None).sleep(3600) for _ in range(99)]"
"""Waits in C, where Python hears no signal and other threads run, as calls of librdkafka do."""


@contextmanager
def script(
    tmp_path: Path, scope: str, *, wait: str = ASLEEP, last: str = "pass"
) -> Iterator[subprocess.Popen[str]]:
    path = tmp_path / "work.py"
    path.write_text(LONG.format(scope=scope, wait=wait, last=last))
    with started(str(path)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process


@pytest.mark.parametrize("wait", [ASLEEP, BLOCKED], ids=["in Python", "in C"])
def test_what_was_begun_is_named_with_the_command_that_takes_it_up(
    tmp_path: Path, wait: str
) -> None:
    with script(tmp_path, "interrupts.resumable('connectctl runs resume R')", wait=wait) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (
        130,
        "error: Interrupted. Resume: connectctl runs resume R\n",
    )


def test_a_last_act_that_hangs_does_not_keep_the_process(tmp_path: Path) -> None:
    with script(tmp_path, "contextlib.nullcontext()", last=BLOCKED) as process:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SOON)[1] == "error: Interrupted\n"
    assert process.returncode == 130


def test_what_has_to_be_put_in_order_is_and_a_second_time_ends_that_too(tmp_path: Path) -> None:
    scope = "interrupts.put_in_order('removing it')"
    with script(tmp_path, scope, last="time.sleep(2); print('in order', flush=True)") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out) == (130, "in order\n")
    assert err == "Interrupted: removing it; ^C again ends it immediately.\nerror: Interrupted\n"
    with script(tmp_path, scope, last=BLOCKED) as process:
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SOON)
    assert process.returncode == 130


def test_an_interrupt_while_modules_are_loaded_is_silent(tmp_path: Path) -> None:
    path = tmp_path / "loading.py"
    path.write_text(
        "import os, signal, sys\n"
        "from connectctl.cli import __main__ as entry\n"
        "class Loading:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'connectctl.cli.main':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Loading())\n"
        "entry.main()\n"
    )
    with started(str(path), "--version") as process:
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")
