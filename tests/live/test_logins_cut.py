"""Three secured brokers of which one after the other is killed while clients log in: nobody is told
that he is refused.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from connectctl.ops.sandbox.security import PLAIN, SCRAM
from connectctl.ops.task_runtime.task.retries import is_retriable
from live.campaignbroker import QUICK, Broker
from live.real import DEADLINE
from live.securedcluster import as_admin

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    # kafka-python leaves the socket of a connection that broke within its login to the garbage
    # collector.
    pytest.mark.filterwarnings("ignore:.*<ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"),
]
TIMEOUT, ROUNDS = 3.0, 8
EACH = {"librdkafka Unreachable", "kafka-python Unreachable", "librdkafka in", "kafka-python in"}
"""What is to be seen. Which clients are logging in when a broker dies is chance: there are more
rounds until each was.
"""


@pytest.fixture
def three() -> Iterator[Broker]:
    name = f"logins-{secrets.token_hex(3)}"
    spec = SandboxSpec(
        name=name,
        workers=0,
        brokers=3,
        secured=True,
        support="disabled",
        extra_broker_properties=QUICK,
    )
    broker = Broker(up(spec))
    try:
        yield broker
    finally:
        broker.wait()
        down(name)


def client(three: Broker, way: str, broker: int | None = None) -> dict[str, Any]:
    """An administrator's properties, who knows of all brokers or of one."""
    known = three.sandbox.listeners[way].split(",")
    return as_admin(three.sandbox, way) | {
        "bootstrap.servers": ",".join(known if broker is None else [known[broker - 1]])
    }


def test_a_broker_that_is_killed_while_clients_log_in_is_an_outage_and_no_refusal(
    three: Broker,
) -> None:
    seen: Counter[str] = Counter()
    wrong: list[ConnectctlError] = []
    over = threading.Event()

    def log_in(way: str, kind: str, broker: int) -> None:
        """Again and again with new connections, to the broker that is about to die."""
        properties = client(three, way, broker)
        while not over.is_set():
            try:
                if kind == "librdkafka":
                    Kafka(properties, timeout=TIMEOUT).cluster_id()
                else:
                    with closing(TransactionClient(properties, timeout=TIMEOUT)) as calls:
                        calls.cluster_id()
                seen[f"{kind} in"] += 1
            except ConnectctlError as e:
                seen[f"{kind} {type(e).__name__}"] += 1
                if not is_retriable(e):
                    wrong.append(e)

    threads = [
        threading.Thread(target=log_in, args=(way, kind, broker), daemon=True)
        for broker in (1, 2)
        for way in (SCRAM, PLAIN)
        for kind in ("librdkafka", "kafka-python")
    ]
    for thread in threads:
        thread.start()
    number, late = 0, time.monotonic() + DEADLINE
    while number < ROUNDS or not (seen.keys() >= EACH or wrong):
        assert time.monotonic() < late, dict(seen)
        time.sleep(1.0)
        three.kill(0.5, 1 + number % 2)
        three.wait()
        number += 1
    over.set()
    for thread in threads:
        thread.join(300)
    print(dict(seen))
    assert not wrong, [str(each) for each in wrong[:3]]
    refused = client(three, SCRAM) | {"sasl.password": "wrong"}
    with pytest.raises(NotAuthorized):
        Kafka(refused, timeout=120).cluster_id()
    with pytest.raises(NotAuthorized), closing(TransactionClient(refused, timeout=120)) as calls:
        calls.cluster_id()
