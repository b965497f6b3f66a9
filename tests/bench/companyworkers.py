"""Workers that nobody runs: their REST servers, all in one process, and their membership in the
group.

    python tests/bench/companyworkers.py BOOTSTRAP CONNECTORS TASKS WORKERS < a real worker's answers

Prints the addresses as JSON once the topics are written and the group is stable, and serves until
its input ends. The answers to ``/``, ``/connector-plugins`` and validations are a real worker's,
given as JSON; the others are made of the same company as the topics. ``GET /-/counts`` tells how
many requests each address has got, by what was asked, and then forgets them.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from company import GROUP, Company  # type: ignore[import-not-found]  # beside this file

_SESSION_MS = 1_800_000
"""What brokers allow at most: these members send no heartbeats."""
_REBALANCING = 27


class Servers:
    """Many workers' REST servers. ``recorded`` are a real worker's answers by path;
    ``/validate/CLASS`` among them.
    """

    def __init__(self, company: Company, recorded: dict[str, Any], delay: float) -> None:
        self._company, self._delay = company, delay
        self._said = {path: json.dumps(answer).encode() for path, answer in recorded.items()}
        self.counts: dict[str, Counter[str]] = {}

    def made(self) -> None:
        """Make what is told of connectors; the addresses are known by now."""
        expanded = self._company.expanded()
        self._said["/connectors"] = json.dumps(list(expanded)).encode()
        self._said["/connectors?expand=status&expand=info"] = json.dumps(expanded).encode()

    async def serve(self, count: int) -> list[str]:
        """Listen on ``count`` free ports; gives the addresses."""
        for _ in range(count):
            server = await asyncio.start_server(self._talk, "127.0.0.1", 0, limit=1 << 20)
            port = server.sockets[0].getsockname()[1]
            self.counts[f"127.0.0.1:{port}"] = Counter()
        return list(self.counts)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, _, rest = head.partition(b"\r\n")
                method, path, _ = first.decode().split(" ")
                fields = dict(
                    line.split(b": ", 1) for line in rest.lower().split(b"\r\n") if b": " in line
                )
                await reader.readexactly(int(fields.get(b"content-length", 0)))
                status, body = await self._answer(f"127.0.0.1:{port}", method, path)
                writer.write(
                    b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    % (status, len(body))
                )
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, address: str, method: str, path: str) -> tuple[int, bytes]:
        if path == "/-/counts":
            told = json.dumps(self.counts).encode()
            for counter in self.counts.values():
                counter.clear()
            return 200, told
        parts = path.strip("/").split("/")
        kind = f"{method} /{parts[0]}" + (f"/…/{parts[-1]}" if len(parts) > 1 else "")
        self.counts[address][kind] += 1
        if path.endswith("/config/validate"):
            await asyncio.sleep(self._delay)
            return 200, self._said[f"/validate/{parts[1]}"]
        if path in self._said:
            return 200, self._said[path]
        if len(parts) == 3 and parts[2] == "topics":
            number = parts[1].rpartition("-")[2]
            return 200, json.dumps({parts[1]: {"topics": [f"orders-{number}"]}}).encode()
        return 404, b'{"error_code":404,"message":"HTTP 404 Not Found"}'


def text(value: str) -> bytes:
    """A string as Kafka's protocol has it."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def block(value: bytes) -> bytes:
    """Bytes as Kafka's protocol has them."""
    return struct.pack(">i", len(value)) + value


def assignment(parts: dict[str, list[int]], leader: str, url: str, offset: int) -> bytes:
    """An assignment of version 2 (``IncrementalCooperativeConnectProtocol``): nothing revoked, no
    delay.
    """
    given = b"".join(
        text(name) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks)
        for name, tasks in parts.items()
    )
    head = struct.pack(">hh", 2, 0) + text(leader) + text(url) + struct.pack(">q", offset)
    return head + struct.pack(">i", len(parts)) + given + struct.pack(">ii", 0, 0)


class Member:
    """One membership in the group: a connection of its own, because a broker answers one request
    after the other.
    """

    def __init__(self, coordinator: tuple[str, int], address: str, offset: int) -> None:
        self._socket = socket.create_connection(coordinator)
        self._client, self._url, self._offset = f"connect-{address}", f"http://{address}/", offset
        self.id, self.generation, self.leader = "", -1, ""

    def join(self) -> int:
        """Join, and wait until the others have; gives the generation."""
        metadata = (
            struct.pack(">h", 2) + text(self._url) + struct.pack(">q", self._offset) + block(b"")
        )
        protocols = struct.pack(">i", 1) + text("sessioned") + block(metadata)
        times = struct.pack(">ii", _SESSION_MS, 60_000)
        answer = _Answer(
            self._ask(11, 2, text(GROUP) + times + text(self.id) + text("connect") + protocols)
        )
        answer.check()
        (self.generation,) = answer.take("i")
        answer.text()
        self.leader, self.id = answer.text(), answer.text()
        return self.generation

    def sync(self, assignments: dict[str, bytes]) -> bool:
        """Take the assignment; the leader gives those of all. False where the group rebalances
        again.
        """
        given = b"".join(text(member) + block(data) for member, data in assignments.items())
        body = text(GROUP) + struct.pack(">i", self.generation) + text(self.id)
        answer = _Answer(self._ask(14, 2, body + struct.pack(">i", len(assignments)) + given))
        return answer.check() != _REBALANCING

    def _ask(self, key: int, version: int, body: bytes) -> bytes:
        request = struct.pack(">hhi", key, version, 1) + text(self._client) + body
        self._socket.sendall(block(request))
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)[4:]

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            got = self._socket.recv(size - len(data))
            assert got, "the broker closed the connection"
            data += got
        return data


class _Answer:
    """An answer, read from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return found

    def check(self) -> int:
        """The throttle time and the error, which there must be none of but a rebalance."""
        error = int(self.take("ih")[1])
        assert error in (0, _REBALANCING), f"the coordinator answers {error}"
        return error

    def text(self) -> str:
        (size,) = self.take("h")
        return self._bytes(size).decode()

    def block(self) -> bytes:
        (size,) = self.take("i")
        return self._bytes(size)

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + max(size, 0)]
        self._at += max(size, 0)
        return found


def join(coordinator: tuple[str, int], company: Company, offset: int) -> list[Member]:
    """A stable group of all workers, each with its connectors and tasks; the connections are to be
    kept.
    """
    members = [Member(coordinator, address, offset) for address in company.addresses]
    parts = company.assigned()
    with ThreadPoolExecutor(len(members)) as pool:
        while True:
            if len(set(pool.map(Member.join, members))) == 1:
                leader = next(member for member in members if member.id == member.leader)
                url = f"http://{company.addresses[members.index(leader)]}/"
                given = {
                    m.id: assignment(parts[n], leader.id, url, offset)
                    for n, m in enumerate(members)
                }
                if all(
                    pool.map(Member.sync, members, [given if m is leader else {} for m in members])
                ):
                    return members


async def main() -> None:
    """Write, join, serve."""
    bootstrap, connectors, tasks, workers, delay = sys.argv[1:6]
    recorded = json.loads(sys.stdin.readline())
    company = Company(int(connectors), int(tasks), failed=3)
    servers = Servers(company, recorded, float(delay))
    company.addresses = await servers.serve(int(workers))
    servers.made()
    offset = company.write(bootstrap)
    host, port = bootstrap.split(",")[0].split(":")
    kept = await asyncio.to_thread(join, (host, int(port)), company, offset)
    print(json.dumps([f"http://{address}" for address in company.addresses]), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    del kept


if __name__ == "__main__":
    asyncio.run(main())
