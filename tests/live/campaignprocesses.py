"""The attempts of a campaign: processes of the machine, and what they report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
from live import campaigntask
from live.campaignattempt import Attempt

PATIENCE = 150.0
"""Seconds for whatever has to happen, however slow the machine is."""


@dataclass
class Running:
    """An attempt that was started: its process, and what it has told. ``over`` is how it ended."""

    attempt: Attempt
    pid: int = 0
    process: psutil.Process | None = None
    """None before it has begun, and where it is gone already."""
    commits: int = 0
    over: str | None = None
    why: str | None = None
    doubts: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    """How far each of its instances read the offsets topic, and what it found."""
    began: str = field(default_factory=lambda: time.strftime("%X"))
    ended: str = ""

    def __str__(self) -> str:
        doubts = "; ".join(self.doubts[-3:]) or "no doubts"
        how = (
            f"{self.commits} producers committed, {self.over or 'runs'}, {self.began} to "
            f"{self.ended or 'now'}"
        )
        which = f"task {self.attempt.task} of generation {self.attempt.generation}"
        return f"{which}, process {self.pid}: {how}; {doubts}"

    def send(self, number: int) -> None:
        if self.over is None and self.process is not None:
            with suppress(psutil.NoSuchProcess):
                self.process.send_signal(number)


class Processes:
    """The process that forks attempts, and what they report."""

    def __init__(self) -> None:
        self.attempts: list[Running] = []
        self._lock = threading.Condition()
        self._by_pid: dict[int, Running] = {}
        env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        command = [sys.executable, "-W", "ignore", campaigntask.__file__]
        pipe = subprocess.PIPE
        self._root = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, env=env, text=True, start_new_session=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def doubts(self) -> int:
        """How many there were up to now."""
        return sum(len(running.doubts) for running in self.attempts)

    def start(self, attempt: Attempt) -> Running:
        """A new process for it."""
        assert self._root.stdin is not None
        running = Running(attempt)
        with self._lock:
            self.attempts.append(running)
        self._root.stdin.write(campaigntask.line_of(attempt))
        self._root.stdin.flush()
        with self._lock:
            assert self._lock.wait_for(lambda: running.pid, PATIENCE), "no process was forked"
        return running

    def killed(self, running: Running) -> None:
        """End it at once, and expect no report."""
        running.send(signal.SIGKILL)
        with self._lock:
            running.over = running.over or "killed"

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._root.pid, signal.SIGKILL)
        self._root.wait()
        self._reader.join()
        for pipe in (self._root.stdin, self._root.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def _read(self) -> None:
        assert self._root.stdout is not None
        for line in self._root.stdout:
            told = json.loads(line)
            with self._lock:
                self._take(told)
                self._lock.notify_all()

    def _take(self, told: dict[str, Any]) -> None:
        if told["what"] == "begins":
            running = self._by_pid[told["pid"]] = self.attempts[told["number"] - 1]
            running.pid = told["pid"]
            with suppress(psutil.NoSuchProcess):
                running.process = psutil.Process(running.pid)
            return
        running = self._by_pid[told["pid"]]
        if told["what"] == "reads":
            running.read.append(f"{time.strftime('%X')} to {told['to']}: {told['known']}")
        elif told["what"] == "commits":
            running.commits += 1
        elif told["what"] == "doubt":
            running.doubts.append(told["why"])
        else:
            running.over, running.why = running.over or told["how"], told["why"]
            running.ended = time.strftime("%X")
