"""The proof that a REST server is a worker of a group: by its address, or by the connectors of the
group.

An address that a member advertises is the member's. With an ingress, a port mapping or a compose
file no member advertises the address that is reachable from here; then the server must list the
connectors of the group's config topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.core.errors import Refused

Resolve = Callable[[str], frozenset[str]]
"""A function that returns the IP addresses of a host name; none if it has no address."""
DECLARE = "--rest-is-group"
_PORTS = {"http": "80", "https": "443"}


class NotAMember(Refused):
    """A REST server that is not proven to be a worker of the group: nothing is read from it or
    changed by it.
    """

    code = "not-a-member"

    def __init__(self, url: str, group: ConnectGroup, why: str):
        addresses = ", ".join(sorted(advertised(group))) or "no address"
        members = (
            f"the members of {group.id} advertise {addresses}"
            if group.settled
            else f"{group.id} is {group.state}"
        )
        if not group.members:
            members = f"{group.id} has no members"
        super().__init__(
            f"{url} is not proven to be a worker of the group {group.id}",
            why=f"{why}, and {members}",
            next_step="Correct --rest or --group-id, or omit --rest; if it leads to this group, "
            f"give {DECLARE}.",
        )
        self.url = url


def advertised(group: ConnectGroup) -> frozenset[str]:
    """Return the REST URLs that the members of ``group`` advertise; none of members without REST,
    or in a rebalance.
    """
    return frozenset(member.url for member in group.members if "://" in member.url)


def is_advertised(url: str, group: ConnectGroup, resolve: Resolve) -> bool:
    """Return whether ``url`` is the address of a member; IP addresses and ports are compared."""
    return is_among(url, advertised(group), resolve)


def is_among(url: str, urls: Iterable[str], resolve: Resolve) -> bool:
    """Return whether one of ``urls`` is the address of the server at ``url``."""
    own = _endpoints(url, resolve)
    return any(own & _endpoints(other, resolve) for other in urls)


def _endpoints(url: str, resolve: Resolve) -> frozenset[tuple[str, str]]:
    found = address(url).rpartition("@")[2].lower()
    host, _, port = (
        found.rpartition(":") if not found.endswith("]") and ":" in found else (found, "", "")
    )
    host = host.strip("[]")
    return frozenset(
        (name, port or _PORTS.get(url.partition("://")[0].lower(), ""))
        for name in {host, *resolve(host)}
    )


Configs = Mapping[str, Mapping[str, str]]


def disagreement(listed: Configs, configured: Configs) -> str | None:
    """Return why a server that lists ``listed`` is not proven to serve ``configured``; None if it
    is proven.
    """
    if not listed and not configured:
        return "neither it nor the config topic has a connector that would prove it"
    if listed.keys() != configured.keys():
        additional = sorted(listed.keys() - configured.keys())
        missing = sorted(configured.keys() - listed.keys())
        lists = (
            f"it lists {_first_names(additional)}, which the config topic does not have"
            if additional
            else ""
        )
        lacks = (
            f"it does not list {_first_names(missing)}, which the config topic has"
            if missing
            else ""
        )
        return " and ".join(filter(None, (lists, lacks)))
    if not any(_same(listed[name], configured[name]) for name in listed):
        return (
            "its connectors have the names of those in the config topic, and other configurations"
        )
    return None


def _same(listed: Mapping[str, str], configured: Mapping[str, str]) -> bool:
    return {k: v for k, v in listed.items() if k != "name"} == {
        k: v for k, v in configured.items() if k != "name"
    }


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
