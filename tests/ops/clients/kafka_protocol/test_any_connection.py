"""A request to any broker goes to one that accepts it, and waits where none may be asked yet."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from kafka.errors import KafkaConnectionError, NodeNotReadyError

REFUSED = KafkaConnectionError("refused")


class Manager:
    """kafka-python's connections: the broker that it chooses, and whether it accepts, one after
    the other.
    """

    def __init__(self, *looks: tuple[int | None, Exception | None]):
        self._looks = list(looks)
        self._error: Exception | None = None
        self.cluster = SimpleNamespace(broker_metadata=lambda broker: "known")
        self.asked: list[int] = []

    def least_loaded_node(self) -> int | None:
        node, self._error = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        return node

    async def get_connection(self, node: int | None, timeout_ms: int | None) -> Any:
        if node is None:
            raise NodeNotReadyError("No node_id provided")
        self.asked.append(node)
        if self._error is not None:
            raise self._error

        async def send_request(request: str, request_timeout_ms: int) -> str:
            return f"{request} to {node}"

        return SimpleNamespace(send_request=send_request)


def answer(manager: Manager, patience: float = 5) -> str:
    class Client(KafkaProtocolClient):
        @property
        def manager(self) -> Any:
            return manager

    client = Client({"bootstrap.servers": "h:1"}, timeout=patience)
    client._loop = SimpleNamespace(sleep=asyncio.sleep)
    return str(asyncio.run(client.ask("request")))


def test_the_next_broker_is_asked_where_one_refuses() -> None:
    manager = Manager((1, REFUSED), (2, None))
    assert (answer(manager), manager.asked) == ("request to 2", [1, 2])


def test_the_first_broker_that_leaves_its_back_off_is_waited_for() -> None:
    manager = Manager((None, None), (3, NodeNotReadyError(3)), (None, None), (3, None))
    assert (answer(manager), manager.asked) == ("request to 3", [3, 3])


def test_a_refusal_is_not_waited_out_where_there_is_no_other_broker() -> None:
    with pytest.raises(KafkaConnectionError, match="refused"):
        answer(Manager((1, REFUSED), (None, None)), patience=3600)


def test_brokers_that_stay_in_their_back_off_end_the_wait_with_its_time() -> None:
    with pytest.raises(NodeNotReadyError):
        answer(Manager((None, None)), patience=0.05)
