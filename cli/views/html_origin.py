"""The header of a page: the command that created it, the time, the versions, and the Kafka
cluster.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from connectctl.cli.invocation import arguments
from connectctl.ops.clients.protocols import Clients
from connectctl.ops.config.masking import masked
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.times import utc
from connectctl.ops.kafka.brokers import BrokerVersion


@dataclass(frozen=True)
class PageOrigin:
    """The origin of a page. ``command`` is the words of ``command_line``; ``began`` in seconds
    since the epoch.
    """

    command: tuple[str, ...]
    began: float
    kafka_cluster: str
    brokers: tuple[str, ...] = ()
    context: str | None = None
    bootstrap: str = ""

    version: str = version("connectctl")

    @property
    def began_at(self) -> str:
        """The time of the command, in UTC."""
        return utc(self.began * 1000)


def origin(session: Clients, began: float, kafka_cluster: str) -> PageOrigin:
    """Return the origin of a page of ``session``, also if brokers do not respond."""
    try:
        brokers = tuple(_brokers(session.brokers.versions()))
    except ConnectctlError as e:
        brokers = (f"versions unknown: {e.why or e.what}",)
    bootstrap = str(session.settings.get("bootstrap_servers") or "")
    return PageOrigin(
        command_line(arguments), began, kafka_cluster, brokers, session.settings.context, bootstrap
    )


def _brokers(found: Mapping[int, BrokerVersion | ConnectctlError]) -> Iterator[str]:
    """Yield the versions of the brokers, brokers with the same ones in one text."""
    same: dict[str, list[int]] = {}
    for id_, broker in sorted(found.items()):
        if isinstance(broker, ConnectctlError):
            text = f"version unknown ({broker.why or broker.what})"
        else:
            levels = ", ".join(
                f"{name} {level}" for name, level in sorted(broker.finalized.items())
            )
            text = f"protocol of Kafka {'.'.join(map(str, broker.release)) or 'unknown'}" + (
                levels and f" ({levels})"
            )
        same.setdefault(text, []).append(id_)
    for text, ids in same.items():
        yield f"{'broker' if len(ids) == 1 else 'brokers'} {', '.join(map(str, ids))}: {text}"


def command_line(given: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command, quoted for a shell; secrets, in an address for example, are
    masked.
    """
    words = [shlex.quote(masked(word)) for word in ("connectctl", *given)]
    whole = " ".join(words)
    return tuple(words) if masked(whole) == whole else (masked(whole),)
