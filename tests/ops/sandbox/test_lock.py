"""One command at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.sandbox.lock import is_held, locked


def test_a_directory_that_is_not_there_is_made_or_not(tmp_path: Path) -> None:
    with locked(tmp_path / "a", create=False, timeout=1) as lock:
        assert lock is None
    assert not (tmp_path / "a").exists()
    with locked(tmp_path / "a" / "b", create=True, timeout=1) as lock:
        assert lock is not None
        assert is_held(tmp_path / "a" / "b")
    assert not is_held(tmp_path / "a" / "b")


def test_the_second_waits_and_says_so_once_and_then_gives_up(tmp_path: Path) -> None:
    said = []
    with (
        locked(tmp_path, create=True, timeout=1),
        pytest.raises(TimedOut, match="Another connectctl process is using"),
        locked(tmp_path, create=True, timeout=0.2, on_wait=lambda: said.append(1)),
    ):
        pass
    assert said == [1]


def test_who_waited_for_a_directory_that_is_gone_makes_it_again(tmp_path: Path) -> None:
    place, order = tmp_path / "x", []

    waits = threading.Event()

    def second() -> None:
        with locked(place, create=True, timeout=60, on_wait=waits.set):
            order.append(place.is_dir())

    with locked(place, create=True, timeout=1):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert waits.wait(60)
        place.rmdir()
    waiting.join(60)
    assert order == [True]


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from connectctl.ops.sandbox.lock import "
        "locked\nwith locked(Path(sys.argv[1]), create=True, timeout=1): print('held', "
        "flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_held(tmp_path)
        holder.kill()
    assert not is_held(tmp_path)


def test_a_directory_that_cannot_be_created_is_an_error_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mkdir(*given: object, **more: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/none")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with (
        pytest.raises(ConnectctlError, match="cannot be created"),
        locked(Path("/proc/none"), create=True, timeout=1),
    ):
        pass
