"""The broker of a campaign: one of its own, which is killed and started again on its ports and its log."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from connectctl.ops.sandbox.layout import BROKER

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

PATIENCE = 120.0
# A broker that was killed is registered again when its old session is over.
QUICK = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}


class Broker:
    """A broker that may be killed at any time, also while it is starting. It is always on its way back."""

    def __init__(self, sandbox: Sandbox):
        self.bootstrap = sandbox.bootstrap_servers
        self.sandbox = sandbox
        self.was_killed = False
        self._starting: threading.Thread | None = None

    def kill(self, pause: float) -> None:
        """kill -9, and a start after ``pause`` seconds."""
        self.was_killed = True
        pid = self.sandbox.record.node(BROKER).pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.back:
            self._starting = threading.Thread(target=self._start, args=(pause,), daemon=True)
            self._starting.start()

    @property
    def back(self) -> bool:
        """Whether it serves."""
        return self._starting is None or not self._starting.is_alive()

    def wait(self) -> None:
        """Until it serves."""
        if self._starting is not None:
            self._starting.join(PATIENCE)
            assert self.back

    def _start(self, pause: float) -> None:
        time.sleep(pause)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.sandbox.start_broker()
            except ConnectctlError:
                # It was killed while it was starting.
                if time.monotonic() > end:
                    raise


@contextmanager
def own_broker() -> Iterator[Broker]:
    """A broker that nobody else uses."""
    name = f"campaign-{secrets.token_hex(3)}"
    broker = Broker(up(SandboxSpec(name=name, workers=0, extra_broker_properties=QUICK)))
    try:
        yield broker
    finally:
        broker.wait()
        down(name)
