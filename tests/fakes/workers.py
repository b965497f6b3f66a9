"""The workers of a Connect cluster, in memory: connectors with states, and the requests that change
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized

TRACE = (
    "java.lang.RuntimeException: wrapped\n\tat X\nCaused by: java.io.IOException: disk "
    "full\n\tat Y\n"
)


@dataclass
class FakeConnector:
    """A connector's states. ``running`` are the tasks that the leader knows of, where those are not
    the ones with a status.

    ``next`` are states that a change leads through, one per look, before the last one stays.
    """

    own: str = "RUNNING"
    tasks: list[str] = field(default_factory=lambda: ["RUNNING"])
    config: dict[str, str] = field(default_factory=lambda: {"connector.class": "x.y.Source"})
    worker: str = "one:8083"
    fails_again: bool = False
    fails_once: bool = False
    trace: str = TRACE
    running: list[int] | None = None
    next: list[tuple[str, list[str]]] = field(default_factory=list)

    def advance(self) -> None:
        """Come to the next state."""
        if self.next:
            self.own, self.tasks = self.next.pop(0)

    def change(self, verb: str, count: int) -> None:
        """Begin to become what ``verb`` asks for."""
        broken = ["FAILED" if self.fails_again or self.fails_once else "RUNNING"] * count
        self.fails_once = False
        self.next = {
            "stop": [("STOPPED", ["RUNNING"] * count), ("STOPPED", [])],
            "pause": [("PAUSED", ["RUNNING"] * count), ("PAUSED", ["PAUSED"] * count)],
            "resume": [("RUNNING", []), ("RUNNING", broken)],
            "restart": [
                (self.own, list(self.tasks)),
                ("RESTARTING", ["RESTARTING"] * count),
                ("RUNNING", broken),
            ],
        }[verb]


@dataclass
class FakeWorkers:
    """Keeps ``ConnectCalls``. ``sent`` are the changes; ``errors`` are raised by requests whose
    path begins so.

    ``configured`` hears of new configurations, ``altered`` of requests to change the offsets of a
    stopped connector, ``commanded`` of stop, pause and resume.
    """

    connectors: dict[str, FakeConnector] = field(default_factory=dict)
    urls: tuple[str, ...] = ("http://one:8083",)
    sent: list[str] = field(default_factory=list)
    errors: dict[str, ConnectctlError] = field(default_factory=dict)
    version: str = "4.3.1"
    configured: Callable[[str, dict[str, str]], None] = lambda name, config: None
    altered: Callable[[str, str, Any], None] = lambda name, method, body: None
    commanded: Callable[[str, str], None] = lambda name, verb: None
    offsets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Source offsets by connector and source partition as JSON text: they outlive the connector."""
    levels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Levels of loggers by URL; workers that have none serve no loggers."""
    active: dict[str, list[str]] | None = None
    """Active topics by connector; None where workers do not tell of them."""
    tracking: bool = True
    """As ``topic.tracking.enable``."""
    without_status: frozenset[str] = frozenset()
    """Connectors that no worker has reported on yet, such as one that hangs in its first start."""

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        self._maybe_fail(path, url)
        if path.startswith("/admin/loggers") and self.levels:
            return self._loggers(
                url or self.urls[0], path.removeprefix("/admin/loggers").removeprefix("/")
            )
        if path.endswith("/topics") and self.active is not None:
            return self._topics(path.split("/")[2])
        if path == "/":
            return {"version": self.version, "commit": "x", "kafka_cluster_id": "fake-cluster"}
        if path == "/connector-plugins":
            return [{"class": "x.y.Source", "type": "source", "version": "1"}]
        if path == "/connectors":
            return list(self.connectors)
        if path.startswith("/connectors?"):
            return {
                name: {"status": self._status(name), "info": self._info(name)}
                for name in self.connectors
                if name not in self.without_status
            }
        name, _, what = path.removeprefix("/connectors/").partition("/")
        name = unquote(name)
        if name not in self.connectors:
            raise ConnectctlError("not there", why=f"Connector {name} not found", code="not-found")
        if what == "offsets":
            known = self.offsets.get(name, {}).items()
            return {
                "offsets": [
                    {"partition": json.loads(key), "offset": offset} for key, offset in known
                ]
            }
        if what == "status":
            if name in self.without_status:
                why = f"No status found for connector {name}"
                raise ConnectctlError("not there", why=why, code="not-found")
            self.connectors[name].advance()
            return self._status(name)
        return self._info(name)["config"] if what == "config" else self._info(name)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        self._maybe_fail(path, url)
        if path.endswith("/config/validate"):
            return {"configs": [{"value": {"name": "exactly.once.support", "errors": []}}]}
        if path.startswith("/admin/loggers/"):
            return self._set_level(path.rpartition("/")[2], path, body["level"], url)
        if path.endswith("/topics/reset"):
            self.sent.append(path)
            self._topics(path.split("/")[2])
            self.active = (self.active or {}) | {path.split("/")[2]: []}
            return None
        self.sent.append(f"{method} {path}")
        if (method, path) == ("POST", "/connectors"):
            return self._create(body)
        name, _, verb = path.removeprefix("/connectors/").partition("/")
        connector = self.connectors[unquote(name)]
        if method == "DELETE" and not verb:
            del self.connectors[unquote(name)]
            self.commanded(unquote(name), "delete")
            return None
        if verb == "config":
            config = connector.config | body if method == "PATCH" else body
            connector.config = {name: value for name, value in config.items() if value is not None}
            self.configured(unquote(name), connector.config)
            return None
        if verb == "offsets":
            if connector.own != "STOPPED":
                raise ConnectctlError(
                    "The worker answers 400", why="Connectors must be in the STOPPED state"
                )
            self.altered(unquote(name), method, body)
            kept = self.offsets.setdefault(unquote(name), {})
            for each in (
                body["offsets"] if body else [{"partition": json.loads(key)} for key in kept]
            ):
                kept[json.dumps(each["partition"])] = each.get("offset")
            self.offsets[unquote(name)] = {
                key: offset for key, offset in kept.items() if offset is not None
            }
            return {"message": "The offsets for this connector have been altered successfully"}
        self.commanded(unquote(name), verb)
        verb = verb.rpartition("/")[2]  # of a task
        connector.change(verb.partition("?")[0], max(len(connector.tasks), 1))
        return self._status(unquote(name)) if verb.startswith("restart") else None

    def _set_level(self, logger: str, path: str, level: str, url: str | None) -> None:
        self.sent.append(f"{url or ''}{path} {level}")
        name, _, query = logger.partition("?")
        for each in self.urls if query == "scope=cluster" else [url or self.urls[0]]:
            known = {name, *(other for other in self.levels[each] if other.startswith(name))}
            self.levels[each] |= dict.fromkeys(known, level)

    def _loggers(self, url: str, name: str) -> dict[str, Any]:
        """All levels; of one logger its own, or what it has from the nearest one above it."""
        if not name:
            return {
                each: {"level": level, "last_modified": None}
                for each, level in self.levels[url].items()
            }
        near = [each for each in self.levels[url] if name == each or name.startswith(f"{each}.")]
        if not near:
            raise ConnectctlError(
                "The worker answers 404", why=f"Logger {name} not found.", code="not-found"
            )
        return {"level": self.levels[url][max(near, key=len)]}

    def _topics(self, name: str) -> Any:
        if not self.tracking:
            raise NotAuthorized("The worker does not allow it", why="Topic tracking is disabled.")
        return {name: {"topics": (self.active or {}).get(name, [])}}

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        name, state = body["name"], body.get("initial_state", "RUNNING")
        if name in self.connectors:
            raise ConnectctlError(
                "The worker answers 409", why=f"Connector {name} already exists", code="rebalancing"
            )
        tasks = ["RUNNING"] if state == "RUNNING" else []
        self.connectors[name] = FakeConnector(state, tasks, dict(body["config"]))
        self.configured(name, body["config"])
        self.commanded(name, {"RUNNING": "resume", "STOPPED": "stop", "PAUSED": "pause"}[state])
        return self._info(name)

    def _maybe_fail(self, path: str, url: str | None) -> None:
        for begin, error in self.errors.items():
            if f"{url or ''}{path}".startswith(begin):
                raise error

    def _status(self, name: str) -> dict[str, Any]:
        fake = self.connectors[name]
        trace = {"trace": fake.trace}
        tasks = [
            {"id": n, "state": state, "worker_id": fake.worker}
            | (trace if state == "FAILED" else {})
            for n, state in enumerate(fake.tasks)
        ]
        own = {"state": fake.own, "worker_id": fake.worker} | (
            trace if fake.own == "FAILED" else {}
        )
        return {"name": name, "connector": own, "tasks": tasks, "type": "source"}

    def _info(self, name: str) -> dict[str, Any]:
        fake = self.connectors[name]
        expected = (
            []
            if fake.own == "STOPPED"
            else range(len(fake.tasks))
            if fake.running is None
            else fake.running
        )
        tasks = [{"connector": name, "task": n} for n in expected]
        return {
            "name": name,
            "config": fake.config | {"name": name},
            "tasks": tasks,
            "type": "source",
        }
