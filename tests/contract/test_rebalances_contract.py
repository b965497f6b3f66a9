"""What workers answer while they expect a rebalance, be they real or made for tests: the same tests
on both.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.core.errors import ConnectctlError
from fakes.restserver import rest_server
from fakes.restworkers import RestWorkers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

PATIENCE = 300.0
CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


@dataclass(frozen=True)
class Stage:
    """The addresses of workers, and the configuration of a connector that they can run."""

    urls: tuple[str, ...]
    config: dict[str, str]

    @property
    def client(self) -> Connect:
        return Connect(self.urls, auth={}, tls={}, timeout=PATIENCE)

    def asked(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The answer of the first worker, asked once."""
        answer = httpx.request(method, self.urls[0] + path, json=body, timeout=PATIENCE)
        return answer.status_code, json.loads(answer.content) if answer.content else None


class RebalancesContract:
    """Connectors get names of their own, for the workers may be shared."""

    @pytest.fixture
    def names(self, stage: Stage) -> Iterator[list[str]]:
        names = [f"contract-{secrets.token_hex(4)}-{n}" for n in range(8)]
        yield names
        with suppress(ConnectctlError):
            for name in names:
                stage.client.send("DELETE", f"/connectors/{name}")

    def test_changes_at_once_are_made_or_refused_with_409_and_lists_and_statuses_are_answered(
        self, stage: Stage, names: list[str]
    ) -> None:
        def create(name: str) -> tuple[int, Any]:
            body = {"name": name, "config": stage.config, "initial_state": "STOPPED"}
            return stage.asked("POST", "/connectors", body)

        with ThreadPoolExecutor(len(names)) as pool:
            answers = list(pool.map(create, names))
        refused = [body for status, body in answers if status == 409]
        assert {status for status, _ in answers} <= {201, 409}, answers
        assert all(body == {"error_code": 409, "message": CONFLICT} for body in refused), refused
        assert stage.asked("GET", "/connectors")[0] == 200
        made = [name for name, (status, _) in zip(names, answers, strict=True) if status == 201]
        assert made
        for name in made:
            assert stage.asked("GET", f"/connectors/{name}/status")[0] in (200, 404)
            stage.client.send("DELETE", f"/connectors/{name}")
        assert set(names).isdisjoint(stage.client.get("/connectors"))

    def test_a_client_waits_for_the_end_of_each_rebalance_and_no_change_is_lost(
        self, stage: Stage, names: list[str]
    ) -> None:
        client, name = stage.client, names[0]
        client.send("POST", "/connectors", {"name": name, "config": stage.config})
        client.send("PUT", f"/connectors/{name}/config", stage.config | {"topic": f"{name}-2"})
        client.send("PUT", f"/connectors/{name}/stop")
        assert client.get(f"/connectors/{name}")["config"]["topic"] == f"{name}-2"
        client.send("DELETE", f"/connectors/{name}")
        assert name not in client.get("/connectors")


class TestFakeWorkers(RebalancesContract):
    """The workers that other tests believe in. They refuse each request that could meet a
    rebalance; real ones mostly hold it until the rebalance ends.
    """

    @pytest.fixture
    def stage(self) -> Iterator[Stage]:
        with rest_server(script=RestWorkers()) as server:
            yield Stage((server.url,), {"connector.class": "x.y.Source", "topic": "t"})
            assert isinstance(server, RestWorkers)
            assert server.refused


@pytest.mark.live
class TestRealWorkers(RebalancesContract):
    """The same on two real workers."""

    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Stage:
        config = {"connector.class": "FileStreamSource", "file": "/dev/null", "topic": "contract"}
        return Stage(cluster.rest_urls, config)
