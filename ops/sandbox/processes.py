"""The JVMs of a sandbox as processes of this machine: started apart from this one, found again,
ended.

Every JVM carries ``-Dconnectctl.sandbox=<directory>`` on its command line. What has the mark
belongs to the sandbox, whether or not anyone lived to write its pid down; what does not have it is
never touched.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.wait import wait_until

if TYPE_CHECKING:
    import psutil

_MARK = "-Dconnectctl.sandbox="
_CLOCK_STEP = 2.0
"""Seconds by which a start time may seem to move when the system's clock is set."""
_EXECVE = 1.0
"""Seconds for which a process may have no command line; measured: less than 0.01."""


def require_psutil() -> None:
    """Raise ConnectctlError with the package to install if psutil is missing."""
    try:
        import psutil  # noqa: F401  # whether it is installed
    except ImportError as error:
        raise ConnectctlError(
            "The embedded cluster needs psutil, which is not installed",
            next_step="Run: pip install 'connectctl[spark]'.",
            code="no-psutil",
        ) from error


def mark(root: Path) -> str:
    """Return the JVM option that marks a process of the sandbox in ``root``."""
    return f"{_MARK}{root}"


def spawn(command: Sequence[str], *, cwd: Path, log: Path) -> tuple[int, float]:
    """Start a process that outlives this one, in its own session, its output appended to ``log``:
    pid and start time.

    The shell between them leaves the process to init, which reaps it however long this one lives.
    """
    import psutil

    with log.open("ab") as output:
        # The log is the shell's standard error: what the shell itself has to say belongs there too.
        started = subprocess.run(
            ["/bin/sh", "-c", '"$@" >&2 & echo $!', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=cwd,
            start_new_session=True,
            check=True,
        )
    pid = int(started.stdout)
    try:
        return pid, psutil.Process(pid).create_time()
    except psutil.Error:
        return pid, 0.0  # already gone, as the wait for it will show


def is_alive(pid: int | None, created: float, root: Path) -> bool:
    """Return whether the process with this pid is still the one that was started, and not a later
    one with its number.
    """
    return pid is not None and _process(pid, created, root) is not None


def usage(pid: int, created: float, root: Path) -> tuple[float, int] | None:
    """Uptime in seconds and resident memory in bytes, None when the process is gone."""
    import psutil

    process = _process(pid, created, root)
    try:
        return (time.time() - process.create_time(), process.memory_info().rss) if process else None
    except psutil.Error:
        return None


def end(pid: int, created: float, root: Path, *, kill: bool, timeout: float) -> bool:
    """Ask a process to stop, or kill it, and wait until it is gone. Kills it after
    ``timeout`` seconds.

    Returns whether it ended by itself.
    """
    import psutil

    process = _process(pid, created, root)
    if process is None:
        if (dying := _dying(pid, created)) is not None:
            with suppress(psutil.NoSuchProcess):
                dying.kill()
            _gone([dying], timeout)
        return False
    with suppress(psutil.NoSuchProcess):
        if not kill:
            process.terminate()
            if _gone([process], timeout):
                return True
        process.kill()
    _gone([process], timeout)
    return False


def sweep(root: Path, *, timeout: float = 15.0) -> int:
    """Kill every process that carries the mark of ``root``, and return their number."""
    import psutil

    expected, killed = mark(root), 0
    while found := [process for process, its_mark in marked() if its_mark == expected]:
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
                killed += 1
        if not _gone(found, timeout):
            raise ConnectctlError(
                f"Could not kill a process of the sandbox {root}", why=f"pid {found[0].pid}"
            )
    return killed


def roots() -> set[Path]:
    """Return the directories of all sandboxes that have a process now, also of those whose
    directory is gone.
    """
    return {Path(its_mark.removeprefix(_MARK)) for _, its_mark in marked()}


def marked() -> Iterator[tuple[psutil.Process, str]]:
    """Yield every running process that carries a mark, with the mark."""
    import psutil

    for process in psutil.process_iter():
        if its_mark := next(
            (word for word in _words(process)[:12] if word.startswith(_MARK)), None
        ):
            yield process, its_mark


def _words(process: psutil.Process) -> list[str]:
    """Return the command line, empty for a process that has none or is gone.

    While a process is being replaced by its program (execve) its command line is empty for a
    moment.
    """
    import psutil

    end = time.monotonic() + _EXECVE
    with suppress(psutil.Error):
        while not (words := list(process.cmdline())):
            # A thread of the kernel has no program, a zombie has none any more.
            if (
                time.monotonic() > end
                or process.status() == psutil.STATUS_ZOMBIE
                or not process.exe()
            ):
                break
            time.sleep(0.002)
        return words
    return []


def _process(pid: int, created: float, root: Path) -> psutil.Process | None:
    import psutil

    try:
        process = psutil.Process(pid)
        same = _is_of(process, created) and mark(root) in _words(process)
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def _is_of(process: psutil.Process, created: float) -> bool:
    return bool(abs(process.create_time() - created) < _CLOCK_STEP)


def _dying(pid: int, created: float) -> psutil.Process | None:
    """Return the process if it was killed and may still hold its ports: it has no command line any
    more.
    """
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if _is_of(process, created) and process.status() == psutil.STATUS_ZOMBIE:
            return process
    return None


def _gone(processes: Sequence[psutil.Process], timeout: float) -> bool:
    """Wait until nothing of the processes is left but an exit status. A process is a zombie as soon
    as its main thread has ended, while its other threads still hold its files and ports.
    """
    import psutil

    def lives(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            is_zombie = process.status() == psutil.STATUS_ZOMBIE
            return bool(process.is_running() and not (is_zombie and process.num_threads() <= 1))
        return False

    return (
        wait_until(lambda: None if any(map(lives, processes)) else True, timeout, 0.02) is not None
    )
