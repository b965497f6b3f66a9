"""The session time-outs that sinks ask for, and the brokers' bounds for them (``GroupCoordinator``, classic groups)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectctl.ops.checks.types import CheckedConnector, Unseen
from connectctl.ops.connect.offset_store import client_bootstrap, connects_to

LEAST, MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
BOUNDS = (LEAST, MOST)
_SESSION, _PROTOCOL = "session.timeout.ms", "group.protocol"


@dataclass(frozen=True)
class SessionTimeout:
    """A sink's ``session.timeout.ms``, in milliseconds, and the property that sets it."""

    name: str
    milliseconds: int
    property: str


def sessions_of(
    sinks: Sequence[CheckedConnector], worker_property: Callable[[str], str | None], bootstrap: str
) -> tuple[tuple[SessionTimeout, ...], tuple[Unseen, ...]]:
    """Those that a sink's override or the workers' ``consumer.`` sets, and what is not known of other clusters.

    Java's default of 45 s is not among them: the brokers' own bounds take it. With the protocol of KIP-848 the brokers
    alone decide about sessions.
    """
    found: list[SessionTimeout] = []
    unseen: list[Unseen] = []
    for each in sinks:
        if (given := _given(each, worker_property)) is None:
            continue
        if connects_to(each.config, "consumer", bootstrap):
            found.append(given)
        else:
            there = client_bootstrap(each.config, "consumer", bootstrap)
            why = f"{each.name} reads from another Kafka cluster"
            hint = "Run connectctl preflight with a context whose bootstrap_servers are those."
            unseen.append(Unseen(f"{MOST} of the brokers at {there}", why, hint))
    return tuple(found), tuple(unseen)


def _given(each: CheckedConnector, worker_property: Callable[[str], str | None]) -> SessionTimeout | None:
    protocol = each.config.get(f"consumer.override.{_PROTOCOL}") or worker_property(f"consumer.{_PROTOCOL}")
    if (protocol or "").strip().lower() == "consumer":
        return None
    own, workers = f"consumer.override.{_SESSION}", f"consumer.{_SESSION}"
    for name, value in ((own, each.config.get(own)), (workers, worker_property(workers))):
        if value is not None and value.strip().isdigit():
            return SessionTimeout(each.name, int(value), name)
    return None


def unseen_settings(settings: Mapping[int, Mapping[str, str]], names: Sequence[str]) -> Iterator[Unseen]:
    """Those of ``names`` that brokers leave out of their settings: not the same as their default."""
    for name in names:
        silent = [broker for broker, values in sorted(settings.items()) if name not in values]
        if silent:
            brokers = ", ".join(map(str, silent))
            yield Unseen(f"{name} of broker {brokers}", "it is not in the settings that the broker describes")
