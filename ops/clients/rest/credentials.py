"""The credentials for workers' REST servers, and the rule for the addresses that receive them.

Workers are found through their group, and each member of the group can advertise any address. A
member's address therefore receives the credentials only over HTTPS with a verified certificate, or
if the context allows it. An address of this machine is no exception: every user of it can listen
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class RestCredentials:
    """A login for REST servers: ``username`` and ``password``, or ``token``.

    ``named`` are the addresses that the context gives itself, which always get it. ``hosts`` are
    patterns of the hosts that may get it besides, None for every member of the group; ``http``:
    also without encryption. ``verified``: certificates are verified.
    """

    username: str | None = None
    password: str = ""
    token: str | None = None
    named: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    http: bool = False
    verified: bool = True
    _origins: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_origins", frozenset(map(_origin, self.named)))

    @staticmethod
    def of(
        auth: Mapping[str, Any], named: Sequence[str] = (), *, verified: bool = True
    ) -> RestCredentials:
        """Return the credentials of a context's section ``rest_auth``, secrets included."""
        hosts = auth.get("hosts")
        return RestCredentials(
            str(auth["username"]) if auth.get("username") else None,
            str(auth.get("password") or ""),
            str(auth["token"]) if auth.get("token") else None,
            frozenset(named),
            None if hosts is None else tuple(str(host).lower() for host in hosts),
            bool(auth.get("http")),
            verified,
        )

    def withheld(self, url: str) -> str | None:
        """Return why the server at ``url`` does not get the credentials; None if it gets them, or
        if there are none.
        """
        if self.username is None and self.token is None:
            return None
        if _origin(url) in self._origins:
            return None
        at = urlsplit(url)
        host = (at.hostname or "").lower()
        if self.hosts is not None and not any(fnmatchcase(host, pattern) for pattern in self.hosts):
            return f"{host} is not in rest_auth.hosts"
        if at.scheme != "https":
            return (
                None
                if self.http
                else "its address, which it advertises in the group, is http, without encryption"
            )
        if not self.verified and self.hosts is None:
            return "its certificate is not verified (rest_tls.verify: false)"
        return None

    def request(self, url: str) -> dict[str, Any]:
        """Return what httpx needs to log in at ``url``: nothing, if the server does not get the
        credentials.
        """
        if self.withheld(url):
            return {}
        if self.username is not None:
            return {"auth": (self.username, self.password)}
        return (
            {"headers": {"authorization": f"Bearer {self.token}"}} if self.token is not None else {}
        )


def _origin(url: str) -> str:
    at = urlsplit(url)
    port = at.port or (443 if at.scheme == "https" else 80)
    return f"{at.scheme}://{(at.hostname or '').lower()}:{port}"
