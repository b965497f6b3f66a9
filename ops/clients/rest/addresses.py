"""The IP addresses of host names: two spellings of one worker's address are one address."""

from __future__ import annotations

import socket
from functools import cache


@cache
def addresses_of(host: str) -> frozenset[str]:
    """Return the IP addresses of ``host``; none where it does not resolve. Every address of this
    machine's loopback is one.
    """
    try:
        found = {
            str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        }
    except OSError:
        return frozenset()
    return frozenset("127.0.0.1" if each == "::1" else each for each in found)
