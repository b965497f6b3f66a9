"""Signals to brokers and workers of a sandbox."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
from connectctl.ops.sandbox.processes import is_alive
from live import sparkclusters

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.sandbox.record import Node


def process_of(sandbox: Sandbox, node: Node) -> psutil.Process | None:
    """Return the process of a broker or worker; None if it is gone.

    Numbers of processes come again within minutes where many are started: what has died and was not
    yet started again may have left its number to a process of somebody else.
    """
    with suppress(psutil.NoSuchProcess):
        if is_alive(node.pid, node.created, sandbox.layout.root):
            return psutil.Process(node.pid)
    return None


def send(sandbox: Sandbox, node: Node, number: int) -> bool:
    """Send a signal to a broker or worker. Returns False if it is gone."""
    process = process_of(sandbox, node)
    if process is not None:
        sparkclusters.send([process], number)
    return process is not None
