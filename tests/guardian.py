"""Ends what a session of the tests leaves running, however the session ends, and removes its
directory.

Each process of pytest starts a guardian, which holds the other end of a pipe: the system closes it
when the process ends, also after kill -9. Everything that the process starts carries the session in
its environment, and so does everything below that; brokers and workers of sandboxes carry the
session's directory on their command line, too. A guardian ends processes with that mark and no
others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

MARK = "TESTS_SESSIONS_OF_CONNECTCTL"
"""The variable with the directories of all sessions that a process belongs to: tests run sessions
within sessions.

It is none of the program's own, which tests take out of the environment of somebody new.
"""
_SANDBOX = "-Dconnectctl.sandbox="
GRACE = 5.0
"""Seconds for processes to end by themselves: a Spark removes its directories meanwhile."""


def begin() -> Path:
    """Start a guardian of this process; gives the session's directory."""
    directory = Path(tempfile.mkdtemp(prefix=f"connectctl-tests-{os.getpid()}-")).resolve()
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    reading, _kept_open = os.pipe()
    command = [sys.executable, "-P", __file__, str(reading), str(directory)]
    with (directory / "guardian.log").open("wb") as log:
        # A shell between them leaves the guardian to init. In a session of its own no signal to
        # this one's group ends it.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=unmarked,
            pass_fds=[reading],
            start_new_session=True,
            check=True,
        )
    os.close(reading)
    outer = os.environ.get(MARK)
    os.environ[MARK] = f"{outer}{os.pathsep}{directory}" if outer else str(directory)
    return directory


def _guard(pipe: int, directory: Path) -> None:
    import shutil

    import psutil  # now: when the session has ended, its virtual environment may be removed, too

    def belongs(process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            if str(directory) in process.environ().get(MARK, "").split(os.pathsep):
                return process.status() != psutil.STATUS_ZOMBIE
        with suppress(psutil.Error):
            return any(
                word.startswith(f"{_SANDBOX}{directory}{os.sep}") for word in process.cmdline()
            )
        return False

    def left() -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if belongs(process)]

    def send(processes: list[psutil.Process], *, kill: bool) -> None:
        for process in processes:
            with suppress(psutil.Error):
                process.kill() if kill else process.terminate()

    while os.read(pipe, 1):
        continue
    found = left()
    send(found, kill=False)
    psutil.wait_procs(found, GRACE)
    while found := left():
        # One that is being started just now may come up while the others end.
        send(found, kill=True)
        psutil.wait_procs(found, GRACE)
    shutil.rmtree(directory)


if __name__ == "__main__":
    _guard(int(sys.argv[1]), Path(sys.argv[2]))
