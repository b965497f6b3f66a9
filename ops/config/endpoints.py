"""Addresses that a person writes: brokers and workers, checked before anything dials them.

A client that is given what is not an address does what it can with it: librdkafka dials port 99999 as 34463, and resolves
what stands in front of a missing colon. So what cannot be meant is refused in words that name it.
"""

from __future__ import annotations

import re

HIGHEST_PORT = 65535
_BROKER = re.compile(r"(?:[A-Za-z_]+://)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]@]+)(?::(?P<port>[^:]*))?")

_URL = re.compile(
    r"(?i:https?)://(?:[^@/?#]*@)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^:/?#\[\]@]+)(?::(?P<port>[^/?#]*))?(?:[/?#].*)?"
)


def problem_of_brokers(text: str) -> str | None:
    """What is wrong with a ``bootstrap.servers``: ``HOST:PORT`` with commas between; None for nothing."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        return "it has no broker; write HOST:PORT, several separated by commas"
    for part in parts:
        found = _BROKER.fullmatch(part)
        if found is None:
            return f"{part!r} is not HOST:PORT"
        if found["port"] is not None and (problem := _problem_of_port(found["port"])):
            return f"{problem} in {part!r}"
    return None


def problem_of_url(text: str) -> str | None:
    """What is wrong with the URL of a worker's REST server; None for nothing."""
    if any(c.isspace() for c in text):
        return "it contains a blank; write http://HOST:PORT or https://HOST:PORT"
    found = _URL.fullmatch(text)
    if found is None:
        return "write http://HOST:PORT or https://HOST:PORT"
    return None if found["port"] is None else _problem_of_port(found["port"])


def _problem_of_port(text: str) -> str | None:
    good = text.isascii() and text.isdigit() and 0 < int(text) <= HIGHEST_PORT
    return None if good else f"the port must be 1 to {HIGHEST_PORT}, not {text or 'empty'}"
