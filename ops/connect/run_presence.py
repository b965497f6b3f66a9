"""How a run of a connector is known to others: the group that it is a member of while it lives, and its client id."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from connectctl.ops.config.numbers import whole_number

_START = "connectctl-run"
_SIGN = ";"


@dataclass(frozen=True)
class Holder:
    """A process that has a connector. ``client`` is its client id; ``since`` in seconds of the epoch, None where unknown."""

    client: str
    host: str
    pid: int | None = None
    since: float | None = None

    def __str__(self) -> str:
        if self.pid is None or self.since is None:
            return f"{self.client} at {self.host}"
        when = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return f"process {self.pid} on {self.host}, since {when}"


def presence_group(group_id: str, connector: str) -> str:
    """The consumer group of the runs of a connector; all of one Connect group share a prefix, for ACLs."""
    return f"connectctl-run-{group_id}-{connector}"


def client_id(host: str, pid: int, since: float, unique: str) -> str:
    """The client id of a run: who it is, in what every description of the group tells."""
    return _SIGN.join((_START, host, str(pid), str(int(since)), unique))


def holder(client: str, address: str) -> Holder:
    """The holder that a member of the group is; one with another client id is given as it is."""
    parts = client.split(_SIGN)
    pid, since = map(whole_number, parts[2:4]) if len(parts) == 5 and parts[0] == _START else (None, None)
    if pid is None or since is None:
        return Holder(client, address)
    return Holder(client, parts[1], pid, float(since))
