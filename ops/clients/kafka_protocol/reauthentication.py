"""Logins of SASL, and sessions that end (KIP-368), on connections that are ours alone.

A broker with ``connections.max.reauth.ms``, or a token that expires, closes a connection on which a
request comes after the session's end. The client logs in again before that, on the same connection,
with no answer on its way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.core.errors import NotAuthorized

EARLIEST, LATEST = 0.75, 0.85
"""The parts of a session's lifetime after which to log in again: each connection at a moment of its
own. Java's clients wait for 0.85 to 0.95; here answers that are on their way are read first.
"""
VERSION = 1
"""Of SaslHandshake and SaslAuthenticate: the oldest that tells the session's lifetime, of Kafka
2.2.
"""


@dataclass(frozen=True, slots=True)
class Login:
    """A login. ``renew_at`` is a time of ``time.monotonic``; None for a session without an end."""

    renew_at: float | None = None

    @classmethod
    def of(cls, lifetime_ms: int, since: float) -> Login:
        """A session of ``lifetime_ms``, 0 or less for one without an end, that began at
        ``since``.
        """
        share = random.uniform(EARLIEST, LATEST)
        return cls(since + share * lifetime_ms / 1000 if lifetime_ms > 0 else None)

    @property
    def is_ending(self) -> bool:
        """Return whether it is time to log in again."""
        return self.renew_at is not None and time.monotonic() > self.renew_at


def login(
    exchange: Callable[[Any, Any], Any],
    settings: Mapping[str, Any],
    host: str,
    refused: Callable[[str], NotAuthorized],
) -> Login:
    """Log in, or in again, as kafka-python's ``settings`` say; ``exchange`` sends a request and
    gives its answer.

    Raises what ``refused`` gives for the reason where the broker does not take the login, and what
    ``exchange`` raises.
    """
    from kafka.net.sasl import get_sasl_mechanism
    from kafka.protocol.sasl import (
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
        SaslHandshakeRequest,
        SaslHandshakeResponse,
    )

    name = settings["sasl_mechanism"]
    answer = exchange(SaslHandshakeRequest[VERSION](mechanism=name), SaslHandshakeResponse[VERSION])
    if answer.error_code:
        raise refused(f"the broker does not support the SASL mechanism {name}")
    mechanism = get_sasl_mechanism(name)(host=host, **settings)
    began, lifetime = time.monotonic(), 0
    while not mechanism.is_done():
        request = SaslAuthenticateRequest[VERSION](auth_bytes=mechanism.auth_bytes())
        answer = exchange(request, SaslAuthenticateResponse[VERSION])
        if answer.error_code:
            raise refused(str(answer.error_message or f"error {answer.error_code}"))
        lifetime = answer.session_lifetime_ms
        try:
            mechanism.receive(answer.auth_bytes)
        except ValueError as e:
            raise refused(str(e)) from e
    if not mechanism.is_authenticated():
        raise refused(f"{name} did not succeed")
    return Login.of(lifetime, began)
