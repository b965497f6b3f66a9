"""The connection between a run's driver and its tasks: tasks report their progress, the driver
stops them.

One TCP connection for each attempt of a task, with a heartbeat in both directions. No guarantee
depends on it. A task whose driver has exited detects it immediately, and ends. A task that hears
nothing for ``SILENCE`` ends too: its driver is suspended or its host is gone, or it could not
connect.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_TIMEOUT = 3.0
LONGEST_LINE = 4096
LONGEST_MESSAGE = 1024 * 1024
"""Bytes of a task's message, with the trace of a failure."""
LONGEST_QUESTION = 64 * 1024 * 1024
"""Bytes of a request of a task: a hundred thousand source partitions by their names are a tenth of
that.
"""
GREETING = 10.0
"""Seconds that a connection has for the token, and a request for its arrival."""
MOST_STRANGERS, MOST_CONNECTIONS = 64, 4096
"""Connections that have not sent the token yet, and all connections; those beyond are closed."""
STOP, LEASE_OVER, ALIVE = "stop", "lease-over", ""
"""The driver's lines to tasks: end the run, end because the leases of a round end together, or
continue.
"""
HEARTBEAT = 1.0
"""Seconds between two messages of a task, and between two lines of the driver."""
SILENCE = 30.0
"""Seconds without a line of the driver after which a task ends between two transactions."""


@dataclass(frozen=True)
class DriverAddress:
    """The address on which the driver listens, and the token that authenticates its tasks."""

    host: str
    port: int
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class SocketListener:
    """The driver's listener for its tasks: ``serve`` is called with each connection, on a separate
    thread.

    A connection begins with the token, of which the length is known: nothing else is read before
    it, and not for long.
    """

    def __init__(self, host: str, bind: str | None, serve: Callable[[socket.socket], None]):
        self._server = socket.create_server((bind or host, 0))
        self._serve = serve
        self._strangers = threading.BoundedSemaphore(MOST_STRANGERS)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
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
            if not self._connections.acquire(blocking=False):
                line.close()
            elif not self._strangers.acquire(blocking=False):
                self._connections.release()
                line.close()
            else:
                threading.Thread(target=self._greet, args=(line,), daemon=True).start()

    def _greet(self, line: socket.socket) -> None:
        try:
            with line:
                try:
                    known = _has_token(line, self.address.token)
                finally:
                    self._strangers.release()
                if known:
                    self._serve(line)
        finally:
            self._connections.release()


def _has_token(line: socket.socket, token: str) -> bool:
    """Return whether the connection begins with the token and the end of a line, in time."""
    expected, received = f"{token}\n".encode(), b""
    deadline = time.monotonic() + GREETING
    try:
        while len(received) < len(expected):
            line.settimeout(max(deadline - time.monotonic(), 0.001))
            if not (more := line.recv(len(expected) - len(received))):
                return False
            received += more
        line.settimeout(None)
    except OSError:
        return False
    return secrets.compare_digest(received, expected)


class QuestionListener(SocketListener):
    """The driver's listener for requests of tasks: ``answer`` gets each request, on the
    connection's thread.
    """

    def __init__(self, host: str, bind: str | None, answer: Callable[[Mapping[str, Any]], Any]):
        self._answer = answer
        super().__init__(host, bind, self._answer_questions)

    def _answer_questions(self, line: socket.socket) -> None:
        with line.makefile("rwb") as words:
            try:
                line.settimeout(GREETING)
                while (word := words.readline(LONGEST_QUESTION)).endswith(b"\n"):
                    words.write(json.dumps(self._answer(json.loads(word))).encode() + b"\n")
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
    """Return the driver's response, within ``answer`` seconds. Raises ``OSError`` or ``ValueError``
    without one.
    """
    request = f"{address.token}\n{json.dumps(question)}\n".encode()
    with (
        socket.create_connection((address.host, address.port), connect) as line,
        line.makefile("rb") as words,
    ):
        line.settimeout(answer or connect)
        line.sendall(request)
        return json.loads(words.readline())


def driver_address(spark: SparkSession) -> tuple[str, str | None]:
    """Return the host at which executors reach the driver, and the address that it binds."""
    conf: Any = spark.conf
    host = conf.get("spark.driver.host", None)
    if host is None:
        return socket.gethostname(), ""
    return host, conf.get("spark.driver.bindAddress", None) or host


class DriverChannel:
    """The driver's end. ``messages``: the last of each task's newest attempt in the current round,
    by its number, with fields of earlier ones that it lacks. ``stop`` is also sent to later
    attempts. ``answer`` is sent to an attempt that asks.
    """

    def __init__(self, host: str, bind: str | None = None):
        self.messages: dict[int, Mapping[str, Any]] = {}
        self._notes: list[tuple[int, str]] = []
        self.answer: Callable[[], Any] = dict
        self._stopping = False
        self._lines: set[socket.socket] = set()
        self._newest: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener = SocketListener(host, bind, self._listen)
        self.address = self._listener.address
        threading.Thread(target=self._beat, daemon=True).start()

    @property
    def connected(self) -> frozenset[int]:
        """The tasks whose newest attempt in the current round has a connection."""
        with self._lock:
            return frozenset(self._newest)

    def take_lines(self) -> list[tuple[int, str]]:
        """Return the new messages of tasks for the user, each with its task."""
        with self._lock:
            found, self._notes = self._notes, []
        return found

    def begin_round(self) -> None:
        """Forget all messages; attempts that are connected already report nothing any more."""
        with self._lock:
            self._newest.clear()
            self.messages.clear()

    def stop(self) -> None:
        """Stop every task between two transactions."""
        self._stopping = True
        self._send(STOP)

    def end_leases(self) -> None:
        """End the leases of the connected tasks, not of those of the next round."""
        self._send(LEASE_OVER)

    def close(self) -> None:
        """Close all connections; tasks that are still connected end."""
        self._closed.set()
        self._listener.close()
        with self._lock:
            for line in self._lines:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)

    def _beat(self) -> None:
        while not self._closed.wait(HEARTBEAT):
            self._send(STOP if self._stopping else ALIVE)

    def _send(self, word: str) -> None:
        with self._lock:
            for line in self._lines:
                _send_now(line, word)

    def _listen(self, line: socket.socket) -> None:
        task, before = None, dict[str, Any]()
        with line.makefile("rb") as words:
            try:
                while word := words.readline(LONGEST_MESSAGE):
                    message = json.loads(word)
                    if "asks" in message:
                        line.sendall(json.dumps(self.answer()).encode() + b"\n")
                        continue
                    with self._lock:
                        if task is None:
                            task = int(message["task"])
                            self._newest[task] = line
                            self._lines.add(line)
                            _send_now(line, STOP if self._stopping else ALIVE)
                        self._notes += [(task, reason) for reason in message.pop("lines", ())]
                        before |= message
                        if self._newest.get(task) is line:
                            self.messages[task] = dict(before)
            except (OSError, ValueError, KeyError, TypeError):
                return
            finally:
                with self._lock:
                    self._lines.discard(line)
                    if task is not None and self._newest.get(task) is line:
                        del self._newest[task]


def _send_now(line: socket.socket, word: str) -> None:
    """Send a line if the task reads; it is sent again as long as it holds."""
    with suppress(OSError):
        line.send(word.encode() + b"\n", socket.MSG_DONTWAIT)


class TaskChannel:
    """The end of an attempt of ``task``; created in the task. Any of its threads may send, and one
    receives.
    """

    def __init__(self, address: DriverAddress, task: int):
        self.attempt = uuid.uuid4().hex
        self._stopped = False
        self.lease_over = False
        """Whether the driver has ended the lease, as of the last read of ``stopped``."""
        self.last_line = time.monotonic()
        """When the driver was heard last, as of the last read of ``stopped``."""
        self._received = b""
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        with suppress(OSError):
            self._line = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT)
            self._line.setblocking(True)
            # A suspended driver reads nothing, and must not keep the task.
            self._line.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECT_TIMEOUT), 0)
            )
            self._line.sendall(f"{address.token}\n".encode())
        self.send({"task": task})

    @property
    def connected(self) -> bool:
        """Whether the task could connect."""
        return self._line is not None

    @property
    def stopped(self) -> bool:
        """Whether the driver has requested the end, or has exited."""
        while not self._stopped and self._line is not None:
            try:
                received = self._line.recv(LONGEST_LINE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                received = b""
            self.last_line = time.monotonic()
            self._received += received
            words = self._received.split(b"\n")
            self._received = words.pop()
            # empty if the driver closed the connection
            self._stopped = not received or STOP.encode() in words
            self.lease_over = self.lease_over or LEASE_OVER.encode() in words
        return self._stopped

    def send(self, message: Mapping[str, Any]) -> None:
        if self._line is not None:
            with self._lock, suppress(OSError):
                self._line.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
