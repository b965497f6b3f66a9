"""A worker's address in commands and files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connectctl.ops.core.errors import BadInput

# The form of a host name or an IP address. With a leading dash it would be an option of a command.
_FORM = re.compile(
    r"(?:(?P<scheme>https?)://)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>\w[\w.-]*)):(?P<port>\d{1,5})/?"
)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a worker's REST server. ``host`` has no brackets, even for IPv6."""

    host: str
    port: int
    scheme: str = "http"

    @property
    def worker(self) -> str:
        """Return ``host:port``, as in the group's metadata."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the address of its REST server."""
        return f"{self.scheme}://{self.worker}"


def parse(text: str, scheme: str = "http") -> Address:
    """Return the address in ``host:port`` or a URL; ``scheme`` is the default.

    Raises ``BadInput`` for any text that could be more than an address to a shell or a command:
    workers advertise the names of their hosts themselves.
    """
    found = _FORM.fullmatch(text)
    if not found or not 0 < int(found["port"]) < 65536:
        raise BadInput(
            f"{text!r} is not an address of a worker",
            why="it should be host:port",
            code="no-worker",
        )
    return Address(found["v6"] or found["host"], int(found["port"]), found["scheme"] or scheme)
