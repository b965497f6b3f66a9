"""Proof that a REST server is a worker of a group: by its address, or by connectors that it and the group both have.

An address that a member advertises is the member's. Behind an ingress, a port mapping or a compose file nobody advertises
the address that works from here; then the server must list the connectors of the group's config topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from connectctl.ops.connect.internal_topics import address
from connectctl.ops.core.errors import Refused

if TYPE_CHECKING:
    from connectctl.ops.connect.connect_protocol import ConnectGroup

Resolve = Callable[[str], frozenset[str]]
"""The IP addresses of a host name; none where it has no address."""
DECLARE = "--rest-is-group"
_PORTS = {"http": "80", "https": "443"}


class NotAMember(Refused):
    """A REST server answers that is not proven to be a worker of the group: nothing is asked of it, or changed by it."""

    code = "not-a-member"

    def __init__(self, url: str, group: ConnectGroup, why: str):
        addresses = ", ".join(sorted(advertised(group))) or "no address"
        members = (
            f"the members of {group.id} advertise {addresses}" if group.settled else f"{group.id} is {group.state}"
        )
        if not group.members:
            members = f"{group.id} has no members"
        super().__init__(
            f"{url} is not proven to be a worker of the group {group.id}",
            why=f"{why}, and {members}",
            next_step=f"Correct --rest or --group-id, or omit --rest; if it leads to this group, give {DECLARE}.",
        )
        self.url = url


def advertised(group: ConnectGroup) -> frozenset[str]:
    """The REST URLs that the members of ``group`` advertise; none of a member without REST, or in a rebalance."""
    return frozenset(member.url for member in group.members if "://" in member.url)


def is_advertised(url: str, group: ConnectGroup, resolve: Resolve) -> bool:
    """Whether ``url`` is the address of a member, by the IP addresses and the port."""
    return is_among(url, advertised(group), resolve)


def is_among(url: str, urls: Iterable[str], resolve: Resolve) -> bool:
    """Whether one of ``urls`` is the address of the same server as ``url``."""
    own = _endpoints(url, resolve)
    return any(own & _endpoints(each, resolve) for each in urls)


def _endpoints(url: str, resolve: Resolve) -> frozenset[tuple[str, str]]:
    found = address(url).rpartition("@")[2].lower()
    host, _, port = found.rpartition(":") if not found.endswith("]") and ":" in found else (found, "", "")
    host = host.strip("[]")
    return frozenset((each, port or _PORTS.get(url.partition("://")[0].lower(), "")) for each in {host, *resolve(host)})


Configs = Mapping[str, Mapping[str, str]]


def disagreement(listed: Configs, configured: Configs) -> str | None:
    """Why a server that lists the configurations ``listed`` is not proven to serve ``configured``; None if it is proven."""
    if not listed and not configured:
        return "neither it nor the config topic has a connector that would prove it"
    if listed.keys() != configured.keys():
        more = sorted(listed.keys() - configured.keys())
        fewer = sorted(configured.keys() - listed.keys())
        lists = f"it lists {_some(more)}, which the config topic does not have" if more else ""
        lacks = f"it does not list {_some(fewer)}, which the config topic has" if fewer else ""
        return " and ".join(filter(None, (lists, lacks)))
    if not any(_same(listed[name], configured[name]) for name in listed):
        return "its connectors have the names of those in the config topic, and other configurations"
    return None


def _same(listed: Mapping[str, str], configured: Mapping[str, str]) -> bool:
    return {k: v for k, v in listed.items() if k != "name"} == {k: v for k, v in configured.items() if k != "name"}


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
