"""What Kafka's ``ExactlyOnceSourceIntegrationTest`` asks of a worker, asked of polled tasks on a
real broker.

Which of its methods is which test here: ``docs/conformance.md``. Those that need a whole run are in
``test_run_conformance.py``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.connect.transactional_ids import leader_id
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.task_runtime.job.config_topic_records import ConfigTopicState, Generation
from connectctl.ops.task_runtime.job.generation import Leader, fence
from connectctl.ops.task_runtime.spi.connector import SourceRecord
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    ProducerRecord,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.at_least_once import IdempotentProducer
from connectctl.ops.task_runtime.task.generation_check import GenerationCheck
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    TaskProducer,
    UnknownOutcome,
)
from live.numbersource import Numbers, Place
from live.real import create_topic, eventually
from live.sequenced import Connector, Own, Sequenced

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
FIBONACCI = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)


class Fibonacci(Sequenced):
    """Ends its transactions behind 1, 2, 3, 5, 8 … records, and aborts those behind an even one."""

    def record(self, name: str, n: int) -> SourceRecord:
        record, transaction = super().record(name, n), self.context.transaction
        assert transaction is not None
        if n + 1 in FIBONACCI:
            (transaction.commit_transaction if (n + 1) % 2 else transaction.abort_transaction)(
                record
            )
        return record


@pytest.fixture
def place(cluster: Sandbox) -> Place:
    return Place(cluster)


def test_with_the_boundary_poll_every_batch_is_a_transaction(place: Place) -> None:
    connector = Connector(place)
    assert connector.run(100).stats.transactions == 15
    assert connector.numbers() == list(range(100))
    assert connector.history(place.offsets) == [*range(7, 100, 7), 100]


def test_with_the_boundary_interval_batches_share_a_transaction_and_none_is_lost(
    place: Place,
) -> None:
    connector = Connector(place, boundary=Boundary.INTERVAL)
    ended = connector.run(100)
    assert (ended.reason, ended.stats.records) == (EndReason.ENDED, 100)
    assert 1 < ended.stats.transactions < 15
    assert connector.numbers() == list(range(100))
    assert connector.history(place.offsets)[-1] == 100


def test_a_connector_that_defines_its_transactions_gets_them_and_aborted_ones_are_seen_by_nobody(
    place: Place,
) -> None:
    connector = Connector(place, Fibonacci, Boundary.CONNECTOR)
    ended = connector.run(89)
    bounds = list(itertools.pairwise((0, *FIBONACCI)))
    assert connector.numbers() == [n for start, end in bounds if end % 2 for n in range(start, end)]
    assert connector.history(place.offsets) == list(FIBONACCI)
    assert ended.stats.aborted == sum(end % 2 == 0 for end in FIBONACCI)


def test_what_a_connector_has_not_ended_is_aborted_and_comes_again(place: Place) -> None:
    assert Connector(place, Fibonacci, Boundary.CONNECTOR).run(60).reason is EndReason.ENDED
    assert Connector(place).history(place.offsets)[-1] == 55
    connector = Connector(place)
    connector.run(60)
    assert connector.numbers()[-5:] == list(range(55, 60))
    assert connector.history(place.offsets)[-1] == 60


@pytest.fixture
def calls(cluster: Sandbox) -> Iterator[TransactionClient]:
    made = TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    yield made
    made.close()


class Generations:
    """A connector whose tasks are started as a driver starts them, from a config topic of its
    own.
    """

    def __init__(self, connector: Connector, calls: TransactionClient, sources: str = "abcdef"):
        place = connector.place
        self.connector, self.sources = connector, sources
        bootstrap = place.kafka.properties()["bootstrap.servers"]
        self.topic = create_topic(bootstrap, f"{place.connector}-configs", 1)
        # The leader's id is the group's, which is the test's own.
        self.leader = Leader(place.kafka, calls, "g", self.topic)

    def start(self, count: int, choosing: Callable[[], None] = lambda: None) -> Generation:
        def choose(before: ConfigTopicState) -> list[dict[str, str]]:
            choosing()
            return [{"n": str(n)} for n in range(count)]

        return self.leader.start(self.connector.place.connector, {"name": "c"}, choose)

    def run(self, generation: Generation, last: int, count: int, task: int) -> EndReason:
        mine = ",".join(name for n, name in enumerate(self.sources) if n % count == task)
        watch = GenerationCheck(self.connector.place.kafka, generation, 60)
        return self.connector.run(last, task, mine, stale=watch.stale_because).reason


def test_each_change_of_the_number_of_tasks_fences_all_that_ran_before(
    place: Place, calls: TransactionClient
) -> None:
    connector = Connector(place)
    made = Generations(connector, calls)
    before: tuple[int, Generation | None] = (0, None)
    with ThreadPoolExecutor(5) as pool:
        for round_, count in enumerate((3, 5, 1, 5, 3), 1):
            # As in Kafka's test, also of ids that the new set of tasks does not have any more.
            zombies = list(pool.map(partial(_half_way, connector), range(max(before[0], 1))))
            generation = made.start(count)
            for zombie in zombies if before[1] else ():
                with pytest.raises(Fenced):
                    zombie.commit(30)
            for zombie in zombies:
                zombie.discard()
            if before[1] is not None:
                assert made.run(before[1], 1000, before[0], 0) is EndReason.STALE
            hows = pool.map(partial(made.run, generation, round_ * 10, count), range(count))
            assert set(hows) == {EndReason.ENDED}
            before = count, generation
    assert not connector.findings()
    assert sorted(connector.numbers()) == sorted(list(range(50)) * len(made.sources))


def test_a_leader_that_is_fenced_once_writes_again_and_its_tasks_are_exactly_once(
    place: Place, calls: TransactionClient
) -> None:
    made = Generations(Connector(place), calls)
    intruders: list[TaskProducer] = []

    def intrude() -> None:
        if not intruders:
            intruders.append(TaskProducer(place.kafka, leader_id("g"), timeout_ms=15_000))
            intruders[0].initialise(60)

    generation = made.start(2, intrude)
    intruders[0].discard()
    standing = made.leader.read_state(place.connector)
    # What the fenced leader was about to write is there once, from its second attempt.
    assert (standing.committed_tasks, standing.task_count, standing.commit) == (
        2,
        2,
        generation.commit,
    )
    for task in range(2):
        assert made.run(generation, 20, 2, task) is EndReason.ENDED
    assert not made.connector.findings()


def test_a_leader_finds_a_config_topic_that_is_newer_than_what_it_was_told_of_the_cluster(
    place: Place, calls: TransactionClient
) -> None:
    assert f"{place.connector}-configs" not in place.kafka.topic_names()
    made = Generations(Connector(place), calls)
    assert made.start(2).topic == made.topic


def test_a_leader_that_is_fenced_again_and_again_is_refused_in_one_line(
    place: Place, calls: TransactionClient
) -> None:
    made = Generations(Connector(place), calls)

    def intrude() -> None:
        intruder = TaskProducer(place.kafka, leader_id("g"), timeout_ms=15_000)
        intruder.initialise(60)
        intruder.discard()

    with pytest.raises(Refused, match="Another run or worker is the leader of group g"):
        made.start(1, intrude)
    assert made.leader.read_state(place.connector).commit == -1


def test_tasks_that_commit_without_a_pause_are_fenced_in_the_middle_of_a_commit_too(
    cluster: Sandbox, calls: TransactionClient
) -> None:
    place = Place(cluster)
    for _ in range(5):
        busy = [Busy(Connector(place), task) for task in range(4)]
        for each in busy:
            assert each.commits.wait(600)
        fence(calls, "g", place.connector, len(busy), 60)
        for each in busy:
            each.thread.join(300)
            assert not each.thread.is_alive(), "it goes on, as if nobody had fenced it"
            assert isinstance(each.end, Fenced)


class Busy:
    """A producer of a task's id that commits one transaction after the other, until something ends
    it.
    """

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
                self.handle.send(TransactionBatch([ProducerRecord(self.topic, b"a", b"0")]))
                self.handle.commit(30)
                self.commits.set()
        except (Fenced, UnknownOutcome) as e:
            self.end = e
        finally:
            self.handle.discard()


def _half_way(connector: Connector, task: int) -> TaskProducer:
    """A producer of the task's id in the middle of a transaction."""
    handle = connector.handle(task)
    handle.initialise(60)
    handle.begin()
    handle.send(TransactionBatch([ProducerRecord(connector.place.topic, b"a", b"-1")]))
    handle.send_offsets(connector.place.offsets, {connector.place.key: b'{"next":-1}'})
    return handle


def test_records_that_find_no_room_in_the_producers_queue_are_sent_once_there_is_some(
    place: Place,
) -> None:
    tight = {"queue.buffering.max.messages": "3", "linger.ms": "1"}
    handle = partial(
        IdempotentProducer,
        place.kafka,
        f"g-{place.connector}-0",
        timeout_ms=30_000,
        properties=tight,
    )
    assert place.kernel(open_producer=handle).run(Numbers(place, 60)).stats.records == 60
    assert place.seen() == list(range(60))


def test_with_an_offsets_topic_of_its_own_both_topics_have_every_offset(place: Place) -> None:
    connector = Connector(place)
    behind = GlobalOffsetsWriter(place.kafka, place.global_, 30)
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
