"""A group asked for by its name, so that one that may not be seen is not taken for one that is not there.

librdkafka's ``list_groups`` gives members of every protocol in their raw bytes, and finds a group in the brokers' lists:
what the principal may not describe, and what a dead broker coordinated, is left out of them in silence. Whoever is not in
the lists is therefore asked for by name, where the coordinator has to answer (FindCoordinator, DescribeGroups).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.coordinator_loaded import settle
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator, Described, RawMember, coordinated
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.brokers import NEWER_TYPES
from connectctl.ops.kafka.visibility import describe_group

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

_NOT_YET = {"COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"}
"""What a broker says while a group's coordinator moves, or on the first day of a cluster is not there yet."""


def describe(kafka: Kafka, group_id: str) -> Described | None:
    """The group; None where its coordinator says that there is none. A group without members is believed to be one of a
    coordinator that knows all of it alone; see ``settled``.

    Raises ``NotAuthorized`` with the missing right, ``TimedOut`` and ``Unreachable`` where no coordinator can be asked, and
    ``BadInput`` for a group of another kind than classic ones.
    """
    found = _listed(kafka, group_id)
    if found is not None and found.members:
        return found
    settle(kafka, group_id)
    return coordinated(kafka, group_id, lambda coordinator: _asked(coordinator, group_id))


def _asked(coordinator: Coordinator, group_id: str) -> Described | None:
    found = coordinator.describe()
    if found is not None or (kind := coordinator.kind()) is None:
        return found
    if kind in NEWER_TYPES:
        raise BadInput(
            f"{group_id} is no group of a classic protocol",
            why=f"it is a {kind} group ({NEWER_TYPES[kind]})",
            next_step="Give the group of Connect workers, or of an application with group.protocol=classic.",
            code="other-group",
        )
    return coordinator.describe()  # it has come between the two answers


def _listed(kafka: Kafka, group_id: str) -> Described | None:
    """What brokers list of the group, which costs no other connection; None where none of them does."""
    for found in kafka.ask("list its groups", lambda: _list(kafka, group_id)):
        if found.id != group_id:
            continue
        if found.error is None:
            members = tuple(
                RawMember(m.id, m.client_id, m.client_host, m.metadata, m.assignment) for m in found.members
            )
            return Described(str(found.state), found.protocol_type, found.protocol, members)
        if found.error.name() not in _NOT_YET:
            raise kafka.failure(found.error, f"describe the group {group_id}", describe_group(group_id))
    return None


def _list(kafka: Kafka, group_id: str) -> Any:
    with warnings.catch_warnings():
        # Deprecated, and without a successor: describe_consumer_groups refuses groups of other protocol types, and
        # gives no subscriptions as they are.
        warnings.simplefilter("ignore", DeprecationWarning)
        return kafka.admin.list_groups(group=group_id, timeout=kafka.timeout)
