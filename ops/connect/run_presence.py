"""The presence of a connector's run in a group: the group that the run joins while it lives, and
its client id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from connectctl.ops.config.numbers import whole_number

_START = "connectctl-run"
_SIGN = ";"


@dataclass(frozen=True)
class Holder:
    """A process that runs a connector.

    ``client`` is its client id; ``since`` is in seconds since the epoch, None if unknown.
    """

    client: str
    host: str
    pid: int | None = None
    since: float | None = None

    def __str__(self) -> str:
        if self.pid is None or self.since is None:
            return f"{self.client} at {self.host}"
        when = (
            datetime.fromtimestamp(self.since, UTC)
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z")
        )
        return f"process {self.pid} on {self.host}, since {when}"


def presence_group(group_id: str, connector: str) -> str:
    """Return the consumer group of the runs of a connector; those of one Connect group share a
    prefix, for ACLs.
    """
    return f"connectctl-run-{group_id}-{connector}"


def client_id(host: str, pid: int, since: float, unique: str) -> str:
    """Return the client id of a run, which identifies it in every description of the group."""
    return _SIGN.join((_START, host, str(pid), str(int(since)), unique))


def holder(client: str, address: str) -> Holder:
    """Return the holder that a member of the group represents; another client id is used
    unchanged.
    """
    parts = client.split(_SIGN)
    pid, since = (
        map(whole_number, parts[2:4]) if len(parts) == 5 and parts[0] == _START else (None, None)
    )
    if pid is None or since is None:
        return Holder(client, address)
    return Holder(client, parts[1], pid, float(since))
