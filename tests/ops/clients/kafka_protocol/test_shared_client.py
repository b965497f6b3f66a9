"""A client that several producers share: a request holds up no other, and the last of them closes it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.shared_client import SharedProtocolClient


def test_it_is_closed_by_the_last_who_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []

    def close(self: Any) -> None:
        closed.append(self)

    monkeypatch.setattr(KafkaProtocolClient, "close", close)
    first = SharedProtocolClient({"bootstrap.servers": "h:1"}, timeout=1)
    second = first.one_more()
    assert second is first
    first.close()
    assert closed == []
    second.close()
    assert closed == [first]


def test_a_request_that_is_not_answered_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, answered = threading.Event(), threading.Event()

    def run(self: Any, doing: str, work: Any) -> Any:
        return work()

    monkeypatch.setattr(KafkaProtocolClient, "run", run)
    client = SharedProtocolClient({"bootstrap.servers": "h:1"}, timeout=1)

    def hang() -> Any:
        hanging.set()
        assert answered.wait(60)

    def answer() -> Any:
        answered.set()

    thread = threading.Thread(target=client.run, args=("x", hang))
    thread.start()
    assert hanging.wait(60)
    client.run("y", answer)
    thread.join()


def test_a_connection_that_another_one_has_taken_meanwhile_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two wait for the same connection; one takes it for itself, and the other one must not send on it."""

    class Connections:
        def __init__(self) -> None:
            self._conns: dict[int, object] = {}
            self.cluster = SimpleNamespace(broker_metadata=lambda broker: broker)
            self.made: list[object] = []

        def get_connection(self, broker: int, timeout_ms: int | None = None) -> Any:
            connection = self._conns.setdefault(broker, object())
            self.made.append(connection)

            async def connected() -> object:
                if len(self.made) == 1:
                    del self._conns[broker]  # as whoever waits beside us does
                return connection

            return connected()

    client = KafkaProtocolClient({"bootstrap.servers": "h:1"}, timeout=1)
    known = Connections()
    monkeypatch.setitem(vars(client), "_opened", known)
    with pytest.raises(StopIteration) as found:
        client.connection(1, None).send(None)
    assert found.value.value is known.made[1] is not known.made[0]
