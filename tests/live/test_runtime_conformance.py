"""What Kafka's ``ExactlyOnceSourceIntegrationTest`` asks of a worker, asked of polled tasks on a real broker.

Its ``testPollBoundary``, ``testIntervalBoundary``, ``testConnectorBoundary``, ``testConnectorReconfiguration``,
``testSeparateOffsetsTopic`` and ``testPotentialDeadlockWhenProducingToOffsetsTopic``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model.ownership import task_id
from connectctl.ops.model.sourcekey import SourceKey, decode_json, parse_key
from connectctl.ops.runtime.api import SourceRecord, SourceTask
from connectctl.ops.runtime.boundaries import Boundaries, Boundary
from connectctl.ops.runtime.converters import converters
from connectctl.ops.runtime.dataframes import Target, _fence
from connectctl.ops.runtime.handle import Doubt, Fenced, Handle
from connectctl.ops.runtime.kernel import Kernel
from connectctl.ops.runtime.polling import Polling
from connectctl.ops.runtime.secondary import Secondary
from connectctl.ops.runtime.step import Ended, How, Outgoing, Step
from live.oracle import in_order, judge
from live.real import eventually
from live.test_runtime_kernel import Place

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
BATCH = 7
FIBONACCI = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)


class Sequenced(SourceTask):
    """Each of its sources counts from 0 to below ``last``, in batches of 7. The stored offset is the next number."""

    def start(self, configs: Mapping[str, str]) -> None:
        self.topic, self.last = configs["topic"], int(configs["last"])
        self.next = {name: self._stored(name) for name in configs["sources"].split(",") if name}

    def _stored(self, name: str) -> int:
        return int((self.context.offsets.offset({"source": name}) or {"next": 0})["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        records: list[SourceRecord] = []
        for name, start in self.next.items():
            self.next[name] = min(start + BATCH, self.last)
            records += [self.record(name, n) for n in range(start, self.next[name])]
        return records or None

    def record(self, name: str, n: int) -> SourceRecord:
        return SourceRecord({"source": name}, {"next": n + 1}, self.topic, n, key=name)

    @property
    def finished(self) -> bool:
        return all(n >= self.last for n in self.next.values())


class Fibonacci(Sequenced):
    """Ends its transactions behind 1, 2, 3, 5, 8 … records, and aborts those behind an even one."""

    def record(self, name: str, n: int) -> SourceRecord:
        record, transaction = super().record(name, n), self.context.transaction
        assert transaction is not None
        if n + 1 in FIBONACCI:
            (transaction.commit_transaction if (n + 1) % 2 else transaction.abort_transaction)(record)
        return record


class Own(Sequenced):
    """Writes to the offsets topic of its own connector."""

    def record(self, name: str, n: int) -> SourceRecord:
        return SourceRecord({"source": name}, {"next": n + 1}, self.context.configs["own"], n)


@dataclass
class Connector:
    """A connector of such tasks, with a place of its own."""

    place: Place
    kind: type[Sequenced] = Sequenced
    boundary: Boundary = Boundary.POLL

    def handle(self, task: int) -> Handle:
        return Handle(self.place.kafka, task_id("g", self.place.connector, task), timeout_ms=30_000)

    def run(self, last: int, task: int = 0, sources: str = "a", secondary: Secondary | None = None) -> Ended:
        place, ticks = self.place, itertools.count(0, 20)
        configs = {"topic": place.topic, "last": str(last), "sources": sources, "own": place.offsets}
        supply = Polling(
            self.kind,
            place.connector,
            configs,
            lambda: Boundaries(self.boundary, interval=60, now=lambda: float(next(ticks))),
            converters({}),
            place.offsets,
        )
        store = place.store(secondary=secondary is not None)
        kernel = Kernel(lambda: self.handle(task), place.offsets, store, secondary, patience=60)
        try:
            return kernel.run(supply)
        finally:
            supply.close()

    def numbers(self) -> list[int]:
        image = self.place.kafka.image([self.place.topic], patience=30, superseded=True)[self.place.topic]
        assert not image.held_back
        return [int(record.value or b"") for record in in_order(image)]

    def findings(self) -> tuple[str, ...]:
        place = self.place

        def whose(partition: dict[str, Any]) -> bytes:
            return str(partition["source"]).encode()

        return judge(place.kafka, place.topic, place.offsets, place.connector, whose).findings

    def history(self, topic: str) -> list[int]:
        """Every offset that was committed, in its order; there is one source."""
        image = self.place.kafka.image([topic], patience=30, superseded=True)[topic]
        keys = {record.key: parse_key(record.key) for record in in_order(image)}
        assert all(isinstance(k, SourceKey) and k.connector == self.place.connector for k in keys.values())
        assert len({record.partition for record in in_order(image)}) <= 1
        return [decode_json((record.value or b"").decode())[0]["next"] for record in in_order(image)]


@pytest.fixture
def place(cluster: Sandbox) -> Place:
    return Place(cluster)


def test_with_the_boundary_poll_every_batch_is_a_transaction(place: Place) -> None:
    connector = Connector(place)
    assert connector.run(100).counts.transactions == 15
    assert connector.numbers() == list(range(100))
    assert connector.history(place.offsets) == [*range(7, 100, 7), 100]


def test_with_the_boundary_interval_batches_share_a_transaction_and_none_is_lost(place: Place) -> None:
    connector = Connector(place, boundary=Boundary.INTERVAL)
    ended = connector.run(100)
    assert (ended.how, ended.counts.records) == (How.ENDED, 100)
    assert 1 < ended.counts.transactions < 15
    assert connector.numbers() == list(range(100))
    assert connector.history(place.offsets)[-1] == 100


def test_a_connector_that_defines_its_transactions_gets_them_and_aborted_ones_are_seen_by_nobody(place: Place) -> None:
    connector = Connector(place, Fibonacci, Boundary.CONNECTOR)
    ended = connector.run(89)
    bounds = list(itertools.pairwise((0, *FIBONACCI)))
    assert connector.numbers() == [n for start, end in bounds if end % 2 for n in range(start, end)]
    assert connector.history(place.offsets) == list(FIBONACCI)
    assert ended.counts.aborted == sum(end % 2 == 0 for end in FIBONACCI)


def test_what_a_connector_has_not_ended_is_aborted_and_comes_again(place: Place) -> None:
    assert Connector(place, Fibonacci, Boundary.CONNECTOR).run(60).how is How.ENDED
    assert Connector(place).history(place.offsets)[-1] == 55
    connector = Connector(place)
    connector.run(60)
    assert connector.numbers()[-5:] == list(range(55, 60))
    assert connector.history(place.offsets)[-1] == 60


def test_each_change_of_the_number_of_tasks_fences_all_that_ran_before(place: Place) -> None:
    connector = Connector(place)
    sources = "abcdef"
    client = {"bootstrap.servers": place.kafka.properties()["bootstrap.servers"]}
    target = Target(client, "g", place.connector, place.topic, place.offsets, (), "", known_tasks=5)
    before = 0

    def run(last: int, count: int, task: int) -> How:
        mine = ",".join(name for n, name in enumerate(sources) if n % count == task)
        return connector.run(last, task, mine).how

    with ThreadPoolExecutor(5) as pool:
        for round_, count in enumerate((3, 5, 1, 5, 3), 1):
            zombies = list(pool.map(partial(_half_way, connector), range(max(before, count))))
            _fence(target)
            for zombie in zombies:
                with pytest.raises(Fenced):
                    zombie.commit(30)
                zombie.drop()
            assert set(pool.map(partial(run, round_ * 10, count), range(count))) == {How.ENDED}
            before = count
    assert not connector.findings()
    assert sorted(connector.numbers()) == sorted(list(range(50)) * len(sources))


def test_tasks_that_commit_without_a_pause_are_fenced_in_the_middle_of_a_commit_too(place: Place) -> None:
    client = {"bootstrap.servers": place.kafka.properties()["bootstrap.servers"]}
    target = Target(client, "g", place.connector, place.topic, place.offsets, (), "")
    for _ in range(5):
        busy = [Busy(Connector(place), task) for task in range(4)]
        for each in busy:
            assert each.commits.wait(60)
        _fence(target)
        for each in busy:
            each.thread.join(30)
            assert not each.thread.is_alive(), "it goes on, as if nobody had fenced it"
            assert isinstance(each.end, Fenced)


class Busy:
    """A producer of a task's id that commits one transaction after the other, until something ends it."""

    def __init__(self, connector: Connector, task: int):
        self.handle = connector.handle(task)
        self.topic = connector.place.topic
        self.commits = threading.Event()
        self.end: Exception | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.handle.initialise(60)
            while True:
                self.handle.begin()
                self.handle.send(Step([Outgoing(self.topic, b"a", b"0")]))
                self.handle.commit(30)
                self.commits.set()
        except (Fenced, Doubt) as e:
            self.end = e
        finally:
            self.handle.drop()


def _half_way(connector: Connector, task: int) -> Handle:
    """A producer of the task's id in the middle of a transaction."""
    handle = connector.handle(task)
    handle.initialise(60)
    handle.begin()
    handle.send(Step([Outgoing(connector.place.topic, b"a", b"-1")]))
    handle.send_offsets(connector.place.offsets, {connector.place.key: b'{"next":-1}'})
    return handle


def test_with_an_offsets_topic_of_its_own_both_topics_have_every_offset(place: Place) -> None:
    connector = Connector(place)
    behind = Secondary(place.kafka, place.global_, 30)
    connector.run(60, secondary=behind)
    behind.close()
    ends = [*range(7, 60, 7), 60]
    assert connector.history(place.offsets) == ends
    eventually(lambda: connector.history(place.global_) == ends)
    assert connector.numbers() == list(range(60))


def test_a_task_that_writes_to_its_own_offsets_topic_fails_and_leaves_nothing(place: Place) -> None:
    with pytest.raises(ConnectctlError, match="may not produce to their own offsets topics"):
        Connector(place, Own).run(60)
    assert Connector(place).history(place.offsets) == []
