"""A Connect cluster in memory whose connectors have offsets: brokers, workers and a journal, to run
connectctl against.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.connect import target_state_wait
from connectctl.ops.connect.source_keys import SourceKey, parse_key, spelled_by_rest, value_by_rest
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.operations.offsets import sources
from fakes.groupoffsets import FakeGroupOffsets
from fakes.kafkareads import FakeLeader, connect_group
from fakes.kafkawrites import Breaking, FakeKafkaWrites, Faults
from fakes.runner import invoke
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import Result

TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
PARTITIONS = 3
SOURCE = {"connector.class": "x.y.Source"}
RESUME = re.compile(r"connectctl runs resume (\S+)")


@dataclass
class World:
    """``plain`` runs with only the global topic; ``moved`` has its own topic; ``old`` is deleted,
    its offsets remain.
    """

    journal: Path
    faults: Faults = field(default_factory=Faults)
    kafka: FakeKafkaWrites = field(default_factory=FakeKafkaWrites)
    workers: FakeWorkers = field(default_factory=FakeWorkers)
    groups: FakeGroupOffsets = field(default_factory=FakeGroupOffsets)
    clock: float = 0.0

    def __post_init__(self) -> None:
        self.kafka.records |= {"cfg": [], "off": [], "sta": [], "own": []}
        self.kafka.partitions |= {"off": PARTITIONS, "own": PARTITIONS}
        owners = [("plain", -1), ("plain", 0), ("moved", -1), ("moved", 0)]
        self.kafka.groups["connect"] = connect_group("connect", one=owners)
        self.workers.configured, self.workers.altered = self._configure, self._alter
        self.workers.commanded = FakeLeader(self.kafka).command
        for name, more in (("plain", {}), ("moved", {"offsets.storage.topic": "own"})):
            self.workers.connectors[name] = FakeConnector(config=SOURCE | {"name": name} | more)
            self._configure(name, self.workers.connectors[name].config)
        for topic, name, table, lsn in (
            ("off", "plain", "a", 1),
            ("off", "plain", "b", 2),
            ("off", "moved", "a", 3),
            ("off", "moved", "b", 4),
            ("own", "moved", "a", 5),
            ("own", "moved", "c", 6),
            ("off", "old", "a", 7),
            ("off", "other", "a", 8),
        ):
            self.put(topic, f'["{name}",{{"table":"{table}"}}]', f'{{"lsn":{lsn}}}')

    def put(self, topic: str, key: str, value: str | None) -> None:
        """Write one offset where Java's partitioner puts it."""
        raw = key.encode()
        self.kafka.append(
            topic, raw, None if value is None else value.encode(), java_partition(raw, PARTITIONS)
        )

    def _configure(self, name: str, config: Mapping[str, str]) -> None:
        self.kafka.append(
            "cfg", f"connector-{name}".encode(), json.dumps({"properties": dict(config)}).encode()
        )

    def _alter(self, name: str, method: str, body: Any) -> None:
        """What a worker does: everything spelled anew, to the global and to the dedicated topic."""
        own = self.workers.connectors[name].config.get("offsets.storage.topic")
        for topic in dict.fromkeys(("off", own or "off")):
            for partition, offset in self._entries(name, method, body):
                key = spelled_by_rest(name, partition)
                self.kafka.append(
                    topic, key, value_by_rest(offset), java_partition(key, PARTITIONS)
                )

    def _entries(self, name: str, method: str, body: Any) -> list[tuple[Any, Any]]:
        if method == "PATCH":
            return [(entry["partition"], entry["offset"]) for entry in body["offsets"]]
        keys = [parse_key(key) for topic, _, key in self.kafka.live() if topic in ("off", "own")]
        return [
            (k.partition, None) for k in keys if isinstance(k, SourceKey) and k.connector == name
        ]

    def state(self) -> dict[Any, Any]:
        """All that can be changed: live records, configurations, and what connectors are once they
        have come to rest.
        """
        for connector in self.workers.connectors.values():
            while connector.next:
                connector.advance()
        records = {place: value for place, value in self.kafka.live().items() if place[0] != "cfg"}
        found = {
            name: (c.own, tuple(c.tasks), c.config) for name, c in self.workers.connectors.items()
        }
        return {"records": records, "connectors": found, "topics": set(self.kafka.records)}

    def run(self, *args: str, stdin: str | None = None) -> Result:
        """Run connectctl here, every call of an edge going through ``faults``."""
        session = FakeSession(
            told=TOPICS | {"timeout": 10},
            reads=Breaking(self.kafka, self.faults),  # type: ignore[arg-type]
            calls=Breaking(self.workers, self.faults),  # type: ignore[arg-type]
            committed=Breaking(self.groups, self.faults),  # type: ignore[arg-type]
        )
        original = sources.context_of

        def context_of(*given: Any) -> Any:
            context = original(*given)
            context.now, context.sleep = lambda: self.clock, self._sleep
            return context

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CONNECTCTL_JOURNAL", str(self.journal))
            patch.setattr(target_state_wait, "STEADY", 0.0)
            patch.setattr(sources, "context_of", context_of)
            return invoke(list(args), obj=session, input=stdin)

    def _sleep(self, seconds: float) -> None:
        self.clock += seconds


def resume_line(result: Result) -> str | None:
    """The run that the person is told to resume."""
    found = RESUME.search(result.stderr)
    return found[1] if found else None
