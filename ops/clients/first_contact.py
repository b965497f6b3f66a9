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
"""DNS errors for a name that does not exist. Other errors may be those of DNS itself."""


@contextmanager
def first_contact(bootstrap: str, resolve: Resolve = socket.getaddrinfo) -> Iterator[None]:
    """Distinguish the causes of a failed first request to a cluster. Raises ``NeverAnswered``, and
    ``UnknownHost`` if DNS has none of its names; other errors pass unchanged.
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
