"""The conditions under which a broker and a group of workers can be used."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

from connectctl.ops.connect.connect_protocol import decode_assignment, decode_metadata
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.group_state import is_stable
from connectctl.ops.sandbox.access import Access
from connectctl.ops.sandbox.ports import LOOPBACK, answers

_PAUSE = 0.05


def wait_for_broker(
    client: Mapping[str, Any],
    port: int,
    cluster_id: str,
    *,
    check: Callable[[], None],
    deadline: float,
) -> None:
    """Wait until the broker on ``port`` answers ``client``, librdkafka's properties, as a member of
    ``cluster_id`` that clients are sent to.

    ``check`` raises when waiting has become pointless; ``deadline`` is a time of
    ``time.monotonic``. Raises TimedOut.
    """
    while not answers(port):
        _pause(check, deadline, f"nothing listens on port {port}")
    admin = _admin({**client, "bootstrap.servers": f"{LOOPBACK}:{port}"})
    why = ""
    while True:
        try:
            described = admin.describe_cluster(request_timeout=2.0).result()
            # One that was killed answers before the controller has let it in again.
            if described.cluster_id == cluster_id and any(
                node.port == port for node in described.nodes
            ):
                return
            why = (
                f"port {port} belongs to cluster {described.cluster_id} but to none of its live "
                "brokers"
            )
        except _kafka_exception() as error:
            why = str(error)
        _pause(check, deadline, why)


def wait_for_group(
    access: Access,
    group_id: str,
    urls: Collection[str],
    *,
    check: Callable[[], None],
    deadline: float,
) -> None:
    """Wait until the workers at ``urls`` are one stable group, all of it, and each answers
    requests.

    Other arguments and errors are those of :func:`wait_for_broker`.
    """
    import httpx

    with httpx.Client(timeout=5.0, trust_env=False, **access.rest) as client:
        for url in urls:
            while (why := _silent(client, url)) is not None:
                _pause(check, deadline, why)
        admin = _admin(access.client)
        while (why := _unsettled(admin, group_id, set(urls))) is not None:
            _pause(check, deadline, why)


def _silent(client: Any, url: str) -> str | None:
    """Return why a worker is not ready; None if it is."""
    import httpx

    for path in ("/", "/connectors"):
        try:
            status = client.get(url.rstrip("/") + path).status_code
        except httpx.HTTPError as error:
            return f"{url} does not respond ({error})"
        if status != 200:
            return f"{url} responds {status}"
    return None


def _unsettled(admin: Any, group_id: str, urls: set[str]) -> str | None:
    """Return why a group is not the one stable group of the workers at ``urls``; None if it is."""
    try:
        with warnings.catch_warnings():
            # Its replacement does not list Connect's groups.
            warnings.simplefilter("ignore", DeprecationWarning)
            groups = admin.list_groups(group=group_id, timeout=5.0)
    except _kafka_exception() as error:
        return str(error)
    if not groups or not is_stable(groups[0].state):
        return f"group {group_id} is {groups[0].state if groups else 'not found'}"
    members = groups[0].members
    found = {_stripped(decode_metadata(member.metadata)[0]) for member in members}
    if len(members) != len(urls) or found != {_stripped(url) for url in urls}:
        return f"group {group_id} has {len(members)} members, expected {len(urls)}"
    if not all(decode_assignment(member.assignment) for member in members):
        return f"group {group_id} has members without an assignment"
    return None


def _stripped(url: str) -> str:
    return url.rstrip("/")


def _admin(client: Mapping[str, Any]) -> Any:
    from confluent_kafka.admin import AdminClient

    # log_level 0: librdkafka would write every refused connection on standard error.
    return AdminClient({**client, "log_level": 0, "reconnect.backoff.max.ms": 200})


def _kafka_exception() -> type[Exception]:
    from confluent_kafka import KafkaException

    error: type[Exception] = KafkaException
    return error


def _pause(check: Callable[[], None], deadline: float, why: str) -> None:
    check()
    if time.monotonic() > deadline:
        raise TimedOut("Timed out starting the sandbox", why=why, code="sandbox-timed-out")
    time.sleep(_PAUSE)
