"""A worker's address as commands and files name it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connectctl.ops.core.errors import BadInput

# What may stand in a host name or an IP address. A dash in front would be an option to whatever command gets it.
_FORM = re.compile(r"(?:(?P<scheme>https?)://)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>\w[\w.-]*)):(?P<port>\d{1,5})/?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a worker listens. ``host`` has no brackets, also of IPv6."""

    host: str
    port: int
    scheme: str = "http"

    @property
    def worker(self) -> str:
        """``host:port``, as the group tells it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The address of its REST server."""
        return f"{self.scheme}://{self.worker}"


def parse(text: str, scheme: str = "http") -> Address:
    """An address from ``host:port`` or a URL; ``scheme`` where the text has none.

    Raises ``BadInput`` for anything that could mean more than an address to a shell or a command: workers say
    themselves in the group what their host is called.
    """
    found = _FORM.fullmatch(text)
    if not found or not 0 < int(found["port"]) < 65536:
        raise BadInput(f"{text!r} is not an address of a worker", why="it should be host:port", code="no-worker")
    return Address(found["v6"] or found["host"], int(found["port"]), found["scheme"] or scheme)
