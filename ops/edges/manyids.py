"""InitProducerId for tens of thousands of ids: on several connections to each coordinator, encoded by hand.

A broker takes the next request of a connection when the one before is answered, and InitProducerId is answered when the
in-sync replicas have it: on one connection a coordinator with followers does a few hundred a second. And kafka-python, with
its futures and timers, takes longer over a request than a broker does.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from connectctl.ops.edges.rawconnection import RawConnection
from connectctl.ops.model.verdicts import Code

if TYPE_CHECKING:
    from connectctl.ops.edges.wire import Told, Wire

MANY = 1_000
"""From so many ids of a coordinator on; fewer are not worth the connections."""
LANES = 8
"""Connections to one coordinator."""
CHUNK = 100
"""Requests that are sent at once on a connection, before their answers are read."""
OLDEST, NEWEST = 3, 5
"""The versions with a producer id in the request; version 6 is KIP-939's."""
_API = 22
_REST = struct.Struct(">iqhB")
_ANSWER = struct.Struct(">Bihqh")


class Init(NamedTuple):
    """An answer to InitProducerId."""

    error_code: int
    producer_id: int
    producer_epoch: int


def body_of(id: str, timeout_ms: int) -> bytes:
    """The request for one id, without its header: whoever holds it now is the one to be fenced."""
    raw = id.encode()
    return _length(len(raw) + 1) + raw + _REST.pack(timeout_ms, -1, -1, 0)


def _length(number: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def init_many(
    wire: Wire, version: int, parts: Sequence[tuple[int, Sequence[str]]], timeouts: Mapping[str, int], told: Told, *,
    patience: float,
) -> None:  # fmt: skip
    """Ask each broker for its ids; ``told(id, code, answer)`` hears of each, of one at a time.

    The code is ``NONE`` with an answer, else ``NO_ANSWER`` for what was sent and ``NOT_SENT`` for what was not.
    """
    lock, ended, done = threading.Lock(), threading.Event(), SimpleQueue[BaseException | None]()

    def tell(id: str, code: Code, answer: Init | None) -> None:
        with lock:
            told(id, code, answer)

    def lane(broker: _Broker) -> None:
        try:
            broker.run(tell, ended)
            done.put(None)
        except BaseException as e:  # noqa: BLE001  # raised again where it is waited for
            done.put(e)

    brokers = [_Broker(wire, broker, version, ids, timeouts, patience) for broker, ids in parts]
    lanes = [each for each in brokers for _ in range(min(LANES, -(-len(each.ids) // CHUNK)))]
    try:
        for each in lanes:
            threading.Thread(target=lane, args=(each,), name="connectctl-init", daemon=True).start()
        for _ in lanes:
            if (error := done.get()) is not None:
                raise error
    finally:
        ended.set()
    for each in brokers:
        for id in each.left():
            tell(id, Code.NOT_SENT, None)


class _Broker:
    """The ids of one coordinator, of which its lanes take the next ones until none is left."""

    _opening = threading.Lock()
    """kafka-python has one connection to a broker; each lane takes it over before the next one is made."""

    def __init__(
        self, wire: Wire, broker: int, version: int, ids: Sequence[str], timeouts: Mapping[str, int], patience: float
    ) -> None:
        self.ids = ids
        self._wire, self._broker, self._version, self._patience = wire, broker, version, patience
        self._timeouts = timeouts
        self._next = iter(ids)
        self._taking = threading.Lock()

    def left(self) -> Iterator[str]:
        """What nobody has taken."""
        return self._next

    def run(self, tell: Callable[[str, Code, Init | None], None], ended: threading.Event) -> None:
        """Ask for what is next until nothing is left, the connection breaks, or all is ``ended``."""
        try:
            with self._opening:
                connection = RawConnection(self._wire, self._broker, self._patience)
        except Exception:  # noqa: BLE001  # whatever it is, nothing was sent; the reason is in last_words
            return
        try:
            while not ended.is_set() and (some := self._take()):
                if not self._ask(connection, some, tell):
                    return
        finally:
            connection.close()

    def _take(self) -> list[str]:
        with self._taking:
            return list(islice(self._next, CHUNK))

    def _ask(self, connection: RawConnection, some: list[str], tell: Callable[[str, Code, Init | None], None]) -> bool:
        """Ask for some ids; whether the connection is good for more."""
        waiting = iter(some)
        try:
            numbers = connection.send_many(_API, self._version, [body_of(id, self._timeouts[id]) for id in some])
            for number in numbers:
                connection.hear(number)
                _, _, error, producer, epoch = connection.take(_ANSWER)
                connection.skip(connection.left)
                tell(next(waiting), Code.NONE, Init(error, producer, epoch))
        except OSError:
            for id in waiting:
                tell(id, Code.NO_ANSWER, None)
            return False
        return True
