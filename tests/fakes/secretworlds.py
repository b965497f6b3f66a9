"""Clusters that are drawn by a seed, with secrets in every place from which a bundle reads, and
with names that give something away.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectctl.ops.config.masking import secrets_of
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.kafka.records import ConsumerRecord
from fakes.kafkareads import FakeKafka, connect_group
from fakes.secrets import HARMLESS, SHAPES, Planted, trace_with
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers

PASSWORD = "door"
"""A property whose name does not tell that it is a secret: the plugin defines it as one."""
SYLLABLES = ("acme", "zorg", "lupin", "quartz", "mirabel", "tundra", "vesper", "kiwi")
JOINTS = ("-", ".", "_", "")
UNUSUAL = (" ", "/", "ü", "%", ":", "+")
"""What a connector's name may have, and a topic's may not."""
STATES = ("RUNNING", "FAILED", "PAUSED", "UNASSIGNED")
STATUSES = {"RUNNING": ["RUNNING"], "FAILED": ["FAILED", "RUNNING", "FAILED"]}


class SecretWorkers(FakeWorkers):
    """Workers that tell what the plugin defines, and validate with values, as real ones do."""

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if path == "/connector-plugins/x.y.Source/config":
            self._maybe_fail(path, None)  # whichever worker is asked
            return [{"name": PASSWORD, "type": "PASSWORD"}]
        return super().get(path, url=url, timeout=timeout)


@dataclass
class SecretWorld:
    """The cluster of ``seed``; its workers have a properties file in ``directory``. ``planted`` are
    its secrets, ``names`` those of its connectors and topics. ``untold`` are secrets that only the
    plugin's definition shows as such, where no worker tells it.
    """

    seed: str
    directory: Path
    planted: Planted = field(default_factory=Planted)
    names: set[str] = field(default_factory=set)
    untold: set[str] = field(default_factory=set)
    session: FakeSession = field(init=False)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._defined = self._draw.random() < 0.8
        connectors = [self._name(*UNUSUAL) for _ in range(self._draw.randint(1, 5))]
        topics = {f"topics.{role}": self._name() for role in ("config", "offsets", "status")}
        self._topics = {role.partition(".")[2]: name for role, name in topics.items()}
        configs = {name: self._config() for name in connectors}
        kafka = FakeKafka(
            {
                self._topics["config"]: self._config_topic(configs),
                self._topics["offsets"]: self._offsets(connectors),
                self._topics["status"]: self._statuses(configs),
                self._name(): self._foreign(),
                "__consumer_offsets": [],
            },
            groups={"connect": self._group(connectors)},
        )
        workers = SecretWorkers({name: self._connector(configs[name]) for name in connectors})
        workers.errors = self._errors()
        self.session = FakeSession(told=topics | self._told(), reads=kafka, calls=workers)
        if self._draw.random() < 0.3:
            kafka.forbidden.add(self._topics[self._draw.choice(("offsets", "status"))])

    def _name(self, *unusual: str) -> str:
        """Return a new name, of words that are nowhere else."""
        draw = self._draw
        parts = draw.sample(SYLLABLES, draw.randint(1, 3))
        name = draw.choice(JOINTS + unusual).join(parts) + str(draw.randint(10, 99))
        self.names.add(name)
        return name

    def _secret_pairs(self) -> dict[str, str]:
        shapes = self._draw.sample(sorted(SHAPES), self._draw.randint(3, 12))
        return {name: self.planted.value(SHAPES[name]) for name in shapes}

    def _config(self) -> dict[str, str]:
        secret = self.planted.secret()
        if not self._defined:
            self.untold.add(secret)
        pairs = self._secret_pairs() | {PASSWORD: secret} | HARMLESS
        topic = self._name()
        return pairs | {"connector.class": "x.y.Source", "topic": topic, "topics": topic}

    def _connector(self, config: dict[str, str]) -> FakeConnector:
        tasks = self._draw.choices(STATES, k=self._draw.randint(0, 3))
        own = self._draw.choice(STATES)
        return FakeConnector(own, tasks, config, trace=self._trace(config))

    def _trace(self, config: Mapping[str, str]) -> str:
        """Return a trace that quotes secrets of the configuration, and has one of its own."""
        quoted = secrets_of(config, frozenset({PASSWORD}))
        own = self.planted.secret()
        return (
            trace_with(quoted) + f"\nCaused by: java.sql.SQLException: user=u password={own} at"
            f" jdbc:postgresql://u:{own}@db/x?password={own}"
        )

    def _config_topic(self, configs: Mapping[str, dict[str, str]]) -> list[ConsumerRecord]:
        written: list[tuple[str, Any]] = []
        for name, config in configs.items():
            written += [
                (f"connector-{name}", {"properties": self._config()}),  # superseded
                (f"connector-{name}", {"properties": config}),
                (f"task-{name}-0", {"properties": config | self._secret_pairs()}),
                (f"commit-{name}", {"tasks": 1}),
                (f"tasks-fencing-{name}", {"task-count": 1}),
            ]
        key = {"key": self.planted.secret(), "algorithm": "HmacSHA256"}
        return self._records([*written, ("session-key", key)])

    def _offsets(self, connectors: list[str]) -> list[ConsumerRecord]:
        """Return source partitions and offsets, of which some are addresses with a login."""
        shape = SHAPES["connection.url"]
        return self._records(
            [
                (
                    json.dumps([name, {"url": self.planted.value(shape), "table": "t"}]),
                    {"position": n, "auth_token": self.planted.secret()},
                )
                for n, name in enumerate(connectors)
            ]
        )

    def _statuses(self, configs: Mapping[str, dict[str, str]]) -> list[ConsumerRecord]:
        written: list[tuple[str, Any]] = []
        for name, config in configs.items():
            for state in STATUSES[self._draw.choice(sorted(STATUSES))]:
                trace = self._trace(config) if state == "FAILED" else None
                status = {"state": state, "trace": trace, "worker_id": "one:8083", "generation": 1}
                written += [(f"status-task-{name}-0", status), (f"status-connector-{name}", status)]
            topic = config["topic"]
            value = {"name": topic, "connector": name, "task": 0, "discoverTimestamp": 1}
            written.append((f"status-topic-{topic}:connector-{name}", {"topic": value}))
        return self._records(written)

    def _foreign(self) -> list[ConsumerRecord]:
        """Return records of a compacted topic that is not Connect's."""
        return self._records([(self.planted.secret(), {"customer": self.planted.secret()})])

    def _records(self, written: list[tuple[str, Any]]) -> list[ConsumerRecord]:
        begin = int(time.time() * 1000) - 1000 * len(written)
        return [
            ConsumerRecord(key.encode(), json.dumps(value).encode(), 0, n, begin + 1000 * n)
            for n, (key, value) in enumerate(written)
        ]

    def _group(self, connectors: list[str]) -> Any:
        owners = [(name, n) for name in connectors for n in (-1, 0)]
        return connect_group("connect", one=owners)

    def _errors(self) -> dict[str, ConnectctlError]:
        """Return what some requests are answered with: a proxy may repeat what it was sent."""
        secret = self.planted.secret()
        kind = self._draw.choice((ConnectctlError, NotAuthorized, Unreachable))
        error = kind(
            f"GET http://ops:{secret}@one:8083 failed",
            why=f"Authorization: Bearer {secret}abcdef, password={secret}",
            next_step=f"curl -u ops:{secret} http://one:8083",
        )
        path = self._draw.choice(("/connectors/", "/connectors?", "none"))
        return {path: error} | ({} if self._defined else {"/connector-plugins/": error})

    def _told(self) -> dict[str, Any]:
        return {
            "client.sasl.password": self.planted.secret(),
            "rest_auth.password": self.planted.secret(),
            "rest": [f"http://me:{self.planted.secret()}@one:8083"],
            "workers": {
                "driver": "properties-file",
                "file": str(self._properties_file()),
                "restart": f"curl -u ops:{self.planted.secret()} https://deploy/{{worker}}",
            },
        }

    def _properties_file(self) -> Path:
        """Return the workers' file; its secrets are also in what doctor reads of it."""
        secret = self.planted.secret()
        lines = [
            f"{name}={value}" for name, value in self._secret_pairs().items() if "\n" not in value
        ]
        lines.append(f"exactly.once.source.support=enabled password={secret}")
        path = self.directory / "worker.properties"
        path.write_text("\n".join(lines) + "\n")
        return path
