"""Connections that nobody closes: the garbage collector finds them, wherever it runs."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient


class Loop:
    """kafka-python's loop, which logs while it closes, so that it needs the lock of a log
    handler.
    """

    def __init__(self, lock: threading.Lock, closed: threading.Event, **_: Any) -> None:
        self._lock, self._done, self._closed = lock, closed, False

    def start(self) -> None:
        pass

    def run(self, work: Any, *_: Any) -> None:
        if work is not None:
            logging = threading.Thread(target=self._log, daemon=True)
            logging.start()
            logging.join()

    def _log(self) -> None:
        with self._lock:
            pass

    def close(self) -> None:
        self._done.set()


class Manager:
    bootstrap_async = None

    def __init__(self, loop: Loop, **_: Any) -> None:
        self._net = loop

    def close(self) -> None:
        pass

    def get_connection(self, node_id: int) -> None:
        pass


def test_an_abandoned_connection_is_closed_although_a_lock_is_held_that_its_loop_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = threading.Lock()
    closed = threading.Event()
    monkeypatch.setattr("kafka.net.manager.KafkaConnectionManager", Manager)
    monkeypatch.setattr(
        "kafka.net.selector.NetworkSelector", lambda **how: Loop(lock, closed, **how)
    )
    wire = KafkaProtocolClient({}, timeout=1)
    assert wire.manager
    collected = threading.Event()

    def collect() -> None:
        with lock:
            gc.collect()
            collected.set()

    del wire
    gc.disable()
    try:
        threading.Thread(target=collect, daemon=True).start()
        assert collected.wait(60), (
            "the garbage collector waits for a loop that waits for this thread"
        )
    finally:
        gc.enable()
    assert closed.wait(60)
