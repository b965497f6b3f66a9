"""InitProducerId for many ids: the bytes are kafka-python's, and every id is told once, whatever
breaks.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import init_producer_ids
from connectctl.ops.clients.kafka_protocol.init_producer_ids import (
    CHUNK,
    IN_FLIGHT,
    LANES,
    SHARE,
    Init,
    body_of,
    init_many,
)
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection
from connectctl.ops.clients.kafka_protocol.transactions import init_request
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.error_handling import Code

WIRE: Any = SimpleNamespace(client_id="connectctl")


@pytest.mark.parametrize("id", ["a", "x" * 126, "x" * 127, "x" * 20_000, "grüße-0"])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_requests_are_those_of_kafka_python(id: str, version: int) -> None:
    sent: list[bytes] = []
    raw: Any = object.__new__(RawConnection)
    raw._wire, raw._asked, raw._socket = WIRE, 6, SimpleNamespace(sendall=sent.append)
    raw._session = SimpleNamespace(is_ending=False)
    assert raw.send_many(22, version, [body_of(id, 60_000), body_of(id, 1)]) == range(7, 9)
    theirs = b""
    for number, timeout in ((7, 60_000), (8, 1)):
        request = init_request(id, timeout)
        request.API_VERSION = version
        request.with_header(correlation_id=number, client_id="connectctl")
        theirs += request.encode(framed=True, header=True)
    assert b"".join(sent) == theirs


class Connection:
    """Answers with the number of the request as the producer id; breaks after ``breaks_at``
    answers.

    A selector finds it ready whenever answers are on their way; ``at_once`` of them arrive
    together. A ``silent`` one has none, ever.
    """

    made: list[Connection]
    breaks: list[int]
    at_once: int
    silent = False

    def __init__(self, wire: Any, broker: int, timeout: float, *, room: int) -> None:
        if broker == 0:
            raise Unreachable("nobody there")
        self.broker, self.asked, self.heard, self.chunks = broker, 0, 0, 0
        self.breaks_at = self.breaks.pop() if self.breaks else None
        self.wants_quiet = False
        self.most = 0
        self.closed = False
        self._ours, self._theirs = socket.socketpair()
        self.made.append(self)

    def fileno(self) -> int:
        return self._ours.fileno()

    def send_many(self, key: int, version: int, bodies: Sequence[bytes]) -> range:
        assert not self.wants_quiet or self.asked == self.heard, (
            "a login is renewed while no answer is on its way"
        )
        self.wants_quiet = False
        self.chunks += 1
        first, self.asked = self.asked + 1, self.asked + len(bodies)
        self.most = max(self.most, self.asked - self.heard)
        if first == self.heard + 1 and not self.silent:
            self._theirs.send(b"!")
        return range(first, self.asked + 1)

    def arrived(self, layout: struct.Struct) -> list[tuple[int, ...]]:
        until = min(self.asked, self.heard + self.at_once)
        if self.breaks_at is not None and until >= self.breaks_at:
            raise Broken("gone")
        found = [
            layout.unpack(layout.pack(0, 0, 0, number, 3))
            for number in range(self.heard + 1, until + 1)
        ]
        self.heard = until
        self.wants_quiet = self.chunks % 3 == 0
        if self.heard == self.asked:
            self._ours.recv(1)
        return found

    def close(self) -> None:
        self.closed = True
        self._ours.close()
        self._theirs.close()


def run(
    monkeypatch: pytest.MonkeyPatch,
    parts: dict[int, int],
    *breaks: int,
    at_once: int = 4,
    patience: float = 60.0,
) -> dict[str, tuple[Code, Any]]:
    monkeypatch.setattr(Connection, "made", [], raising=False)
    monkeypatch.setattr(Connection, "breaks", list(breaks), raising=False)
    monkeypatch.setattr(Connection, "at_once", at_once, raising=False)
    monkeypatch.setattr(init_producer_ids, "RawConnection", Connection)
    ids = [(broker, [f"{broker}-{n}" for n in range(count)]) for broker, count in parts.items()]
    told: dict[str, tuple[Code, Any]] = {}

    def hear(id: str, code: Code, answer: Any) -> None:
        assert id not in told
        told[id] = code, answer

    timeouts = {id: 60_000 for _, some in ids for id in some}
    init_many(WIRE, 5, ids, timeouts, hear, patience=patience)
    assert told.keys() == timeouts.keys()
    until(lambda: all(connection.closed for connection in Connection.made))
    return told


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("at_once", [1, 4, CHUNK])
def test_every_id_is_asked_for_once_on_many_connections(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    told = run(monkeypatch, {1: 5_000, 2: 3_050}, at_once=at_once)
    counts = Counter(connection.broker for connection in Connection.made)
    assert 1 <= counts[1] <= 5_000 / SHARE
    assert 1 <= counts[2] <= 31
    assert {code for code, _ in told.values()} == {Code.NONE}
    assert all(answer == Init(0, answer.producer_id, 3) for _, answer in told.values())
    assert sum(connection.asked for connection in Connection.made) == 8_050
    assert max(connection.most for connection in Connection.made) * LANES <= IN_FLIGHT


def test_a_connection_that_breaks_leaves_what_it_had_sent_in_doubt_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = run(monkeypatch, {1: 20_000}, 11, at_once=5)
    codes = Counter(code for code, _ in told.values())
    assert codes == {Code.NONE: 20_000 - (CHUNK - 10), Code.NO_ANSWER: CHUNK - 10}


def test_a_connection_without_answers_is_in_doubt_when_the_patience_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "silent", True)
    monkeypatch.setattr(init_producer_ids, "CALM", 0.05)
    told = run(monkeypatch, {1: 2 * SHARE}, patience=0.05)
    codes = Counter(code for code, _ in told.values())
    assert codes == {Code.NO_ANSWER: 2 * CHUNK, Code.NOT_SENT: 2 * (SHARE - CHUNK)}


def test_what_no_connection_took_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, {0: 2_000, 1: 1_000}, *[1] * LANES)
    codes = Counter((id.partition("-")[0], code) for id, (code, _) in told.items())
    assert codes[("0", Code.NOT_SENT)] == 2_000
    assert codes[("1", Code.NO_ANSWER)] == 1_000 / SHARE * CHUNK
    assert codes[("1", Code.NOT_SENT)] == 1_000 - 1_000 / SHARE * CHUNK


def test_what_the_listener_raises_ends_it_and_closes_every_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(monkeypatch, {})

    def hear(id: str, code: Code, answer: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        init_many(WIRE, 5, [(1, ["a"])], {"a": 1}, hear, patience=60.0)
    until(lambda: all(connection.closed for connection in Connection.made))
    assert Connection.made


def test_no_ids_are_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, {}) == {}
    assert Connection.made == []
