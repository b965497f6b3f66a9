"""The rules on the state of a group as its coordinator describes it: Stable, Empty, Dead, and two
of a rebalance.
"""

from __future__ import annotations


def is_stable(state: str) -> bool:
    """Return whether the group has members and none of them is waiting for a rebalance."""
    return state == "Stable"


def instability(state: str) -> str | None:
    """Return in words that the group is not stable, None if it is."""
    return None if is_stable(state) else f"the group is {state}"


def is_settled(state: str) -> bool:
    """Return whether assignments and metadata of members are known: in a rebalance coordinators
    give neither.
    """
    return is_stable(state) or not has_members(state)


def has_members(state: str) -> bool:
    """Return whether the group has members."""
    return state not in ("Empty", "Dead")


def is_dead(state: str) -> bool:
    """Return whether the coordinator knows no such group. It forgets one without members after a
    while, too.
    """
    return state == "Dead"
