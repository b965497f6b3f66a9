"""Resources that remain when a connector is deleted: Connect removes only its configuration and its
tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls, TransactionCalls
from connectctl.ops.connect.connector import Connector, path_of
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.sink_group import dead_letters, sink_group
from connectctl.ops.connect.transactional_ids import of_connector, task_id_prefix
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import counted, some_of

MOST_NAMED = 5


def remaining_resources(
    calls: ConnectCalls,
    connector: Connector,
    group_id: str,
    transactions: Callable[[], TransactionCalls] | None,
    *,
    with_offsets: bool,
) -> tuple[str, ...]:
    """Return the remaining resources as text, with those that are unknown. ``with_offsets``: its
    offsets are deleted as well.

    ``transactions`` opens the client for coordinators, None without brokers.
    """
    found = [] if with_offsets else [_offsets(calls, connector)]
    found.append(_topics(calls, connector))
    if connector.type == "sink":
        group = f"the consumer group {sink_group(connector.name, connector.config)}"
        found.append(group + (", without offsets" if with_offsets else ""))
    else:
        found.append(_ids(connector.name, group_id, transactions))
    return tuple(resource for resource in found if resource)


def _offsets(calls: ConnectCalls, connector: Connector) -> str:
    if connector.type == "sink":
        return ""  # they belong to its consumer group
    dedicated = connector.config.get(TOPIC)
    where = f" and the offsets topic {dedicated}" if dedicated else ""
    try:
        number = len(calls.get(path_of("connectors", connector.name, "offsets"))["offsets"])
    except (ConnectctlError, KeyError, TypeError):
        return f"its source offsets (how many is unknown){where}"
    return (
        f"its offsets of {counted(number, 'source partition')}{where}"
        if number
        else where.removeprefix(" and ")
    )


def _topics(calls: ConnectCalls, connector: Connector) -> str:
    dead = dead_letters(connector.config)
    try:
        answer: Any = calls.get(path_of("connectors", connector.name, "topics"))
        topics = {*answer[connector.name]["topics"], *([dead] if dead else ())}
    except (ConnectctlError, KeyError, TypeError):
        return "its topics (which ones is unknown)"
    return f"the topics {some_of(sorted(topics), MOST_NAMED)}" if topics else ""


def _ids(name: str, group_id: str, transactions: Callable[[], TransactionCalls] | None) -> str:
    if transactions is None:
        return "its transactional ids, if any (the brokers are not given)"
    try:
        listed = transactions().listed(prefixes=[task_id_prefix(group_id, name)])
    except ConnectctlError:
        return "its transactional ids, if any (they could not be listed)"
    ids = of_connector((listing.id for listing in listed.seen), group_id, name)
    unseen = ", and maybe others that could not be seen" if listed.gaps else ""
    return f"the transactional ids {some_of(ids, MOST_NAMED)}{unseen}" if ids or unseen else ""
