"""Why a connection does not come about, in words: one table for all clients, and one look for what they do not tell.

librdkafka says of an expired certificate, of one for another host and of an unknown authority the same; a port that speaks
no TLS, or nothing else, looks to each client like a connection that was reset. So when a client has failed, the handshake is
made once more by hand, with the client's own settings.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from connectctl.ops.config.endpoints import HIGHEST_PORT
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, NotTrusted, Unreachable

PATIENCE = 3.0
"""Seconds for the handshake: who is there answers at once, and the client has waited before."""
DYING = 0.5
"""Seconds after which a process that was being killed takes no connections any more."""
CONNECTING = 1.0
"""Seconds for a connection alone."""
ALERT_PATIENCE = 0.5
"""Seconds for a server's objection to our certificate, which in TLS 1.3 comes behind the handshake."""

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
    (r"alert.(bad|unknown).(certificate|ca)|alert.certificate.unknown", "it does not accept the client's certificate"),
    (r"alert.protocol.version|unsupported.protocol", "it supports no version of TLS that this client supports"),
    (r"alert.handshake.failure|no.shared.cipher", "it accepts neither the client's ciphers nor its certificate"),
    (
        r"invalid.credentials|invalid username or password|invalid_token|SaslAuthenticationFailed|Authentication failed",
        "the user name, the password or the token is wrong",
    ),
    (r"unsupported sasl mechanism|does not support .* sasl mechanism", "it does not support this SASL mechanism"),
)
"""What clients say, and what it means."""
NO_TLS = "it does not use TLS on this port"
ONLY_TLS = "it requires TLS on this port, and the client does not use it"


def in_words(said: str | None) -> str | None:
    """What the words of a client or of OpenSSL mean; None for what is not in the table."""
    found = (words for pattern, words in _SAID if said and re.search(pattern, said, re.IGNORECASE))
    return next(found, None)


def cause(address: str, context: ssl.SSLContext | None, patience: float = PATIENCE) -> str | None:
    """Why a client with this ``context``, None for one without TLS, gets no connection to ``HOST:PORT``.

    None where that is not the reason: nobody listens, or the handshake succeeds. A server that only hangs up may be dying:
    then it does not do so a second time.
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
        return in_words(str(e)) or NO_TLS
    except ConnectionResetError:
        return NO_TLS
    except OSError:
        return None
    return None


def explained(error: ConnectctlError, addresses: str, context: Callable[[], ssl.SSLContext | None]) -> ConnectctlError:
    """``error`` of any client with its cause in words, where there is one to be found.

    ``addresses`` are ``HOST:PORT,HOST:PORT…``; ``context`` makes the client's TLS settings, None for a client without.
    """
    if isinstance(error, NotAuthorized):
        if (words := in_words(error.why)) and words not in str(error.why):
            why = f"{words} ({error.why})"
            return NotAuthorized(error.what, why=why, next_step=error.next_step, code=error.code, right=error.right)
        return error
    if not isinstance(error, Unreachable) or isinstance(error, NotTrusted):
        return error
    try:
        found = first_cause(addresses, context)
    except ConnectctlError as e:
        found = str(e)
    return NotTrusted(error.what, why=found, next_step=error.next_step) if found else error


def first_cause(addresses: str, context: Callable[[], ssl.SSLContext | None]) -> str | None:
    """The first cause among ``HOST:PORT,HOST:PORT…``, as ``cause`` tells; None where there is none."""
    end = time.monotonic() + 2 * PATIENCE
    given = context()
    for address in addresses.split(","):
        if time.monotonic() < end and (found := cause(address.strip().rpartition("//")[2], given)):
            return found
    return None


def listens(address: str, patience: float = CONNECTING) -> bool:
    """Whether somebody takes connections at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), patience).close()
    except (OSError, ValueError):
        return False
    return True


def _shake(host: str, port: int, context: ssl.SSLContext, patience: float) -> None:
    """Make a handshake, and hear what the server has against it. Raises ``ssl.SSLError``, ``OSError``."""
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
                return  # it has nothing to say, or says nothing


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
