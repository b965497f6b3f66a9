"""Sessions of SASL that end (KIP-368), on connections that kafka-python no longer looks after.

A broker with ``connections.max.reauth.ms``, or a token that expires, closes a connection on which a
request comes after the session's end. The client logs in again before that, on the same connection,
with no answer on its way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
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
        """Whether it is time to log in again."""
        return self.renew_at is not None and time.monotonic() > self.renew_at


def renewed(
    exchange: Callable[[Any, Any], Any], config: dict[str, Any], host: str, bootstrap: str
) -> Login:
    """Log in again as kafka-python's ``config`` says; ``exchange`` sends a request and gives its
    answer.

    Raises ``NotAuthorized`` where the broker no longer takes the login, and what ``exchange``
    raises.
    """
    from kafka.net.sasl import get_sasl_mechanism
    from kafka.protocol.sasl import (
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
        SaslHandshakeRequest,
        SaslHandshakeResponse,
    )

    name = config["sasl_mechanism"]
    answer = exchange(SaslHandshakeRequest[VERSION](mechanism=name), SaslHandshakeResponse[VERSION])
    if answer.error_code:
        raise _refused(bootstrap, f"error {answer.error_code}")
    mechanism = get_sasl_mechanism(name)(host=host, **config)
    began, lifetime = time.monotonic(), 0
    while not mechanism.is_done():
        request = SaslAuthenticateRequest[VERSION](auth_bytes=mechanism.auth_bytes())
        answer = exchange(request, SaslAuthenticateResponse[VERSION])
        if answer.error_code:
            raise _refused(bootstrap, str(answer.error_message or f"error {answer.error_code}"))
        lifetime = answer.session_lifetime_ms
        try:
            mechanism.receive(answer.auth_bytes)
        except ValueError as e:
            raise _refused(bootstrap, str(e)) from e
    if not mechanism.is_authenticated():
        raise _refused(bootstrap, f"{name} did not succeed")
    return Login.of(lifetime, began)


def _refused(bootstrap: str, why: str) -> NotAuthorized:
    hint = "Check the client's security settings: connectctl context show."
    return NotAuthorized(
        f"Kafka at {bootstrap} rejected the re-authentication", why=why, next_step=hint
    )
