"""Time limits of ``flush``, ``poll`` and ``commit_transaction`` with a broker that hangs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.producer.transaction_state import Phase
from connectctl.ops.core.errors import Unreachable
from connectctl.producer import AbortRequired, RequestFailed, TransactionalProducer
from kafka.protocol.producer import AddPartitionsToTxnResponse, ProduceRequest, ProduceResponse
from kafka.record.memory_records import MemoryRecords

LIMIT = 0.3
MOST = 2.0
"""Seconds for a call with ``LIMIT``, on a machine that is busy."""
RECORD = b"%02d" + bytes(200_000)


class Broker:
    """A broker, and coordinator, that accepts connections and hangs until ``resumes`` is set. It
    keeps the values that it is given, in their order, and the keys of all requests.
    """

    def __init__(self) -> None:
        self.resumes = threading.Event()
        self.values: list[bytes] = []
        self.sequences: list[int] = []
        self.requests: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.resumes.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self.resumes.wait()
        # A client that has closed its connection may leave a part of a request.
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            while size := stream.read(4):
                request = stream.read(int.from_bytes(size, "big"))
                if len(request) < int.from_bytes(size, "big"):
                    return
                stream.write(self._answer(request))
                stream.flush()

    def _answer(self, request: bytes) -> bytes:
        key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
        self.requests.append(key)
        head = 10 + int.from_bytes(request[8:10], "big") + (key == 0 and version >= 9)
        body: Any = self._produced(version, request[head:]) if key == 0 else self._added(version)
        answer = request[4:8] + (b"\0" if key == 0 and version >= 9 else b"") + bytes(body)
        return len(answer).to_bytes(4, "big") + answer

    def _produced(self, version: int, body: bytes) -> bytes:
        topic = ProduceResponse.TopicProduceResponse
        part = topic.PartitionProduceResponse
        found = []
        for each in ProduceRequest[version].decode(body).topic_data:
            for data in each.partition_data:
                batch = MemoryRecords(bytes(data.records)).next_batch()
                assert batch is not None
                self.sequences.append(batch.base_sequence)
                self.values += [bytes(record.value)[:2] for record in batch]
                found.append(part(index=data.index, error_code=0, base_offset=0))
        topics = [topic(name="t", partition_responses=found)]
        return bytes(ProduceResponse[version](responses=topics, throttle_time_ms=0).encode())

    def _added(self, version: int) -> bytes:
        return bytes(
            AddPartitionsToTxnResponse[version](
                throttle_time_ms=0, results_by_topic_v3_and_below=[]
            ).encode()
        )


class Wire:
    """What connections need of kafka-python's: a broker's address. Its requests get no answer."""

    settings: dict[str, Any]
    client_id, bootstrap, timeout, explains = "test", "localhost:1", 10.0, False

    def __init__(self, port: int):
        self.settings, self._port = {}, port
        self.manager = SimpleNamespace(
            broker_version_data=SimpleNamespace(api_version=lambda request: 2)
        )

    def address(self, broker: int) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def failure(self, error: Exception, doing: str) -> Exception:
        return Unreachable(f"{doing}: {error!r}")

    def look_up_again(self) -> None: ...

    def ask(self, request: Any, broker: int | None = None, patience: float | None = None) -> float:
        return self.timeout if patience is None else patience

    def run(self, doing: str, work: Callable[[], float]) -> Any:
        time.sleep(work())
        raise Unreachable(f"{doing}: no answer")

    def close(self) -> None: ...


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()


def producer(broker: Broker, *, version_2: bool, request_ms: int = 10_000) -> TransactionalProducer:
    """Return a producer of one partition, whose transaction has begun."""
    made = TransactionalProducer(
        {
            "bootstrap.servers": "localhost:1",
            "transactional.id": "id",
            "batch.size": 200_000,
            "socket.timeout.ms": request_ms,
        }
    )
    inner: Any = made._producer
    wire = Wire(broker.port)
    inner._wire = inner._leaders._wire = inner._direct._wire = wire
    inner._sender._connections._wire = inner._direct._connections._wire = wire
    inner._leaders._leaders = {"t": {0: 1}}
    inner._sender.adds_partitions, inner._coordinator = version_2, 1
    made._state.become(Phase.READY)
    made.begin_transaction()
    return made


def within(seconds: float, call: Callable[[], Any]) -> Any:
    began = time.monotonic()
    found = call()
    assert time.monotonic() - began < seconds
    return found


@pytest.mark.parametrize("version_2", [True, False])
def test_flush_returns_in_time_while_a_broker_hangs_and_sends_the_rest_later(
    broker: Broker, version_2: bool
) -> None:
    made = producer(broker, version_2=version_2)
    for number in range(30):
        made.produce("t", RECORD % number, partition=0)
    for _ in range(2):
        assert within(MOST, lambda: made.flush(LIMIT)) == 30
    called: list[int] = []
    made.produce("t", RECORD % 30, partition=0, on_delivery=lambda *_: called.append(1))
    assert within(MOST, lambda: made.poll(LIMIT)) == 0
    with pytest.raises(RequestFailed, match=r"not acknowledged after 0\.3 s: 31 records"):
        within(MOST, lambda: made.commit_transaction(LIMIT))
    broker.resumes.set()
    assert (made.flush(30), called) == (0, [1])
    assert broker.values == [b"%02d" % number for number in range(31)]
    assert broker.sequences == sorted({*broker.sequences})
    assert broker.requests.count(24) == (0 if version_2 else 1)
    made.close()


def test_flush_returns_in_time_while_no_broker_tells_the_partitions_of_a_topic(
    broker: Broker,
) -> None:
    made = producer(broker, version_2=True)
    made.produce("unknown", b"x")
    assert within(MOST, lambda: made.flush(LIMIT)) == 1
    made.close()


def test_an_abort_discards_what_a_broker_that_hangs_did_not_take(broker: Broker) -> None:
    made = producer(broker, version_2=True)
    reasons: list[str | None] = []
    for number in range(30):
        made.produce(
            "t",
            RECORD % number,
            partition=0,
            on_delivery=lambda error, _: reasons.append(error and error.name()),
        )
    made.flush(LIMIT)
    with pytest.raises(RequestFailed):
        within(MOST, lambda: made.abort_transaction(LIMIT))
    assert (len(made), {*reasons}) == (30, set())
    made.close()
    assert (len(made), {*reasons}) == (0, {"_PURGE_INFLIGHT"})


def test_a_request_has_its_own_limit_within_that_of_a_commit(broker: Broker) -> None:
    made = producer(broker, version_2=True, request_ms=300)
    made.produce("t", b"x", partition=0)
    with pytest.raises(AbortRequired, match=r"did not answer within socket\.timeout\.ms"):
        within(MOST, lambda: made.commit_transaction(60))
    made.close()
