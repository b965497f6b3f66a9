"""The addresses of brokers and workers in user input, validated before a client connects to them.

A client that is given an invalid address misreads it: librdkafka connects to port 34463 for 99999,
and resolves the text before a missing colon. So an invalid address is refused with a message that
quotes it.
"""

from __future__ import annotations

import re

HIGHEST_PORT = 65535
_BROKER = re.compile(
    r"(?:[A-Za-z_]+://)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]@]+)(?::(?P<port>[^:]*))?"
)

_URL = re.compile(
    r"(?i:https?)://(?:[^@/?#]*@)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^:/?#\[\]@]+)(?::(?P<port>[^/?#]*))?(?:[/?#].*)?"
)


def problem_of_brokers(text: str) -> str | None:
    """Return the error in a ``bootstrap.servers``, which is ``HOST:PORT`` separated by commas; None
    if it is valid.
    """
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
    """Return the error in the URL of a worker's REST server; None if it is valid."""
    if any(c.isspace() for c in text):
        return "it contains a blank; write http://HOST:PORT or https://HOST:PORT"
    found = _URL.fullmatch(text)
    if found is None:
        return "write http://HOST:PORT or https://HOST:PORT"
    return None if found["port"] is None else _problem_of_port(found["port"])


def _problem_of_port(text: str) -> str | None:
    valid = text.isascii() and text.isdigit() and 0 < int(text) <= HIGHEST_PORT
    return None if valid else f"the port must be 1 to {HIGHEST_PORT}, not {text or 'empty'}"
