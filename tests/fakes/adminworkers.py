"""Workers in memory that tell of their plugins, their loggers and their connectors' active
topics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from connectctl.cli.main import app
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

ONE, TWO = "http://one:8083", "http://two:8083"
SOURCE = {"class": "x.y.Source", "type": "source", "version": "1"}
DEFINITIONS = [
    {
        "name": "file",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
    },
    {
        "name": "pin",
        "type": "PASSWORD",
        "required": False,
        "default_value": "[hidden]",
        "importance": "LOW",
    },
]


@dataclass
class AdminWorkers(FakeWorkers):
    """``plugins`` and ``versions`` are by URL."""

    urls: tuple[str, ...] = (ONE, TWO)
    connectors: dict[str, FakeConnector] = field(
        default_factory=lambda: {"orders": FakeConnector()}
    )
    plugins: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {ONE: [SOURCE], TWO: [SOURCE]}
    )
    versions: dict[str, str] = field(default_factory=dict)
    levels: dict[str, dict[str, str]] = field(
        default_factory=lambda: {
            url: {"root": "INFO", "a.b": "INFO", "a.b.c": "WARN"} for url in (ONE, TWO)
        }
    )
    active: dict[str, list[str]] | None = field(default_factory=lambda: {"orders": ["t", "u"]})

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        url = url or self.urls[0]
        self._maybe_fail(path, url)
        if path == "/" and url in self.versions:
            return {"version": self.versions[url], "kafka_cluster_id": "fake-cluster"}
        if path.startswith("/connector-plugins?"):
            return self.plugins[url]
        if path.startswith("/connector-plugins/"):
            return [each | {"documentation": f"asked {url}{path}"} for each in DEFINITIONS]
        return super().get(path, url=url, timeout=timeout)


def run(workers: AdminWorkers, *args: str) -> Result:
    """A command on these workers, and no brokers."""
    session = FakeSession(calls=workers, told={"rest": list(workers.urls), "bootstrap_servers": ""})
    return CliRunner().invoke(app, list(args), obj=session)
