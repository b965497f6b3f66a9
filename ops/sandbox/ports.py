"""Free TCP ports on the loopback address."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from connectctl.ops.clients.connection_errors import listens
from connectctl.ops.core.errors import ConnectctlError

LOOPBACK = "127.0.0.1"
LOWEST = 10240
_IANA_EPHEMERAL = 49152
_LINUX_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(
    count: int,
    *,
    taken: Iterable[int] = (),
    is_free: Callable[[int], bool] | None = None,
    seed: random.Random | None = None,
) -> list[int]:
    """Return ``count`` ports that nothing listens on now, none of them in ``taken``.

    They lie below the ephemeral range, so that no outgoing connection can take one between the
    choice and the use. The search starts at a random place, so that two sandboxes that start at
    once seldom meet. Raises ConnectctlError when the machine has no such ports.
    """
    usable = is_free or can_bind
    lowest, highest = LOWEST, ephemeral_start() - 1
    barred, chosen = set(taken), list[int]()
    start = (seed or random.Random()).randrange(lowest, highest + 1)
    for port in (*range(start, highest + 1), *range(lowest, start)):
        if len(chosen) == count:
            break
        if port not in barred and usable(port):
            chosen.append(port)
    if len(chosen) < count:
        raise ConnectctlError(
            f"No {count} free ports on {LOOPBACK} between {lowest} and {highest}", code="no-ports"
        )
    return chosen


def can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int, *, timeout: float = 0.2) -> bool:
    """Return whether a process accepts connections on this port; ``timeout`` in seconds."""
    return listens(f"{LOOPBACK}:{port}", timeout)


def ephemeral_start(text: str | None = None) -> int:
    """Return the first port that the system may give to outgoing connections; ``text`` is Linux'
    two numbers.
    """
    if text is None:
        text = _LINUX_RANGE.read_text() if _LINUX_RANGE.exists() else ""
    first = re.match(r"\s*(\d+)\s+\d+", text)
    start = int(first.group(1)) if first else _IANA_EPHEMERAL
    # A system whose ephemeral range begins near the bottom leaves no room below it: then any
    # unprivileged port must do.
    return start if start > LOWEST + 1000 else _IANA_EPHEMERAL
