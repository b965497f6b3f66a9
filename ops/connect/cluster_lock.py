"""The holder of a Connect cluster's lock, encoded in the client id of the lock group's only member.

Every tool shows a member's client id at any time
(``kafka-consumer-groups.sh --describe --members``). A member's metadata are visible only while the
group is Stable.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from connectctl.ops.config.numbers import whole_number

PREFIX = "connectctl-lock-"
_MARK = "connectctl"


def _quoted(text: str) -> str:
    """Return ``text`` in ASCII without separators: all but a few bytes are written as ``%XX``."""
    return quote(text, safe=":@", errors="replace")


def group_of(group_id: str) -> str:
    """Return the group whose only member holds the lock of the workers' group ``group_id``."""
    return f"{PREFIX}{group_id}"


@dataclass(frozen=True)
class LockHolder:
    """The holder of the lock: ``run`` of the journal of ``who`` (``user@host``), since an ISO time.

    ``pid`` is its process on that host, ``address`` its address as the broker reports it,
    ``member`` its id in the group.
    """

    run: str
    who: str
    since: str
    pid: int = 0
    address: str = ""
    member: str = ""

    @property
    def client_id(self) -> str:
        return f"{_MARK};run={_quoted(self.run)};by={_quoted(self.who)};since={_quoted(self.since)};pid={self.pid}"

    @classmethod
    def from_client_id(cls, client_id: str, address: str = "", member: str = "") -> LockHolder:
        """Return the holder that a client id encodes; a client id of another form stands for
        ``who``.
        """
        head, *pairs = client_id.split(";")
        fields = {
            name: unquote(value) for name, _, value in (pair.partition("=") for pair in pairs)
        }
        if head != _MARK or not {"run", "by", "since"} <= fields.keys():
            return cls("", client_id, "", address=address, member=member)
        pid = whole_number(fields.get("pid")) or 0
        return cls(fields["run"], fields["by"], fields["since"], pid, address, member)

    @property
    def host(self) -> str:
        return self.who.rpartition("@")[2]

    def __str__(self) -> str:
        parts = [f"run {self.run} of {self.who}" if self.run else self.who]
        parts += [f"since {self.since}"] if self.since else []
        return " ".join(parts) + (f" (at {self.address})" if self.address else "")

    def as_json(self) -> dict[str, str | None]:
        return {
            "run": self.run or None,
            "by": self.who,
            "since": self.since or None,
            "address": self.address or None,
        }
