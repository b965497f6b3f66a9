"""Which attempt of a task is the newest, where Spark runs several at once: copies by speculation, and stages tried again.

They have one transactional id, so that the newest fences the others. Spark takes the result of whichever comes to its
end first, and one that was fenced does so early: its end would count for the task, while the copy still writes. So an
attempt that was fenced asks the driver; where there is a newer one, it fails, and Spark waits for the other.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from typing import Any

from connectctl.ops.task_runtime.attempt.control_channel import CONNECT_TIMEOUT, Address, SocketListener


class Superseded(Exception):
    """Another attempt of the same task has taken over: no end of this one is the task's."""


class AttemptRegistry:
    """The driver's end: open while a frame is written."""

    def __init__(self, host: str, bind: str | None = None):
        self._newest: dict[int, int] = {}
        self._lock = threading.Lock()
        self._listener = SocketListener(host, bind, self._answer)
        self.address = self._listener.address

    def close(self) -> None:
        """Answer no more."""
        self._listener.close()

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile("rwb") as words:
            try:
                asked = json.loads(words.readline())
                if not secrets.compare_digest(str(asked["word"]), self.address.token):
                    return
                task = int(asked["task"])
                with self._lock:
                    if asked["begins"]:
                        self._newest[task] = int(asked["attempt"])
                    newest = self._newest.get(task)
                words.write(json.dumps(newest).encode() + b"\n")
                words.flush()
            except (OSError, ValueError, KeyError, TypeError):
                return


class Attempt:
    """An attempt's end: ``number`` is Spark's own of it, which no other has."""

    def __init__(self, address: Address, task: int, number: int):
        self._address, self._task, self._number = address, task, number

    def begin(self) -> None:
        """Be the newest, before anything older is fenced."""
        self._ask(begins=True)

    @property
    def is_superseded(self) -> bool:
        """Whether there is a newer one. A driver that cannot be asked has given the frame up: then nothing depends on it."""
        newest = self._ask(begins=False)
        return newest is not None and newest != self._number

    def _ask(self, *, begins: bool) -> Any:
        asked = {"word": self._address.token, "task": self._task, "attempt": self._number, "begins": begins}
        try:
            where = (self._address.host, self._address.port)
            with socket.create_connection(where, CONNECT_TIMEOUT) as line, line.makefile("rb") as words:
                line.sendall(json.dumps(asked).encode() + b"\n")
                return json.loads(words.readline())
        except (OSError, ValueError):
            return None
