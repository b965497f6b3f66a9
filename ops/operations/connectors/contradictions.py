"""Connectors for which workers and the config topic contradict each other: changes of them are
refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.connect.connector import Connector
from connectctl.ops.core.errors import Refused
from connectctl.ops.kafka.visibility import Gap, Reason, refused

UNLISTED = "does not list it, and the config topic has it"
LISTED = "lists it, and the config topic does not have it"
OtherLists = Mapping[str, frozenset[str]]


def doubts(
    found: Sequence[Connector], configured: Collection[str] | None, others: OtherLists
) -> dict[str, str]:
    """Return the differences between workers, and between workers and the config topic, by
    connector.
    """
    listed = {connector.name for connector in found}
    doubtful: dict[str, str] = {}
    for url, names in others.items():
        doubtful |= dict.fromkeys(
            listed - names, f"{url} does not list it, and another worker does"
        )
        doubtful |= dict.fromkeys(names - listed, f"{url} lists it, and another worker does not")
    if configured is not None:
        doubtful |= dict.fromkeys(set(configured) - listed, f"the worker {UNLISTED}")
        doubtful |= dict.fromkeys(listed - set(configured), f"the worker {LISTED}")
    return doubtful


def doubt_gap(name: str, doubt: str | None) -> Gap:
    """Return the gap of a connector with a contradiction."""
    return Gap(f"connector {name}", Reason.CONTRADICTED, detail=doubt)


def refuse_doubtful(found: Iterable[Connector]) -> None:
    """Raise ``Refused`` if there is a contradiction about a connector in ``found``."""
    if gaps := [
        doubt_gap(connector.name, connector.doubt) for connector in found if connector.doubt
    ]:
        raise refused(gaps, "Workers and config topic do not agree; nothing was changed")


def not_listed(calls: ConnectCalls, name: str) -> Refused:
    """Return the error for a connector of the config topic that the workers do not have."""
    gap = doubt_gap(name, f"{' and '.join(calls.urls)} {UNLISTED}")
    return refused(
        [gap], f"Workers and config topic do not agree about {name}; nothing was changed"
    )
