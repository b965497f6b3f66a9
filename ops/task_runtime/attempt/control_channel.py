"""A line between a run's driver and its tasks: they tell how far they are, it tells them to stop.

One TCP connection for each attempt of a task. Nothing of the guarantees rests on it: a task that cannot connect works on
until its lease ends. One whose driver is gone hears so at once, and ends.
"""

from __future__ import annotations

import json
import secrets
import select
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_TIMEOUT = 3.0
LONGEST_LINE = 4096
STOP, LEASE_OVER = "stop", "lease-over"
"""What the driver says to tasks: to end for good, or because the leases of a round end together."""
HEARTBEAT = 1.0
"""Seconds between two words of a task."""


@dataclass(frozen=True)
class DriverAddress:
    """Where the driver listens, and the word by which it knows its own tasks."""

    host: str
    port: int
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class SocketListener:
    """Where a driver is reached by its tasks: ``serve`` gets each connection, on a thread of its own."""

    def __init__(self, host: str, bind: str | None, serve: Callable[[socket.socket], None]):
        self._server = socket.create_server((bind or host, 0))
        self._serve = serve
        self.address = DriverAddress(host, self._server.getsockname()[1], secrets.token_hex(16))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()


class QuestionListener(SocketListener):
    """Where a driver answers its tasks: ``answer`` gets each question, on a thread of its connection."""

    def __init__(self, host: str, bind: str | None, answer: Callable[[Mapping[str, Any]], Any]):
        self._answer = answer
        super().__init__(host, bind, self._answer_questions)

    def _answer_questions(self, line: socket.socket) -> None:
        with line, line.makefile("rwb") as words:
            try:
                while word := words.readline():
                    question = json.loads(word)
                    if not secrets.compare_digest(str(question["word"]), self.address.token):
                        return
                    words.write(json.dumps(self._answer(question)).encode() + b"\n")
                    words.flush()
            except (OSError, ValueError, KeyError, TypeError):
                return


def ask(
    address: DriverAddress,
    question: Mapping[str, Any],
    *,
    connect: float = CONNECT_TIMEOUT,
    answer: float | None = None,
) -> Any:
    """What the driver answers, within ``answer`` seconds. Raises ``OSError`` or ``ValueError`` where it does not."""
    asked = json.dumps({"word": address.token, **question}).encode() + b"\n"
    with socket.create_connection((address.host, address.port), connect) as line, line.makefile("rb") as words:
        line.settimeout(answer or connect)
        line.sendall(asked)
        return json.loads(words.readline())


def driver_address(spark: SparkSession) -> tuple[str, str | None]:
    """Where executors reach the driver, and where it listens for them."""
    conf: Any = spark.conf
    host = conf.get("spark.driver.host", None)
    if host is None:
        return socket.gethostname(), ""
    return host, conf.get("spark.driver.bindAddress", None) or host


class DriverChannel:
    """The driver's end. ``messages`` is what each task last said, by its number; ``stop`` is sent to all, now and later."""

    def __init__(self, host: str, bind: str | None = None):
        self.messages: dict[int, Mapping[str, Any]] = {}
        self._stopping = False
        self._lines: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = SocketListener(host, bind, self._listen)
        self.address = self._listener.address

    def stop(self) -> None:
        """Tell every task to end between two transactions."""
        with self._lock:
            self._stopping = True
            for line in self._lines:
                _send_line(line, STOP)

    def end_leases(self) -> None:
        """Tell those tasks that are there that their leases are over; those of the next round hear nothing of it."""
        with self._lock:
            for line in self._lines:
                _send_line(line, LEASE_OVER)

    def close(self) -> None:
        """Hang up; tasks that are still there end."""
        self._listener.close()
        with self._lock:
            for line in self._lines:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)

    def _listen(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as words:
            try:
                if words.readline(LONGEST_LINE).strip() != self.address.token.encode():
                    return
                with self._lock:
                    self._lines.add(line)
                    if self._stopping:
                        _send_line(line, STOP)
                while word := words.readline(LONGEST_LINE):
                    said = json.loads(word)
                    self.messages[int(said["task"])] = said
            except (OSError, ValueError, KeyError):
                return
            finally:
                with self._lock:
                    self._lines.discard(line)


def _send_line(line: socket.socket, word: str) -> None:
    with suppress(OSError):
        line.sendall(word.encode() + b"\n")


class TaskChannel:
    """A task's end; made in a task. Any thread of it may say something, and one listens."""

    def __init__(self, address: DriverAddress):
        self._stopped = False
        self.lease_over = False
        """Whether the driver ends the lease, as far as ``stopped`` has read."""
        self._received = b""
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        with suppress(OSError):
            self._line = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT)
            self._line.setblocking(True)
            _send_line(self._line, address.token)

    @property
    def stopped(self) -> bool:
        """Whether the driver wants an end, or is gone."""
        while not self._stopped and self._line is not None:
            try:
                readable, _, _ = select.select([self._line], [], [], 0)
                if not readable:
                    break
                received = self._line.recv(LONGEST_LINE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except (OSError, ValueError):
                received = b""
            self._received += received
            words = self._received.split(b"\n")
            self._received = words.pop()
            self._stopped = not received or STOP.encode() in words  # nothing is heard where the other side is closed
            self.lease_over = self.lease_over or LEASE_OVER.encode() in words
        return self._stopped

    def send(self, message: Mapping[str, Any]) -> None:
        if self._line is not None:
            with self._lock:
                _send_line(self._line, json.dumps(message))

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
