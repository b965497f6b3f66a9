"""The causes of failed connections: one table for all clients, and one check for causes that they
do not report.

librdkafka reports an expired certificate, one for another host and an unknown authority alike; a
port without TLS, or without any server, looks like a reset connection to each client. After a
failure of a client, the handshake is therefore repeated here, with the client's own settings.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connectctl.ops.config.endpoints import HIGHEST_PORT
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    Unreachable,
)

PATIENCE = 3.0
"""Seconds for the handshake: who is there answers at once, and the client has waited before."""
DYING = 0.5
"""Seconds after which a process that was being killed takes no connections any more."""
CONNECTING = 1.0
"""Seconds for a connection alone."""
ALERT_PATIENCE = 0.5
"""Seconds for a server's alert about the client certificate, which in TLS 1.3 follows the
handshake.
"""

_VERIFY = {
    9: "its certificate is not valid yet; check both clocks",
    10: "its certificate has expired",
    18: "its certificate is self-signed",
    19: "its certificate is signed by an authority that is not trusted here",
    20: "its certificate is signed by an authority that is not trusted here",
    21: "its certificate is signed by an authority that is not trusted here",
    23: "its certificate was revoked",
    62: "its certificate is for another host name",
    64: "its certificate is for another address",
}
"""X509_V_ERR_… of OpenSSL."""
_SAID = (
    (r"certificate.required", "it requires a client certificate"),
    (r"alert.certificate.expired", "it does not accept the client's certificate: that has expired"),
    (r"alert.certificate.revoked", "it does not accept the client's certificate: that was revoked"),
    (r"alert.access.denied", "it does not accept the client's certificate: access is denied"),
    (
        r"alert.(bad|unknown).(certificate|ca)|alert.certificate.unknown",
        "it does not accept the client's certificate",
    ),
    (
        r"alert.protocol.version|unsupported.protocol",
        "it supports no version of TLS that this client supports",
    ),
    (
        r"alert.handshake.failure|no.shared.cipher",
        "it accepts neither the client's ciphers nor its certificate",
    ),
    (
        r"invalid.credentials|invalid username or password|invalid_token|SaslAuthenticationFailed|Authentication failed",
        "the user name, the password or the token is wrong",
    ),
    (
        r"insufficient_scope",
        "the token is not accepted: its scope is another one, or it has expired",
    ),
    (
        r"unsupported sasl mechanism|does not support .* sasl mechanism",
        "it does not support this SASL mechanism",
    ),
)
"""Texts of clients, and their meanings."""
NO_TLS = "it does not use TLS on this port"
ONLY_TLS = "it requires TLS on this port, and the client does not use it"


def in_words(said: str | None) -> str | None:
    """Return the meaning of a text of a client or of OpenSSL; None if it is not in the table."""
    found = (words for pattern, words in _SAID if said and re.search(pattern, said, re.IGNORECASE))
    return next(found, None)


def cause(address: str, context: ssl.SSLContext | None, patience: float = PATIENCE) -> str | None:
    """Return why a client with this ``context``, None for one without TLS, gets no connection to
    ``HOST:PORT``.

    None if the handshake is not the cause: nothing listens, or it succeeds. A server that only
    closes the connection may be stopping: then it does not do so a second time.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if whole_number(port, HIGHEST_PORT) is None:
        return None
    if context is None:
        return ONLY_TLS if _speaks_tls(host, int(port), patience) else None
    found = _objection(host, int(port), context, patience)
    if found == NO_TLS:
        time.sleep(DYING)
        found = _objection(host, int(port), context, patience)
    return found


def _objection(host: str, port: int, context: ssl.SSLContext, patience: float) -> str | None:
    try:
        _shake(host, port, context, patience)
    except ssl.SSLCertVerificationError as e:
        return _VERIFY.get(e.verify_code, f"its certificate is invalid: {e.verify_message}")
    except ssl.SSLError as e:
        # Only what speaks TLS sends an alert.
        return in_words(str(e)) or (
            f"it ends the TLS handshake ({e.reason})" if "ALERT" in str(e) else NO_TLS
        )
    except ConnectionResetError:
        return NO_TLS
    except OSError:
        return None
    return None


def explained(
    error: ConnectctlError, addresses: str, context: Callable[[], ssl.SSLContext | None]
) -> ConnectctlError:
    """``error`` of any client with its cause in words, where there is one to be found.

    ``addresses`` are ``HOST:PORT,HOST:PORT…``; ``context`` makes the client's TLS settings, None
    for a client without.
    """
    if isinstance(error, NotAuthorized):
        if (words := in_words(error.why)) and words not in str(error.why):
            why = f"{words} ({error.why})"
            return NotAuthorized(
                error.what, why=why, next_step=error.next_step, code=error.code, right=error.right
            )
        return error
    if not isinstance(error, Unreachable) or isinstance(error, NotTrusted):
        return error
    try:
        found = first_cause(addresses, context)
    except ConnectctlError as e:
        found = str(e)
    return NotTrusted(error.what, why=found, next_step=error.next_step) if found else error


def first_cause(addresses: str, context: Callable[[], ssl.SSLContext | None]) -> str | None:
    """Return the first cause among ``HOST:PORT,HOST:PORT…``, as ``cause`` does; None if there is
    none.
    """
    end = time.monotonic() + 2 * PATIENCE
    given = context()
    for address in addresses.split(","):
        if time.monotonic() < end and (found := cause(address.strip().rpartition("//")[2], given)):
            return found
    return None


def decided(addresses: str, context: Callable[[], ssl.SSLContext | None]) -> str | None:
    """Return the cause that the first handshake has at every one of ``HOST:PORT,HOST:PORT…``; None
    if one may still respond.

    Later attempts do not change certificates and ports, so that a client need not wait for its
    time-out.
    """
    found = [
        cause(address.strip().rpartition("//")[2], context())
        for address in addresses.split(",")
        if address.strip()
    ]
    return found[0] if found and all(found) else None


def login_refused(doing: str, bootstrap: str, why: str | None) -> NotAuthorized:
    """The error of a broker that knows who asks, or not who it is: no right is missing yet."""
    return NotAuthorized(
        f"Authentication failed: Kafka at {bootstrap} refuses the login (to {doing})",
        why=why,
        next_step="Check the user name, the password or the token in client: connectctl context "
        "show.",
    )


def check_files(files: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` with the setting and the path of a file that cannot be read. ``files`` are
    paths by setting.
    """
    for name, path in files.items():
        if not path or str(path) == "probe":
            continue
        file = Path(str(path)).expanduser()
        try:
            if not file.is_dir():
                file.open("rb").close()
        except OSError as e:
            raise BadInput(
                f"The file of {name} cannot be read: {path}",
                why=e.strerror,
                next_step="Correct it in the context (connectctl context show prints the source "
                "of each value).",
            ) from e


@contextmanager
def naming(path: Any) -> Iterator[None]:
    """Put the path of a file into the error of the TLS library, which does not name it. Raises
    ``OSError``.
    """
    try:
        yield
    except (OSError, ValueError) as e:
        raise OSError(f"{path}: {getattr(e, 'strerror', None) or e}") from e


def listens(address: str, patience: float = CONNECTING) -> bool:
    """Return whether a server accepts connections at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), patience).close()
    except (OSError, ValueError):
        return False
    return True


def not_listening(addresses: Mapping[int, str], patience: float = CONNECTING) -> dict[int, str]:
    """Return those of the brokers that accept no connection, in the order of their ids.
    ``addresses`` are ``HOST:PORT`` by id.
    """
    with ThreadPoolExecutor(len(addresses) or 1) as pool:
        listening = pool.map(lambda address: listens(address, patience), addresses.values())
        offline = [broker for broker, found in zip(addresses, listening, strict=True) if not found]
    return {broker: addresses[broker] for broker in sorted(offline)}


def _shake(host: str, port: int, context: ssl.SSLContext, patience: float) -> None:
    """Make a handshake, and hear what the server has against it. Raises ``ssl.SSLError``,
    ``OSError``.
    """
    with socket.create_connection((host, port), timeout=patience) as plain:
        try:
            secure = context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLEOFError as e:
            raise ConnectionResetError from e
        with secure:
            secure.settimeout(ALERT_PATIENCE)
            try:
                secure.recv(1)
            except (TimeoutError, ConnectionResetError, ssl.SSLEOFError):
                return  # it sends nothing


def _speaks_tls(host: str, port: int, patience: float) -> bool:
    anything: Any = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anything.check_hostname = False
    anything.verify_mode = ssl.CERT_NONE
    try:
        _shake(host, port, anything, patience)
    except ssl.SSLError as e:
        return "ALERT" in str(e)  # an alert is sent in TLS only
    except OSError:
        return False
    return True
