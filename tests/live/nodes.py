"""Signals to brokers and workers of a sandbox."""

from __future__ import annotations

from contextlib import suppress

import psutil
from connectctl.ops.sandbox.record import Node

SAME = 0.1
"""Seconds by which the start time of one process may differ between two readings."""


def process_of(node: Node) -> psutil.Process | None:
    """Return the process of a broker or worker; None if it is gone.

    Numbers of processes come again within minutes where many are started: what has died and was not
    yet started again may have left its number to a process of somebody else.
    """
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(node.pid) if node.pid else None
        if process is not None and abs(process.create_time() - node.created) < SAME:
            return process
    return None


def send(node: Node, number: int) -> bool:
    """Send a signal to a broker or worker. Returns False if it is gone."""
    process = process_of(node)
    if process is None:
        return False
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
        return True
    return False
