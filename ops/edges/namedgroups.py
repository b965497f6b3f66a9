"""A group asked for by its name, so that one that may not be seen is not taken for one that is not there.

librdkafka's ``list_groups`` gives members of every protocol in their raw bytes, and finds a group in the brokers' lists:
what the principal may not describe, and what a dead broker coordinated, is left out of them in silence. Whoever is not in
the lists is therefore asked for by name, where the coordinator has to answer (FindCoordinator, DescribeGroups).
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from connectctl.ops.edges.settled import settle
from connectctl.ops.errors import Unreachable
from connectctl.ops.model.visibility import describe_group

if TYPE_CHECKING:
    from connectctl.ops.edges.kafka import Kafka

_OF_ANOTHER_KIND = "_INVALID_ARG"
"""What librdkafka says of a group that is there and has no consumers (a group of Connect workers, for one)."""
_NOT_THERE = "GROUP_ID_NOT_FOUND"
"""What brokers answer for a group that is not there, since KIP-1043; before, they describe it as Dead."""
_NOT_YET = {"COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"}
"""What a broker says while a group's coordinator moves, or on the first day of a cluster is not there yet."""
PAUSE = 0.2
"""Seconds between two looks at a group that is there and that no broker lists: its coordinator is moving."""


def describe(kafka: Kafka, group_id: str) -> Any | None:
    """librdkafka's description of the group; None where its coordinator says that there is none. A group without members
    is believed to be one of a coordinator that knows all of it alone; see ``settled``.

    Raises ``NotAuthorized`` with the missing right, and ``Unreachable`` where no coordinator can be asked.
    """
    found = _once(kafka, group_id)
    if found is None or not found.members:
        settle(kafka, group_id)
        found = _once(kafka, group_id)
    return found


def _once(kafka: Kafka, group_id: str) -> Any | None:
    """What brokers tell of the group, as of what its coordinator is sure of; None where that is nothing."""
    doing, right = f"describe the group {group_id}", describe_group(group_id)
    deadline = time.monotonic() + kafka.timeout
    while True:
        for found in kafka.ask("list its groups", lambda: _list(kafka, group_id)):
            if found.id == group_id:
                if found.error is None:
                    return found
                if found.error.name() not in _NOT_YET:
                    raise kafka.failure(found.error, doing, right)
        why = _hidden(kafka, group_id)
        if why is None:
            return None
        if time.monotonic() > deadline:
            raise Unreachable(f"Kafka at {kafka.bootstrap} could not {doing}", why=why, next_step="Try again.")
        time.sleep(PAUSE)


def _hidden(kafka: Kafka, group_id: str) -> str | None:
    """Why no broker lists the group, which its coordinator knows or may know; None where it knows that there is none."""
    from confluent_kafka import ConsumerGroupState, KafkaException

    there = "its coordinator knows it, and no broker lists it"
    future = kafka.admin.describe_consumer_groups([group_id], request_timeout=kafka.timeout)[group_id]
    try:
        return None if future.result().state is ConsumerGroupState.DEAD else there
    except KafkaException as e:
        error = e.args[0]
        if error.name() in _NOT_YET:
            return f"its coordinator cannot be asked yet: {error.name()}"
        if error.name() in (_OF_ANOTHER_KIND, _NOT_THERE):
            return there if error.name() == _OF_ANOTHER_KIND else None
        raise kafka.failure(error, f"describe the group {group_id}", describe_group(group_id)) from e


def _list(kafka: Kafka, group_id: str) -> Any:
    with warnings.catch_warnings():
        # Deprecated, and without a successor: describe_consumer_groups refuses groups of other protocol types, and
        # gives no subscriptions as they are.
        warnings.simplefilter("ignore", DeprecationWarning)
        return kafka.admin.list_groups(group=group_id, timeout=kafka.timeout)
