"""Clients of which one call fails with an error of the library's own: confluent_kafka's and
kafka-python's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest
from connectctl.ops.clients.kafka_protocol import client, raw_connection

KINDS = {
    "Consumer": (
        "assign",
        "consume",
        "poll",
        "subscribe",
        "close",
        "get_watermark_offsets",
        "incremental_assign",
    ),
    "Producer": (
        "init_transactions",
        "begin_transaction",
        "produce",
        "produce_batch",
        "flush",
        "poll",
        "commit_transaction",
        "abort_transaction",
    ),
}
ADMIN = ("list_topics", "list_groups", "poll")
ASYNCHRONOUS = (
    "describe_configs",
    "describe_topics",
    "describe_cluster",
    "list_offsets",
    "describe_consumer_groups",
    "list_consumer_groups",
    "create_topics",
)


class Failing:
    """The call with the number ``at`` raises ``error()``, made new for it; ``calls`` are those that
    there were.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.at = 0
        self.error: Callable[[], Exception] = ConnectionError

    def hit(self, call: str, error: Callable[[], Exception] | None = None) -> None:
        """A call is made, which may fail with an ``error`` of its own."""
        self.calls.append(call)
        if len(self.calls) == self.at:
            raise (error or self.error)()


@contextmanager
def confluent() -> Iterator[Failing]:
    """confluent_kafka's clients that are made meanwhile."""
    failing = Failing()
    with pytest.MonkeyPatch.context() as patch:
        for name, methods in KINDS.items():
            kind = getattr(confluent_kafka, name)
            own = {method: _wrapped(kind, method, failing) for method in methods}
            patch.setattr(confluent_kafka, name, type(name, (kind,), own))
        admin = confluent_kafka.admin.AdminClient
        for method in ADMIN:
            patch.setattr(admin, method, _wrapped(admin, method, failing))
        for method in ASYNCHRONOUS:
            patch.setattr(admin, method, _asynchronous(admin, method, failing))
        yield failing


def _asynchronous(kind: Any, name: str, failing: Failing) -> Any:
    """A call whose answers are futures, which are what fails."""
    method = getattr(kind, name)

    def call(self: Any, *args: Any, **more: Any) -> Any:
        found = method(self, *args, **more)
        try:
            failing.hit(f"{kind.__name__}.{name}")
        except Exception as e:  # noqa: BLE001  # whatever it is to raise
            failed: Future[Any] = Future()
            failed.set_exception(e)
            return dict.fromkeys(found, failed) if isinstance(found, dict) else failed
        return found

    return call


def _wrapped(kind: Any, name: str, failing: Failing) -> Any:
    method = getattr(kind, name)

    def call(self: Any, *args: Any, **more: Any) -> Any:
        failing.hit(f"{kind.__name__}.{name}")
        return method(self, *args, **more)

    return call


@contextmanager
def kafka_python(*, answered: bool) -> Iterator[Failing]:
    """kafka-python's requests; those that fail are sent first where they are ``answered``, and the
    answer is lost.
    """
    failing = Failing()
    raw = raw_connection.RawConnection
    ask, transmit, hear = client.KafkaProtocolClient.ask, raw._transmit, raw.await_answer

    async def asked(self: Any, request: Any, *args: Any, **more: Any) -> Any:
        found = await ask(self, request, *args, **more) if answered else None
        failing.hit(type(request).__name__)
        return found if answered else await ask(self, request, *args, **more)

    def sent(self: Any, request: Any) -> Any:
        if not answered:
            failing.hit(f"raw {type(request).__name__}", ConnectionResetError)
        return transmit(self, request)

    def heard(self: Any, number: int) -> None:
        hear(self, number)
        if answered:
            failing.hit("raw answer", TimeoutError)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.KafkaProtocolClient, "ask", asked)
        patch.setattr(raw, "_transmit", sent)
        patch.setattr(raw, "await_answer", heard)
        yield failing


def told(calls: list[str]) -> dict[str, int]:
    """How often there was which call."""
    return dict(Counter(calls))
