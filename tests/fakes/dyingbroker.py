"""A broker that dies in the middle of a login: it speaks as much of Kafka's protocol as comes
before, and hangs up.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import suppress

LONGEST = 10_000
HANDSHAKE, VERSIONS, AUTHENTICATE = 17, 18, 36
_KNOWN = {0: 8, 1: 11, 3: 9, 10: 3, 17: 1, 18: 3, 22: 1, 24: 1, 26: 1, 36: 1}
"""The newest version of each request that the broker has."""


class DyingBroker:
    """Listens at ``address``, and dies when it is asked for ``at``, one of the requests of a login.
    It is up again at once.

    ``reset``: as a process that is killed with bytes unread, so that the client hears of it by RST.
    """

    def __init__(
        self, at: int, *, reset: bool, mechanism: str = "PLAIN", tls: ssl.SSLContext | None = None
    ):
        self._at, self._reset, self._mechanism, self._tls = at, reset, mechanism, tls
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.died = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no connection any more."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        client = plain
        with suppress(OSError):
            if self._tls is not None:
                client = self._tls.wrap_socket(plain, server_side=True)
            while self._answer(client):
                pass
        if self._reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    def _answer(self, client: socket.socket) -> bool:
        head = _read(client, 4)
        if not head:
            return False
        (size,) = struct.unpack(">i", head)
        if size > LONGEST:
            return False  # whatever looks for TLS here speaks no Kafka
        request = _read(client, size)
        kind, version = struct.unpack(">hh", request[:4])
        if kind == self._at:
            self.died += 1
            return False
        if kind == VERSIONS:
            body = _versions(version)
        elif kind == HANDSHAKE:
            name = self._mechanism.encode()
            body = struct.pack(">hih", 0, 1, len(name)) + name
        else:
            return False
        answer = request[4:8] + body
        client.sendall(struct.pack(">i", len(answer)) + answer)
        return True


def _versions(version: int) -> bytes:
    if version < 3:
        each = b"".join(struct.pack(">hhh", kind, 0, newest) for kind, newest in _KNOWN.items())
        return (
            struct.pack(">hi", 0, len(_KNOWN)) + each + (struct.pack(">i", 0) if version else b"")
        )
    each = b"".join(struct.pack(">hhhB", kind, 0, newest, 0) for kind, newest in _KNOWN.items())
    return struct.pack(">hB", 0, len(_KNOWN) + 1) + each + struct.pack(">iB", 0, 0)


def _read(client: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        some = client.recv(count - len(found))
        if not some:
            return b""
        found += some
    return found
