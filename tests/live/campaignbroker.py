"""The broker of a campaign, or its three: its own, which are killed and started again on their
ports and their logs.
"""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox.cluster import SandboxSpec, down
from connectctl.ops.sandbox.layout import broker_name
from fakes.sandboxes import start_broker
from live.nodes import process_of, send
from otherbrokers import up_as_asked

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.sandbox.record import Node

PATIENCE = 120.0
LOGGED = 4000
"""Characters of the log of a broker that ended by itself."""
# A broker that was killed is registered again when its old session is over.
QUICK = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}


class Broker:
    """A broker, or several, of which each may be killed at any time, also while it is starting. It
    is always on its way back. Brokers are numbered from 1 to ``count``.
    """

    def __init__(self, sandbox: Sandbox):
        self.bootstrap = sandbox.bootstrap_servers
        self.sandbox = sandbox
        self.was_killed = False
        self.count = sandbox.spec.brokers
        self._starting: dict[int, threading.Thread] = {}

    def kill(self, pause: float, number: int = 1) -> None:
        """kill -9, and a start after ``pause`` seconds."""
        self.was_killed = True
        send(self.sandbox, self._node(number), signal.SIGKILL)
        if not self._coming(number):
            self._starting[number] = threading.Thread(
                target=self._start, args=(pause, number), daemon=True
            )
            self._starting[number].start()

    def restart(self, number: int) -> None:
        """End a broker as an operator does, so that it hands its leaders over, and start it
        again.
        """
        process = process_of(self.sandbox, self._node(number))
        assert process is not None
        process.terminate()
        process.wait(PATIENCE)
        self._start(0.0, number)

    def suspend(self, seconds: float, number: int) -> None:
        """Let a broker be of no use for so long, with all its connections open."""
        node = self._node(number)
        assert send(self.sandbox, node, signal.SIGSTOP)
        time.sleep(seconds)
        send(self.sandbox, node, signal.SIGCONT)

    def _node(self, number: int) -> Node:
        return self.sandbox.record.node(broker_name(number))

    def _coming(self, number: int) -> bool:
        return number in self._starting and self._starting[number].is_alive()

    @property
    def back(self) -> bool:
        """Whether all of them serve."""
        return not any(map(self._coming, list(self._starting)))

    def wait(self) -> None:
        """Until all of them serve. Fails where one has ended that nobody killed."""
        for starting in self._starting.values():
            starting.join(PATIENCE)
        assert self.back
        assert not self.ended(), self.ended()

    def ended(self) -> str:
        """Return which of them have ended although nobody killed them, with their logs; empty where
        none has.
        """
        names = [
            node.name
            for node in map(self._node, range(1, self.count + 1))
            if process_of(self.sandbox, node) is None
        ]
        logs = [self.sandbox.layout.log(name).read_text(errors="replace") for name in names]
        return "\n".join(
            f"{name} ended by itself:\n{log[-LOGGED:]}"
            for name, log in zip(names, logs, strict=True)
        )

    def _start(self, pause: float, number: int) -> None:
        time.sleep(pause)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return start_broker(self.sandbox, number)
            except ConnectctlError:
                # It was killed while it was starting.
                if time.monotonic() > end:
                    raise


@contextmanager
def own_broker(brokers: int = 1, workers: int = 0) -> Iterator[Broker]:
    """A broker that nobody else uses, or three, and ``workers`` of Connect with exactly-once source
    support.
    """
    spec = SandboxSpec(
        name=f"campaign-{secrets.token_hex(3)}",
        workers=workers,
        brokers=brokers,
        support="enabled" if workers else "disabled",
        extra_broker_properties=QUICK,
    )
    broker = Broker(up_as_asked(spec))
    try:
        yield broker
    finally:
        with suppress(AssertionError):  # told to the test that meets it
            broker.wait()
        down(spec.name)


class KeptBroker:
    """``own_broker`` for many tests: a new one where one of its brokers has ended by itself, so that
    a test that failed by this can pass when it is repeated.
    """

    def __init__(self, brokers: int):
        self._brokers = brokers
        self._open = ExitStack()
        self._broker: Broker | None = None

    def get(self) -> Broker:
        """Return it with all its brokers."""
        if self._broker is not None and (ended := self._broker.ended()):
            print(ended)
            self.close()
        if self._broker is None:
            self._broker = self._open.enter_context(own_broker(self._brokers))
        return self._broker

    def close(self) -> None:
        self._broker = None
        self._open.close()
