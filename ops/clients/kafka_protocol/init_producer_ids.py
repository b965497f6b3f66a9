"""InitProducerId for tens of thousands of ids: on many connections to each coordinator, encoded by
hand.

A broker takes the next request of a connection when the one before is answered, and InitProducerId
is answered when the in-sync replicas have it: on one connection a coordinator with followers does a
few hundred a second. With many connections a follower fetches the records of many ids at once,
which also spares the brokers most of the work. And kafka-python, with its futures and timers, takes
longer over a request than a broker does.
"""

from __future__ import annotations

import selectors
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import NamedTuple

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient, OnAnswer
from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.varints import unsigned_varint

MANY = 1_000
"""From so many ids of a coordinator on; fewer are not worth the connections."""
LANES = 64
"""Connections to one coordinator, at most: docs/scale.md."""
SHARE = 100
"""Ids for which a connection is worth opening."""
CHUNK = 25
"""Requests that are sent together on a connection; the next ones when half of them are answered."""
IN_FLIGHT = LANES * (CHUNK + CHUNK // 2)
"""Requests to one coordinator that wait for their answers, at most."""
OLDEST, NEWEST = 3, 5
"""The versions with a producer id in the request; version 6 is KIP-939's."""
_API = 22
_REST = struct.Struct(">iqhB")
_ANSWER = struct.Struct(">Bihqh")
_ROOM = 16 * 1024
"""Bytes for the answers on a connection, of 26 each."""
_LOOK = 0.01
"""Seconds between looks for connections that were opened meanwhile."""
CALM = 1.0
"""Seconds between looks for connections on which nothing comes any more."""


class Init(NamedTuple):
    error_code: int
    producer_id: int
    producer_epoch: int


def body_of(id: str, timeout_ms: int) -> bytes:
    """The request for one id, without its header: its current producer is fenced."""
    raw = id.encode()
    return unsigned_varint(len(raw) + 1) + raw + _REST.pack(timeout_ms, -1, -1, 0)


def init_many(
    wire: KafkaProtocolClient, version: int, parts: Sequence[tuple[int, Sequence[str]]], timeouts: Mapping[str, int],
    on_answer: OnAnswer, *,
    patience: float,
) -> None:  # fmt: skip
    """Ask each broker for its ids; ``on_answer(id, code, answer)`` is called for each, in the
    caller's thread.

    The code is ``NONE`` with an answer, else ``NO_ANSWER`` for what was sent and ``NOT_SENT`` for
    what was not. ``patience`` in seconds bounds the opening of a connection, and the wait for the
    next answer on it.
    """
    brokers = [_Broker(wire, broker, version, ids, timeouts, patience) for broker, ids in parts]
    with selectors.DefaultSelector() as ready:
        lanes: set[_Lane] = set()
        try:
            for each in brokers:
                threading.Thread(target=each.open_all, name="connectctl-init", daemon=True).start()
            _converse(brokers, lanes, ready, on_answer, patience)
        finally:
            for each in brokers:
                each.end()
            for lane in lanes:
                lane.close()
    for each in brokers:
        for id in each.next_ids:
            on_answer(id, Code.NOT_SENT, None)


def _converse(
    brokers: Sequence[_Broker],
    lanes: set[_Lane],
    ready: selectors.BaseSelector,
    on_answer: OnAnswer,
    patience: float,
) -> None:
    """Ask on every connection until nothing is left, or none is."""

    def drop(lane: _Lane) -> None:
        ready.unregister(lane.connection)
        lanes.discard(lane)
        lane.close()

    def receive(lane: _Lane) -> None:
        if not lane.receive(on_answer):
            drop(lane)

    calm = time.monotonic() + CALM
    while (opening := any(each.may_open for each in brokers)) or lanes:
        for lane in [lane for each in brokers for lane in each.opened()]:
            lanes.add(lane)
            ready.register(lane.connection, selectors.EVENT_READ, lane)
            receive(lane)
        for key, _ in ready.select(_LOOK if opening else CALM):
            receive(key.data)
        if (now := time.monotonic()) >= calm:
            calm = now + CALM
            for lane in [lane for lane in lanes if now - lane.received_at > patience]:
                lane.abandon(on_answer)
                drop(lane)


class _Lane:
    """A connection to a coordinator, with the ids whose requests have no answer yet."""

    def __init__(self, broker: _Broker, connection: RawConnection) -> None:
        self.connection = connection
        self.received_at = time.monotonic()
        self._broker = broker
        self._waiting: deque[str] = deque()

    def receive(self, on_answer: OnAnswer) -> bool:
        """Pass on the received answers, and send more requests. Return whether more answers are
        expected on the connection.
        """
        try:
            if self._waiting:
                self.received_at = time.monotonic()
                for _, _, error, producer, epoch in self.connection.arrived(_ANSWER):
                    on_answer(self._waiting.popleft(), Code.NONE, Init(error, producer, epoch))
            self._ask()
        except OSError:
            self.abandon(on_answer)
            return False
        return bool(self._waiting)

    def abandon(self, on_answer: OnAnswer) -> None:
        """Report the ids without an answer as ``NO_ANSWER``."""
        for id in self._waiting:
            on_answer(id, Code.NO_ANSWER, None)

    def _ask(self) -> None:
        if len(self._waiting) > CHUNK // 2 or (self._waiting and self.connection.wants_quiet):
            return
        if subset := self._broker.take():
            self._waiting += subset
            self._broker.ask(self.connection, subset)

    def close(self) -> None:
        self.connection.close()


class _Broker:
    """The ids of one coordinator, of which its connections take the next ones until none is
    left.
    """

    def __init__(
        self,
        wire: KafkaProtocolClient,
        broker: int,
        version: int,
        ids: Sequence[str],
        timeouts: Mapping[str, int],
        patience: float,
    ) -> None:
        self._wire, self._broker, self._version, self._patience = wire, broker, version, patience
        self._timeouts = timeouts
        self.next_ids = iter(ids)
        self._lanes = min(LANES, -(-len(ids) // SHARE))
        self._count, self._taken = len(ids), 0
        self._opened: SimpleQueue[_Lane] = SimpleQueue()
        self._all_open, self._ended = threading.Event(), threading.Event()

    @property
    def may_open(self) -> bool:
        """Return whether another connection may open for the remaining ids."""
        return self._taken < self._count and not (self._all_open.is_set() and self._opened.empty())

    def open_all(self) -> None:
        """Open the connections one after the other: kafka-python has one to a broker, until it is
        taken over.
        """
        try:
            for _ in range(self._lanes):
                if self._ended.is_set() or self._taken >= self._count:
                    return
                self._opened.put(
                    _Lane(self, RawConnection(self._wire, self._broker, self._patience, room=_ROOM))
                )
                if self._ended.is_set():
                    self.end()
        except Exception:  # noqa: BLE001  # whatever it is, nothing was sent on it
            return
        finally:
            self._all_open.set()

    def opened(self) -> Iterator[_Lane]:
        """Yield the connections that were opened since the last call."""
        with suppress(Empty):
            while True:
                yield self._opened.get_nowait()

    def end(self) -> None:
        """Open no more connections, and close the unused ones."""
        self._ended.set()
        for lane in self.opened():
            lane.close()

    def take(self) -> list[str]:
        subset = list(islice(self.next_ids, CHUNK))
        self._taken += len(subset)
        return subset

    def ask(self, connection: RawConnection, some: Sequence[str]) -> None:
        connection.send_many(_API, self._version, [body_of(id, self._timeouts[id]) for id in some])
