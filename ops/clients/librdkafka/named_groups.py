"""Describes a group by its name, so that a group that may not be seen is not taken for a missing
one.

librdkafka's ``list_groups`` returns members of every protocol in their raw bytes, on the open
connection. But it searches the lists of all brokers: these leave out what the principal may not
describe, and one broker that has just died ends the request. A group that is not found is therefore
requested by name from its coordinator (FindCoordinator, DescribeGroups).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from connectctl.ops.clients.kafka_protocol.coordinator_loaded import described
from connectctl.ops.clients.kafka_protocol.group_coordinator import Described, RawMember
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.core.errors import NotAuthorized, NotTrusted, TimedOut, Unreachable

PATIENCE = 5.0
"""Seconds for the brokers' lists, which come in milliseconds."""


def describe(
    kafka: Connection, group_id: str, check: Callable[[], None] = lambda: None
) -> Described | None:
    """Return the group; None if its coordinator has none of that name. ``check`` is called before
    its coordinator is asked. Raises what ``described`` and ``check`` raise.
    """
    found = _listed(kafka, group_id)
    if found is not None and found.members:
        return found
    check()
    return described(kafka, group_id)


def _listed(kafka: Connection, group_id: str) -> Described | None:
    """Return the group from the lists of brokers; None if none has it, or if not all brokers
    respond.

    Raises ``NotAuthorized`` and ``NotTrusted`` if the brokers refuse the connection.
    """
    try:
        groups = kafka.ask("list its groups", lambda: _list(kafka, group_id))
    except (NotAuthorized, NotTrusted):
        raise
    except (TimedOut, Unreachable):
        return None
    for found in groups:
        if found.id == group_id and found.error is None:
            members = tuple(
                RawMember(m.id, m.client_id, m.client_host, m.metadata, m.assignment)
                for m in found.members
            )
            return Described(str(found.state), found.protocol_type, found.protocol, members)
    return None


def _list(kafka: Connection, group_id: str) -> Any:
    with warnings.catch_warnings():
        # Deprecated, and without a successor: describe_consumer_groups refuses groups of other
        # protocol types, and returns no raw subscriptions.
        warnings.simplefilter("ignore", DeprecationWarning)
        return kafka.admin.list_groups(group=group_id, timeout=min(kafka.timeout, PATIENCE))
