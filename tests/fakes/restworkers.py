"""Workers in memory behind a REST server. After a change that moves connectors or tasks they expect
a rebalance, and refuse with 409 what needs the group, as Connect's workers may: those of 4.3.1 hold
most of such requests until the rebalance is over.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from connectctl.ops.core.errors import ConnectctlError
from fakes.restserver import Answer, Asked, RestServer, conflict
from fakes.workers import FakeWorkers

_CONNECTOR = r"/connectors/[^/?]+"
_BY_THE_GROUP = (
    r"POST /connectors",
    rf"(GET|DELETE) {_CONNECTOR}",
    rf"(GET|PUT|PATCH) {_CONNECTOR}/config",
    rf"GET {_CONNECTOR}/tasks",
    rf"PUT {_CONNECTOR}/stop",
    rf"POST {_CONNECTOR}/(tasks/\d+/)?restart(\?.*)?",
    rf"(PATCH|DELETE) {_CONNECTOR}/offsets",
)
"""Requests that a worker does not answer while it expects a rebalance. It answers lists, statuses,
PUT …/pause and PUT …/resume from what it has read.
"""
_MOVES = (
    r"POST /connectors",
    rf"DELETE {_CONNECTOR}",
    rf"(PUT|PATCH) {_CONNECTOR}/config",
    rf"PUT {_CONNECTOR}/(stop|resume)",
)
_STATUSES = {"not-found": 404, "rebalancing": 409}


def _is(asked: Asked, patterns: tuple[str, ...]) -> bool:
    return any(re.fullmatch(each, f"{asked.method} {asked.path}") for each in patterns)


@dataclass
class RestWorkers(RestServer):
    """Answers as ``workers`` do. ``rebalance`` is the number of requests that are refused after
    each change; ``refused`` are those that were.
    """

    workers: FakeWorkers = field(default_factory=FakeWorkers)
    rebalance: int = 2
    refused: list[str] = field(default_factory=list)
    left: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        with self.lock:
            if self.left and _is(asked, _BY_THE_GROUP):
                self.left -= 1
                self.refused.append(f"{asked.method} {asked.path}")
                return conflict()
            answer = self._answer(asked)
            if answer[0] < 300 and _is(asked, _MOVES):
                self.left = self.rebalance
            return answer

    def _answer(self, asked: Asked) -> Answer:
        try:
            if asked.method == "GET":
                return 200, self.workers.get(asked.path)
            told = self.workers.send(asked.method, asked.path, asked.body)
        except (ConnectctlError, KeyError) as e:
            code = e.code if isinstance(e, ConnectctlError) else "not-found"
            status = _STATUSES.get(code, 400)
            return status, {"error_code": status, "message": getattr(e, "why", None) or str(e)}
        created = (asked.method, asked.path) == ("POST", "/connectors")
        return (204, None) if told is None else (201 if created else 200, told)
