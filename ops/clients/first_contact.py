"""The first request to a cluster: whether it is not up yet, or its name does not resolve."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from connectctl.ops.core.errors import (
    NeverAnswered,
    NotAuthorized,
    NotTrusted,
    UnknownHost,
    Unreachable,
)

Resolve = Callable[[str, None], Any]
_UNKNOWN = {getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)}
"""What DNS says of a name that there is not. Anything else it says may be its own trouble."""


@contextmanager
def first_contact(bootstrap: str, resolve: Resolve = socket.getaddrinfo) -> Iterator[None]:
    """Tells apart what a cluster's first request fails with. Raises ``NeverAnswered``, and
    ``UnknownHost`` where DNS has none of its names; lets through what only a person mends.
    """
    try:
        yield
    except (NotAuthorized, NotTrusted):
        raise
    except Unreachable as e:
        names = [
            server.strip().rpartition(":")[0].rpartition("/")[2] for server in bootstrap.split(",")
        ]
        if names and all(_unknown(name.strip("[]"), resolve) for name in names):
            why = f"DNS has no address of {', '.join(dict.fromkeys(names))}"
            raise UnknownHost(e.what, why=why, next_step=e.next_step) from e
        raise NeverAnswered(e.what, why=e.why, next_step=e.next_step) from e


def _unknown(name: str, resolve: Resolve) -> bool:
    try:
        resolve(name, None)
    except socket.gaierror as e:
        return e.errno in _UNKNOWN
    except UnicodeError:
        return True
    return False
