"""Recognises a group of workers that does not exist, and suggests another name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import BadInput, ConnectctlError, did_you_mean
from connectctl.ops.kafka.group_state import is_dead

if TYPE_CHECKING:
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.kafka.visibility import Observation

MOST_NAMED = 5


def is_unknown(group: ConnectGroup) -> bool:
    """Return whether Kafka has no such group. Its coordinator deletes a group without members after
    a delay.
    """
    return is_dead(group.state) and not group.members


def unknown_group(
    group: ConnectGroup, visible: Callable[[], Observation[frozenset[str]]]
) -> BadInput:
    """Return the error for a group that does not exist. ``visible`` lists the groups of workers
    that may be described.
    """
    names: frozenset[str] = frozenset()
    with suppress(ConnectctlError):
        names = visible().seen
    hint = "Correct --group-id, or start the workers."
    if names:
        more = ", …" if len(names) > MOST_NAMED else ""
        hint = (
            f"Visible groups of workers: {', '.join(sorted(names)[:MOST_NAMED])}{more}. "
            "Correct --group-id."
        )
    return BadInput(
        f"Kafka has no group {group.id}",
        why="the group.id is wrong, or all its workers have been down for a while",
        next_step=did_you_mean(group.id, names, hint),
        code="no-such-group",
    )
