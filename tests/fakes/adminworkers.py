"""Workers in memory that tell of their plugins, their loggers and their connectors' active topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from connectctl.cli.main import app
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

ONE, TWO = "http://one:8083", "http://two:8083"
SOURCE = {"class": "x.y.Source", "type": "source", "version": "1"}
DEFINITIONS = [
    {"name": "file", "type": "STRING", "required": True, "default_value": None, "importance": "HIGH"},
    {"name": "pin", "type": "PASSWORD", "required": False, "default_value": "[hidden]", "importance": "LOW"},
]


@dataclass
class AdminWorkers(FakeWorkers):
    """``plugins``, ``versions`` and ``levels`` (by logger) are by URL; ``tracking`` as ``topic.tracking.enable``."""

    urls: tuple[str, ...] = (ONE, TWO)
    connectors: dict[str, FakeConnector] = field(default_factory=lambda: {"orders": FakeConnector()})
    plugins: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {ONE: [SOURCE], TWO: [SOURCE]})
    versions: dict[str, str] = field(default_factory=dict)
    levels: dict[str, dict[str, str]] = field(
        default_factory=lambda: {url: {"root": "INFO", "a.b": "INFO", "a.b.c": "WARN"} for url in (ONE, TWO)}
    )
    active: dict[str, list[str]] = field(default_factory=lambda: {"orders": ["t", "u"]})
    tracking: bool = True

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        url = url or self.urls[0]
        self._maybe_fail(path, url)
        if path == "/" and url in self.versions:
            return {"version": self.versions[url], "kafka_cluster_id": "fake-cluster"}
        if path.startswith("/connector-plugins?"):
            return self.plugins[url]
        if path.startswith("/connector-plugins/"):
            return [each | {"documentation": f"asked {url}{path}"} for each in DEFINITIONS]
        if path == "/admin/loggers":
            return {name: {"level": level, "last_modified": None} for name, level in self.levels[url].items()}
        if path.startswith("/admin/loggers/"):
            return {"level": self._level(url, path.rpartition("/")[2])}
        if path.endswith("/topics"):
            return self._topics(path.split("/")[2])
        return super().get(path, url=url, timeout=timeout)

    def send(
        self, method: str, path: str, body: Any = None, *, url: str | None = None, timeout: float | None = None
    ) -> Any:
        name, _, query = path.rpartition("/")[2].partition("?")
        if path.startswith("/admin/loggers/"):
            self._maybe_fail(path, url)
            self.sent.append(f"{url or ''}{path} {body['level']}")
            for each in self.urls if query == "scope=cluster" else [url or self.urls[0]]:
                known = {name, *(logger for logger in self.levels[each] if logger.startswith(name))}
                self.levels[each] |= dict.fromkeys(known, body["level"])
            return None
        if path.endswith("/topics/reset"):
            self.sent.append(path)
            self._topics("orders")
            self.active[path.split("/")[2]] = []
            return None
        return super().send(method, path, body, url=url, timeout=timeout)

    def _level(self, url: str, name: str) -> str:
        """The logger's own level, or what it has from the nearest one above it."""
        near = [each for each in self.levels[url] if name == each or name.startswith(f"{each}.")]
        if not near:
            raise ConnectctlError("The worker answers 404", why=f"Logger {name} not found.", code="not-found")
        return self.levels[url][max(near, key=len)]

    def _topics(self, name: str) -> Any:
        if not self.tracking:
            raise NotAuthorized("The worker does not allow it", why="Topic tracking is disabled.")
        return {name: {"topics": self.active.get(name, [])}}


def run(workers: AdminWorkers, *args: str) -> Result:
    """A command on these workers, and no brokers."""
    session = FakeSession(calls=workers, told={"rest": list(workers.urls), "bootstrap_servers": ""})
    return CliRunner().invoke(app, list(args), obj=session)
