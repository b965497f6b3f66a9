"""InitProducerId for many ids: the bytes are kafka-python's, and every id is told once, whatever breaks."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.edges import manyids
from connectctl.ops.edges.manyids import CHUNK, LANES, Init, body_of, init_many
from connectctl.ops.edges.rawconnection import Broken, RawConnection
from connectctl.ops.edges.transactions import init_request
from connectctl.ops.errors import Unreachable
from connectctl.ops.model.verdicts import Code

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
    """Answers with the number of the request as the producer id; breaks after ``breaks_at`` answers."""

    made: list[Connection]
    breaks: list[int]

    def __init__(self, wire: Any, broker: int, timeout: float) -> None:
        if broker == 0:
            raise Unreachable("nobody there")
        self.broker, self.asked, self.chunks = broker, 0, 0
        self.breaks_at = self.breaks.pop() if self.breaks else None
        self.left = 1
        self.closed = False
        self.made.append(self)

    def send_many(self, key: int, version: int, bodies: Sequence[bytes]) -> range:
        self.chunks += 1
        first, self.asked = self.asked + 1, self.asked + len(bodies)
        return range(first, self.asked + 1)

    def hear(self, number: int) -> None:
        if number == self.breaks_at:
            raise Broken("gone")
        self.number = number

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack(layout.pack(0, 0, 0, self.number, 3))

    def skip(self, count: int) -> None:
        assert count == 1

    def close(self) -> None:
        self.closed = True


def run(monkeypatch: pytest.MonkeyPatch, parts: dict[int, int], *breaks: int) -> dict[str, tuple[Code, Any]]:
    monkeypatch.setattr(Connection, "made", [], raising=False)
    monkeypatch.setattr(Connection, "breaks", list(breaks), raising=False)
    monkeypatch.setattr(manyids, "RawConnection", Connection)
    ids = [(broker, [f"{broker}-{n}" for n in range(count)]) for broker, count in parts.items()]
    told: dict[str, tuple[Code, Any]] = {}

    def hear(id: str, code: Code, answer: Any) -> None:
        assert id not in told
        told[id] = code, answer

    timeouts = {id: 60_000 for _, some in ids for id in some}
    init_many(WIRE, 5, ids, timeouts, hear, patience=1.0)
    assert told.keys() == timeouts.keys()
    assert all(connection.closed for connection in Connection.made)
    return told


def test_every_id_is_asked_for_once_on_a_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, {1: 5_000, 2: 3_050})
    assert Counter(connection.broker for connection in Connection.made) == {1: LANES, 2: LANES}
    assert sum(connection.chunks for connection in Connection.made) == 5_000 / CHUNK + 31
    assert {code for code, _ in told.values()} == {Code.NONE}
    assert all(answer == Init(0, answer.producer_id, 3) for _, answer in told.values())
    assert sum(connection.asked for connection in Connection.made) == 8_050


def test_a_connection_that_breaks_leaves_what_it_had_sent_in_doubt_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = run(monkeypatch, {1: 20_000}, 11)
    codes = Counter(code for code, _ in told.values())
    assert codes == {Code.NONE: 20_000 - (CHUNK - 10), Code.NO_ANSWER: CHUNK - 10}


def test_what_no_connection_took_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, {0: 2_000, 1: 1_000}, *[1] * LANES)
    codes = Counter((id.partition("-")[0], code) for id, (code, _) in told.items())
    assert codes[("0", Code.NOT_SENT)] == 2_000
    assert codes[("1", Code.NO_ANSWER)] == LANES * CHUNK
    assert codes[("1", Code.NOT_SENT)] == 1_000 - LANES * CHUNK


def test_no_ids_are_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, {}) == {}
    assert Connection.made == []
