"""Who holds the lock of a Connect cluster: what a member of the lock's group says of itself in its client id.

The client id is what everybody can see of a member, at once and with any tool (``kafka-consumer-groups.sh --describe
--members``); its metadata show only once the group is Stable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from connectctl.ops.config.numbers import whole_number

PREFIX = "connectctl-lock-"
_MARK = "connectctl"


def _quoted(text: str) -> str:
    """``text`` with every byte but a few as ``%XX``, so that it has no separator and is plain ASCII."""
    return re.sub(rb"[^\w.:@-]", lambda found: b"%%%02X" % found[0][0], text.encode(errors="replace")).decode()


def _unquoted(text: str) -> str:
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode(errors="replace"))
    return raw.decode(errors="replace")


def group_of(group_id: str) -> str:
    """The group whose only member holds the lock of the workers' group ``group_id``."""
    return f"{PREFIX}{group_id}"


@dataclass(frozen=True)
class LockHolder:
    """``run`` of the journal of ``who`` (``user@host``), since an ISO time; ``address`` is where the broker sees it.

    ``pid`` is its process on that host, ``member`` its id in the group.
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
        """What a member's client id says; a member that is none of ours is named by that id."""
        head, *pairs = client_id.split(";")
        said = {name: _unquoted(value) for name, _, value in (pair.partition("=") for pair in pairs)}
        if head != _MARK or not {"run", "by", "since"} <= said.keys():
            return cls("", client_id, "", address=address, member=member)
        pid = whole_number(said.get("pid")) or 0
        return cls(said["run"], said["by"], said["since"], pid, address, member)

    @property
    def host(self) -> str:
        return self.who.rpartition("@")[2]

    def __str__(self) -> str:
        words = [f"run {self.run} of {self.who}" if self.run else self.who]
        words += [f"since {self.since}"] if self.since else []
        return " ".join(words) + (f" (at {self.address})" if self.address else "")

    def as_json(self) -> dict[str, str | None]:
        return {"run": self.run or None, "by": self.who, "since": self.since or None, "address": self.address or None}
