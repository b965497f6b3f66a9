"""Processes with a mark are found and ended, others are left alone."""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import archives, processes
from connectctl.ops.sandbox.jars import ivy

_EXIT_OF_A_THREAD = {"x86_64": 60, "aarch64": 93}
"""The number of the system call that ends one thread, by machine."""


def sleeper(root: Path, log: Path, code: str = "import time; time.sleep(60)") -> tuple[int, float]:
    return processes.spawn([sys.executable, "-c", code, processes.mark(root)], cwd=root, log=log)


def loading(pid: int, patch: pytest.MonkeyPatch) -> Counter[int]:
    """Have the process show no command line the first three times; gives how often each was asked
    for.
    """
    real, asked = psutil.Process.cmdline, Counter[int]()

    def cmdline(process: psutil.Process) -> list[str]:
        asked[process.pid] += 1
        return [] if process.pid == pid and asked[pid] < 4 else real(process)

    patch.setattr(psutil.Process, "cmdline", cmdline)
    return asked


def test_what_is_spawned_is_found_by_its_mark_and_swept(tmp_path: Path) -> None:
    root, other = tmp_path / "a", tmp_path / "a b"
    for each in (root, other):
        each.mkdir()
    pid, created = sleeper(root, tmp_path / "log")
    neighbour, its_created = sleeper(other, tmp_path / "log")
    assert {root, other} <= processes.roots()
    assert processes.is_alive(pid, created, root)
    assert not processes.is_alive(pid, created, other)
    assert not processes.is_alive(pid, created - 60, root)
    assert processes.sweep(root) == 1
    assert not processes.is_alive(pid, created, root)
    assert processes.is_alive(neighbour, its_created, other)
    assert processes.sweep(other) == 1
    assert processes.sweep(root) == 0


def test_what_is_spawned_outlives_its_starter_and_writes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    pid, _ = sleeper(
        tmp_path,
        log,
        "import sys, time; print('out', flush=True); sys.stderr.write('err'); time.sleep(60)",
    )
    process = psutil.Process(pid)
    assert process.ppid() != psutil.Process().pid
    deadline = time.monotonic() + 600
    while not log.read_text().endswith("err") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert log.read_text() == "before\nout\nerr"
    assert processes.end(pid, process.create_time(), tmp_path, kill=False, timeout=60)


def test_one_whose_command_line_is_empty_while_its_program_is_loaded_is_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, created = sleeper(tmp_path, tmp_path / "log")
    with monkeypatch.context() as patch:
        loading(pid, patch)
        assert processes.is_alive(pid, created, tmp_path)
        assert not processes.is_alive(pid, created - 60, tmp_path)
    assert processes.end(pid, created, tmp_path, kill=True, timeout=60) is False
    assert not processes.is_alive(pid, created, tmp_path)


def test_one_whose_program_is_being_loaded_is_swept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, _ = sleeper(tmp_path, tmp_path / "log")
    asked = loading(pid, monkeypatch)
    assert processes.sweep(tmp_path) == 1
    assert asked[pid] >= 4


def test_one_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', "
        "'w'); time.sleep(60)"
    )
    pid, created = sleeper(tmp_path, tmp_path / "log", deaf)
    deadline = time.monotonic() + 600
    while not (tmp_path / "deaf").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not processes.end(pid, created, tmp_path, kill=False, timeout=0.3)
    assert not processes.is_alive(pid, created, tmp_path)
    assert not processes.end(pid, created, tmp_path, kill=True, timeout=1)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in _EXIT_OF_A_THREAD,
    reason="ends its main thread alone by a system call of Linux",
)
def test_one_whose_main_thread_has_ended_is_waited_for_until_its_port_is_free(
    tmp_path: Path,
) -> None:
    """So a JVM dies that is killed: it is a zombie, and its other threads have its port."""
    code = f"""
import ctypes, os, socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: (time.sleep(60), os._exit(0))).start()
open("port", "w").write(str(listener.getsockname()[1]))
ctypes.CDLL(None).syscall({_EXIT_OF_A_THREAD[platform.machine()]}, 0)
"""
    pid, created = sleeper(tmp_path, tmp_path / "log", code)
    process = psutil.Process(pid)
    while process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    port = int((tmp_path / "port").read_text())
    socket.create_connection(("127.0.0.1", port)).close()
    assert processes.end(pid, created, tmp_path, kill=True, timeout=60) is False
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_process_without_the_mark_is_not_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as innocent:
        created = psutil.Process(innocent.pid).create_time()
        assert not processes.end(innocent.pid, created, tmp_path, kill=True, timeout=1)
        assert innocent.poll() is None
        innocent.kill()


@pytest.mark.parametrize(
    ("module", "need"), [("psutil", processes.require_psutil), ("pyspark", ivy.ivy_jar)]
)
def test_what_is_not_installed_is_named_in_one_line(
    module: str, need: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert callable(need)
    with pytest.raises(
        ConnectctlError, match=r"not installed\. Run: pip install 'connectctl\[spark\]'\.$"
    ):
        need()


def test_an_archive_is_used_if_it_is_there_and_written_if_it_is_not(tmp_path: Path) -> None:
    kept, draft = archives.archive(tmp_path, archives.BROKER, "17"), tmp_path / "draft.jsa"
    assert kept != archives.archive(tmp_path, archives.BROKER, "21")
    assert f"-XX:ArchiveClassesAtExit={draft}" in archives.options(kept, draft)
    assert len(archives.options(kept, None)) == 2
    archives.keep(draft, kept)
    assert len(archives.options(kept, draft)) == 2
    draft.write_text("classes")
    archives.keep(draft, kept)
    assert f"-XX:SharedArchiveFile={kept}" in archives.options(kept, draft)
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]
