"""``--watch``: an observation of a cluster that is repeated in place until ^C."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from connectctl.cli.output.waiting import quiet
from connectctl.cli.session import Session
from connectctl.ops.core.errors import BadInput, ConnectctlError

if TYPE_CHECKING:
    from connectctl.ops.operations.cluster.observe import ClusterView

SHORTEST = 0.5
"""Least seconds between two reads; their load on the cluster is negligible."""
T = TypeVar("T")


def check_interval(interval: float) -> None:
    """Raise ``BadInput`` for an interval that is too short."""
    if interval < SHORTEST:
        raise BadInput(
            f"--interval {interval:g} is too short",
            next_step=f"Give at least {SHORTEST:g} seconds.",
        )


def repeat(
    session: Session,
    interval: float,
    observe: Callable[[Session], T],
    show: Callable[[str, T], None],
    view_of: Callable[[T], ClusterView],
) -> None:
    """Observe and show, with a title, until ^C. Every read opens new connections, because a
    connection caches the topics of its first read.

    After the first one, a failed read is reported and does not end the watch.
    """
    found: T | None = None
    try:
        with quiet():
            while True:
                title = f"{datetime.now():%H:%M:%S}   every {interval:g} s, ^C to end"
                try:
                    found = observe(session)
                except ConnectctlError as e:
                    if found is None:
                        raise
                    title = f"{title}   as last seen; error: {e}"
                show(title, found)
                session = _reopened(session, view_of(found))
                time.sleep(interval)
    except KeyboardInterrupt:
        return


def _reopened(session: Session, view: ClusterView) -> Session:
    """Copy the session without its connections, with the discovered topics as settings, so that
    discovery runs only once.
    """
    proven = {
        t.role: t.name
        for t in view.topics
        if t.name and not any(f.subject == t.name for f in view.findings)
    }
    named = {f"topics.{role}": name for role, name in proven.items()}
    return replace(session, flags={**session.flags, **named})
