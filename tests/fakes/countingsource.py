"""A source connector in memory that counts: what it has written, and from where a worker would
start it next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from connectctl.cli import apply
from connectctl.ops.core.errors import Unreachable
from fakes.offsetworld import World

STEP = 50
"""Records of a commit."""
TOPIC = "offsets.storage.topic"


@dataclass
class CountingSource:
    """The connector ``name`` of ``world``; ``written`` is how far it has written each of its
    tables.
    """

    world: World
    name: str = "plain"
    written: dict[str, int] = field(default_factory=dict)
    commits: int = 0

    def __post_init__(self) -> None:
        self.written = self.starts()

    @property
    def topic(self) -> str:
        """The topic that its tasks commit to."""
        return self.world.workers.connectors[self.name].config.get(TOPIC, "off")

    def commit(self) -> None:
        """Write some records of each table, and commit that as workers do: to its topic, and then a
        copy.
        """
        self.commits += 1
        for table in self.written:
            self.written[table] += STEP
            for topic in dict.fromkeys((self.topic, "off")):
                key = f'["{self.name}",{{"table":"{table}"}}]'
                self.world.put(topic, key, f'{{"lsn":{self.written[table]}}}')

    def starts(self) -> dict[str, int]:
        """Where a worker would start each table."""
        return self.starts_of(self.name, self.topic)

    def starts_of(self, name: str, in_topic: str) -> dict[str, int]:
        """Where a worker would start each table of the connector ``name`` that commits to
        ``in_topic``.
        """
        found = {}
        for (topic, _, key), value in self.world.kafka.live().items():
            if topic == in_topic and key is not None and json.loads(key)[0] == name:
                found[json.loads(key)[1]["table"]] = json.loads(value)["lsn"]
        return found

    def twice(self) -> int:
        """How many records it would write again, counted; a negative number is how many it would
        lose.
        """
        starts = self.starts()
        return sum(count - starts.get(table, 0) for table, count in self.written.items())

    def resume(self) -> None:
        """Somebody starts it."""
        self.world.workers.send("PUT", f"/connectors/{self.name}/resume")
        self.world.state()

    @property
    def state(self) -> str:
        self.world.state()
        return self.world.workers.connectors[self.name].own


def once(call: Callable[[], None]) -> Callable[[], None]:
    left = [call]
    return lambda: left.pop()() if left else None


@contextmanager
def answered_late(source: CountingSource) -> Iterator[None]:
    """It commits after the plan was made, and before that is agreed to."""
    commit = once(source.commit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "confirm", lambda *args, **more: commit())
        yield


@contextmanager
def before_the_stop(source: CountingSource) -> Iterator[None]:
    """It commits after the answer, and before it is stopped."""
    with commanded(source, before=once(source.commit)):
        yield


@contextmanager
def after_the_stop(source: CountingSource) -> Iterator[None]:
    """A task that did not hear of the stop commits once more."""
    with commanded(source, after=once(source.commit)):
        yield


@contextmanager
def commanded(
    source: CountingSource,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    real = source.world.workers.commanded

    def command(name: str, verb: str) -> None:
        stops = (name, verb) == (source.name, "stop")
        if stops:
            before()
        real(name, verb)
        if stops:
            after()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source.world.workers, "commanded", command)
        yield


@contextmanager
def after_the_write(source: CountingSource) -> Iterator[None]:
    """A task that did not hear of the stop commits when the offsets have been written."""
    real, commit = source.world.kafka.transact, once(source.commit)

    def transact(id_: str, records: Any) -> int:
        count = real(id_, records)
        if count:
            commit()
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source.world.kafka, "transact", transact)
        yield


@contextmanager
def broken_off(source: CountingSource) -> Iterator[None]:
    """The run breaks off where it would write or configure."""

    def broken(*args: Any) -> Any:
        raise Unreachable("broken off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source.world.kafka, "transact", broken)
        patch.setattr(source.world.workers, "configured", broken)
        patch.setattr(source.world.workers, "altered", broken)
        yield
