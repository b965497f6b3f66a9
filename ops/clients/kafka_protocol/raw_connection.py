"""One broker's connection, made, encrypted, logged in, written and read by its owner's thread.

kafka-python takes 4 kB from a socket at a time and keeps an answer until it is whole. Batch headers
are 61 bytes in every 16 kB, so that here the answer is walked through while it arrives, and what
lies between two headers is overwritten.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from connectctl.ops.clients.connection_errors import login_refused
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.reauthentication import Login, login
from connectctl.ops.core.errors import NotAuthorized

_BUFFER = 1 << 20
SMALL_ROOM = 1 << 14
"""Bytes for answers that are small, most of the time."""
IDLE = 60.0
"""Seconds after which a connection without a request is not used any more: brokers close those that
are idle.
"""
SHORTEST = 0.1
"""The minimum limit of a wait in seconds."""
_AT_ONCE = 512
"""Parts of a request that are given to the kernel in one call, which takes 1,024."""
_SIZE = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_HEADER = struct.Struct(">hh")
_FRAME = struct.Struct(">ii")


class Readable(Protocol):
    def fileno(self) -> int:
        """Return its descriptor."""


R = TypeVar("R", bound=Readable)


def readable(sockets: Iterable[R], seconds: float) -> list[R]:
    """Return those of ``sockets`` that can be read, after ``seconds`` at most, however many files
    are open: ``select`` takes descriptors below 1,024.
    """
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        found: list[Any] = [key.fileobj for key, _ in selector.select(seconds)]
        return found


class Broken(OSError):
    """The connection is closed, or what was received does not answer the request. Another
    connection may be able to.
    """


class RawConnection:
    """A connection to ``broker`` that belongs to us alone. ``timeout`` in seconds bounds every wait
    for bytes.

    ``room`` is the size of its buffer in bytes, at first. It is made, encrypted and logged in
    within ``patience`` seconds, the time-out if None. Raises what ``KafkaProtocolClient.run`` does.
    """

    def __init__(
        self,
        wire: KafkaProtocolClient,
        broker: int,
        timeout: float,
        *,
        room: int = _BUFFER,
        patience: float | None = None,
    ) -> None:
        self._wire, self._timeout = wire, timeout
        self._buffer = bytearray(room)
        self._view = memoryview(self._buffer)
        self._at = self._filled = 0
        self._asked = self._answered = 0
        self._session = Login()
        self.left = 0
        """Bytes of the answer that were not taken yet."""
        self._host, port = wire.address(broker)
        try:
            self._connect(port, timeout if patience is None else patience)
        except Exception as e:
            wire.look_up_again()  # the broker may have moved
            raise wire.failure(e, "connect") from e

    def _connect(self, port: int, patience: float) -> None:
        ends = time.monotonic() + patience
        self._socket: socket.socket = socket.create_connection((self._host, port), patience)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if (context := self._wire.settings.get("ssl_context")) is not None:
                self._socket.settimeout(max(SHORTEST, ends - time.monotonic()))
                self._socket = context.wrap_socket(self._socket, server_hostname=self._host)
            if "sasl_mechanism" in self._wire.settings:
                self._socket.settimeout(max(SHORTEST, ends - time.monotonic()))
                self._log_in()
        except BaseException:
            self._socket.close()
            raise
        self._socket.settimeout(self._timeout)

    def _log_in(self) -> None:
        self._session = login(self._exchange, self._wire.settings, self._host, self._refused)

    def _refused(self, why: str) -> NotAuthorized:
        return login_refused("connect", self._wire.bootstrap, why)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def ask(self, request: Any) -> None:
        """Send ``request`` and wait until its answer begins; ``take`` and ``skip`` then go through
        it.
        """
        self.await_answer(self.send(request))

    def answer_to(self, request: Any) -> Any:
        """Return the answer to ``request``, which has begun, to its end."""
        kind = request.header.get_response_class()
        data = self.bytes(self.left)
        # The header of a flexible version ends with a byte for the number of tags, which is 0.
        return kind.decode(data[1:] if kind.flexible_version_q(request.API_VERSION) else data)

    @property
    def wants_quiet(self) -> bool:
        """Return whether the login must be renewed; ``send`` does so when no answer is pending.."""
        return self._session.is_ending

    def send(self, request: Any) -> int:
        """Send ``request`` and return its number, for ``await_answer``. Answers come in the order
        of the requests.

        Raises ``NotAuthorized`` if the login must be renewed and the broker no longer accepts it.
        """
        self._renew()
        return self._transmit(request)

    def send_many(self, key: int, version: int, bodies: Sequence[bytes]) -> range:
        """Send encoded requests of one kind under headers of version 2 (KIP-482), and return their
        numbers.

        The header of their answers ends with a byte for the number of tags, which is 0. Raises as
        ``send``.
        """
        self._renew()
        first = self._asked + 1
        self._asked += len(bodies)
        head = self._heads(key, version, flexible=True)
        frames = [head(number, len(body)) + body for number, body in enumerate(bodies, first)]
        self._socket.sendall(b"".join(frames))
        return range(first, self._asked + 1)

    def send_parts(
        self,
        key: int,
        version: int,
        parts: Sequence[bytes | memoryview],
        *,
        flexible: bool,
    ) -> int:
        """``send`` for a request whose encoded body is all of ``parts``, which are not copied where
        there is no TLS.
        """
        self._renew()
        self._asked += 1
        head = self._heads(key, version, flexible=flexible)(self._asked, sum(map(len, parts)))
        if isinstance(self._socket, ssl.SSLSocket):
            self._socket.sendall(b"".join((head, *parts)))
            return self._asked
        unsent = deque(memoryview(part) for part in (head, *parts) if part)
        while unsent:
            sent = self._socket.sendmsg(islice(unsent, _AT_ONCE))
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = unsent[0][sent:]
        return self._asked

    def _heads(self, key: int, version: int, *, flexible: bool) -> Callable[[int, int], bytes]:
        """Gives what precedes the body of the request with a number, which has so many bytes."""
        client = self._wire.client_id.encode()
        kind = _HEADER.pack(key, version)
        tail = _SHORT.pack(len(client)) + client + (b"\0" if flexible else b"")
        size = len(kind) + _SIZE.size + len(tail)
        return lambda number, length: _SIZE.pack(size + length) + kind + _SIZE.pack(number) + tail

    def allow(self, seconds: float) -> None:
        """Wait for so much longer from here on: a broker whose quota is used up reads nothing for
        this time (KIP-219); or for so much less, if negative.
        """
        self._socket.settimeout(self._timeout + seconds)

    def _renew(self) -> None:
        if self._session.is_ending and self._answered == self._asked:
            self._log_in()

    def _exchange(self, request: Any, answer: Any) -> Any:
        self.await_answer(self._transmit(request))
        return answer.decode(self.bytes(self.left))

    def _transmit(self, request: Any) -> int:
        self._asked += 1
        request.with_header(correlation_id=self._asked, client_id=self._wire.client_id)
        self._socket.sendall(request.encode(framed=True, header=True))
        return self._asked

    def await_answer(self, number: int) -> None:
        """Wait until the answer to the request with that ``number`` begins: the oldest that has
        none.
        """
        if self.left:
            raise Broken("an answer was not read to its end")
        self.left = 4
        (self.left,) = self.take(_SIZE)
        (size,) = self.take(_SIZE)
        if size != number:
            raise Broken("the answer is not to this request")
        self._answered = number

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next bytes of the answer as ``layout`` has them."""
        at = self._need(layout.size)
        found = layout.unpack_from(self._buffer, at)
        self._at = at + layout.size
        self.left -= layout.size
        return found

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes of the answer; only for what is small."""
        at = self._need(count)
        self._at = at + count
        self.left -= count
        return bytes(self._view[at : self._at])

    def into(self, buffer: memoryview) -> None:
        """The next bytes of the answer, as many as there is room in ``buffer``."""
        count = len(buffer)
        if count > self.left:
            raise Broken("the answer is shorter than its declared length")
        self.left -= count
        buffered = min(count, self._filled - self._at)
        buffer[:buffered] = self._view[self._at : self._at + buffered]
        self._at += buffered
        while buffered < count:
            buffered += self._receive(buffer[buffered:])

    def skip(self, count: int) -> None:
        """Leave out ``count`` bytes of the answer."""
        if count > self.left:
            raise Broken("the answer is shorter than its declared length")
        self.left -= count
        buffered = min(count, self._filled - self._at)
        self._at += buffered
        count -= buffered
        while count:
            count -= self._receive(self._view[: min(count, len(self._buffer))])

    def _need(self, count: int) -> int:
        """Have ``count`` bytes together, and give where they begin."""
        if count > self.left:
            raise Broken("the answer is shorter than its declared length")
        if count > len(self._buffer):
            self._grow(count)
        while self._filled - self._at < count:
            if self._at + count > len(self._buffer) or self._at == self._filled:
                self._move_up()
            self._filled += self._receive(self._view[self._filled :])
        return self._at

    def fileno(self) -> int:
        """For ``selectors``, which then say when to ask for what has ``arrived``."""
        return int(self._socket.fileno())

    def arrived(self, layout: struct.Struct) -> list[tuple[Any, ...]]:
        """Return the beginning of each complete answer, by ``layout``, in the order of the
        requests.

        Does not wait. All answers in flight must fit into the buffer together.
        """
        self._take_in()
        found, at = [], self._at
        while self._filled - at >= _FRAME.size:
            size, number = _FRAME.unpack_from(self._buffer, at)
            if self._filled - at < _SIZE.size + size:
                break
            if number != self._answered + 1 or size < _SIZE.size + layout.size:
                raise Broken("the answer is not to this request")
            found.append(layout.unpack_from(self._buffer, at + _FRAME.size))
            self._answered = number
            at += _SIZE.size + size
        self._at = at
        return found

    def _take_in(self) -> None:
        self._move_up()
        before = self._socket.gettimeout()
        self._socket.settimeout(0)
        try:
            self._filled += self._receive(self._view[self._filled :])
            # What TLS has decrypted already, no selector knows of.
            while isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
                self._filled += self._receive(self._view[self._filled :])
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        finally:
            self._socket.settimeout(before)

    def _move_up(self) -> None:
        """Have what is not taken yet at the beginning of the buffer."""
        rest = self._filled - self._at
        self._buffer[:rest] = self._buffer[self._at : self._filled]
        self._at, self._filled = 0, rest

    def _grow(self, room: int) -> None:
        buffer = bytearray(room)
        buffer[: self._filled - self._at] = self._view[self._at : self._filled]
        self._at, self._filled = 0, self._filled - self._at
        self._buffer, self._view = buffer, memoryview(buffer)

    def _receive(self, buffer: memoryview) -> int:
        got: int = self._socket.recv_into(buffer)
        if not got:
            raise Broken("the broker closed the connection")
        return got
