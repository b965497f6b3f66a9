"""A network that holds requests back and loses answers: a proxy before a broker, which can tell
requests apart.

A request that is held is delivered later even if the client has hung up meanwhile: what a slow path
through a network does, and what no client can see.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 0, 24, 25, 26, 28


@dataclass
class Fault:
    """Hold the next request of the kind ``api`` until ``release`` is called. ``caught`` and
    ``delivered`` tell of it.

    ``lost``: deliver it instead, and cut the connection when the broker answers. ``skip`` so many
    of the kind are spared, and None stands for any kind.
    """

    api: int | None
    lost: bool = False
    skip: int = 0
    caught: threading.Event = field(default_factory=threading.Event)
    delivered: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Deliver it, and wait until that is done."""
        self.go.set()
        assert self.delivered.wait(300)
        time.sleep(0.3)  # the broker answers into the void; there is nothing to wait for


class FaultProxy:
    """Listens on a port of its own before ``bootstrap`` (one broker), and rewrites that port in
    what the broker tells.

    ``rewritten`` is shared by the proxies before the brokers of one cluster, of which each tells of
    all.
    """

    def __init__(self, bootstrap: str, rewritten: list[tuple[bytes, bytes]] | None = None):
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        self._upstream = (host, int(port))
        self._server = socket.create_server((host, 0))
        told = host.encode() + struct.pack(">i", int(port))
        self._rewritten = [] if rewritten is None else rewritten
        self._rewritten.append(
            (told, host.encode() + struct.pack(">i", self._server.getsockname()[1]))
        )
        self._slow_until = 0.0
        self._faults: list[Fault] = []
        self._open: list[socket.socket] = []
        self.seen: list[int] = []
        """The kinds of all requests so far."""
        self.rate: float | None = None
        """Bytes of records that a connection lets through in a second; None for as many as come."""
        self.bootstrap = f"{host}:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, api: int) -> Fault:
        """Hold the next request of this kind."""
        fault = Fault(api)
        self._faults.append(fault)
        return fault

    def lose(self, api: int | None, skip: int = 0) -> Fault:
        """Deliver the next request of this kind, and cut its connection in place of an answer."""
        fault = Fault(api, lost=True, skip=skip)
        self._faults.append(fault)
        return fault

    def withdraw(self, fault: Fault) -> bool:
        """Hold nothing for it any more; False where it was caught meanwhile."""
        self._faults.remove(fault)
        fault.go.set()
        return not fault.caught.is_set()

    def cut(self) -> int:
        """End all connections, whatever is under way on them; how many there were."""
        ends = list(self._open)
        for each in ends:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(ends) // 2

    def delay(self, seconds: float) -> None:
        """Let nothing through for so long, in either direction; then all of it."""
        self._slow_until = time.monotonic() + seconds

    def _delayed(self) -> None:
        while (left := self._slow_until - time.monotonic()) > 0:
            time.sleep(left)

    def close(self) -> None:
        self._server.close()
        self.cut()
        for each in list(self._open):
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                try:
                    broker = socket.create_connection(self._upstream)
                except OSError:
                    client.close()
                    continue
                self._start(lambda c=client, b=broker: self._serve(c, b))  # type: ignore[misc]

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def _serve(self, client: socket.socket, broker: socket.socket) -> None:
        """One connection, to its end on both sides; there are thousands of them in a long
        campaign.
        """
        self._open += [client, broker]
        cut = threading.Event()
        answers = self._start(lambda: self._answers(broker, client, cut))
        self._requests(client, broker, cut)
        answers.join()
        for each in (client, broker):
            each.close()
            with suppress(ValueError):
                self._open.remove(each)

    def _fault(self, api: int | None) -> Fault | None:
        """The fault that this request is for."""
        if api is None:
            return None
        self.seen.append(api)
        for fault in self._faults:
            if fault.api in (api, None) and not fault.caught.is_set():
                if not fault.skip:
                    return fault
                fault.skip -= 1
        return None

    def _requests(self, client: socket.socket, broker: socket.socket, cut: threading.Event) -> None:
        held: list[threading.Thread] = []
        with suppress(OSError):
            while frame := _frame(client):
                # An empty frame is no request: somebody looks whether this port speaks TLS.
                api = struct.unpack_from(">h", frame, 4)[0] if len(frame) > 4 else None
                fault = self._fault(api)
                self._delayed()
                if self.rate is not None and api == PRODUCE:
                    time.sleep(len(frame) / self.rate)
                held = [thread for thread in held if thread.is_alive()]
                if fault is None and not held:
                    broker.sendall(frame)
                    continue
                if fault is not None and fault.lost:
                    fault.caught.set()
                    cut.set()
                    broker.sendall(frame)
                    continue
                # What comes behind it on this connection stays behind it.
                if fault is not None:
                    fault.caught.set()
                held.append(self._later(broker, frame, fault, held[-1] if held else None))
        for thread in held:
            thread.join()
        with suppress(OSError):
            broker.shutdown(socket.SHUT_WR)

    def _later(
        self,
        broker: socket.socket,
        frame: bytes,
        fault: Fault | None,
        after: threading.Thread | None,
    ) -> threading.Thread:
        def deliver() -> None:
            if after is not None:
                after.join()
            if fault is not None:
                fault.go.wait(60)
            with suppress(OSError):
                broker.sendall(frame)
            if fault is not None:
                fault.delivered.set()

        thread = threading.Thread(target=deliver, daemon=True)
        thread.start()
        return thread

    def _answers(self, broker: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        gone = False
        with suppress(OSError):
            while (frame := _frame(broker)) and not cut.is_set():
                self._delayed()
                for told, ours in self._rewritten:
                    frame = frame.replace(told, ours)
                try:
                    if not gone:
                        client.sendall(frame)
                except OSError:
                    gone = True
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


class Network:
    """A proxy before each broker of ``bootstrap``: who comes by ``bootstrap`` of this stays on
    it.
    """

    def __init__(self, bootstrap: str):
        rewritten: list[tuple[bytes, bytes]] = []
        self.proxies = [FaultProxy(one, rewritten) for one in bootstrap.split(",")]
        self.bootstrap = ",".join(proxy.bootstrap for proxy in self.proxies)

    def close(self) -> None:
        for proxy in self.proxies:
            proxy.close()


def _frame(source: socket.socket) -> bytes:
    """The next whole frame with its length in front; empty at the end."""
    head = _exactly(source, 4)
    return head and head + _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            return b""
        data += more
    return bytes(data)
