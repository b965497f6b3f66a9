"""Servers that a client of TLS or of plain TCP finds on a port, each wrong in its own way."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import trustme

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Fault:
    """A port, whether the client is to speak TLS there and whom it trusts, and words of the
    cause.
    """

    name: str
    port: int
    tls: bool
    authority: str
    words: str
    certificate: str | None = None
    """The client's own certificate, with its key."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def faults(place: Path) -> Iterator[list[Fault]]:
    """One server for every fault, as long as this lasts."""
    known, other = trustme.CA(), trustme.CA()
    trusted, wrong = str(place / "known.pem"), str(place / "other.pem")
    known.cert_pem.write_to_path(trusted)
    other.cert_pem.write_to_path(wrong)
    good, elsewhere = known.issue_cert("127.0.0.1"), known.issue_cert("broker.example.org")
    expired = known.issue_cert("127.0.0.1", not_after=LONG_AGO)
    own = place / "own.pem"
    known.issue_cert("client", not_after=LONG_AGO).private_key_and_cert_chain_pem.write_to_path(own)
    served: list[socket.socket] = []

    def on(answer: Callable[[socket.socket], None]) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        served.append(server)
        threading.Thread(target=_serve, args=(server, answer), daemon=True).start()
        return int(server.getsockname()[1])

    yield [
        Fault(
            "an unknown authority",
            on(_secure(good)),
            True,
            wrong,
            "an authority that is not trusted here",
        ),
        Fault(
            "an expired certificate",
            on(_secure(expired)),
            True,
            trusted,
            "its certificate has expired",
        ),
        Fault(
            "another host", on(_secure(elsewhere)), True, trusted, "its certificate is for another"
        ),
        Fault(
            "no certificate of ours",
            on(_secure(good, known)),
            True,
            trusted,
            "it requires a client certificate",
        ),
        Fault(
            "our certificate has expired",
            on(_secure(good, known)),
            True,
            trusted,
            "that has expired",
            str(own),
        ),
        Fault(
            "TLS to a plain port", on(_closes), True, trusted, "it does not use TLS on this port"
        ),
        Fault(
            "plain to a TLS port", on(_secure(good)), False, trusted, "it requires TLS on this port"
        ),
    ]
    for server in served:
        server.close()


def _serve(server: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_once, args=(connection, answer), daemon=True).start()


def _once(connection: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    with connection, suppress(OSError):
        answer(connection)


def _secure(
    certificate: trustme.LeafCert, wanted: trustme.CA | None = None
) -> Callable[[socket.socket], None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if wanted:
        wanted.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(1000)

    return answer


def _closes(connection: socket.socket) -> None:
    """As a broker does with a request that is too long, for which it takes the beginning of a
    handshake.
    """
    connection.recv(4)
