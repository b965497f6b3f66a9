"""Transactions of version 2 (KIP-890) on a real broker: the feature on, off and changed; requests
late, lost and cut.

``rounds`` puts batches of numbers, one transaction each, through a proxy that holds back or loses a
request, and sends on what it held in the middle of a later transaction. Afterwards each batch is
there whole and once, or not at all.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from connectctl.ops.clients.kafka_protocol import batch_producer
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.kafka_protocol.transactions import init_request
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.record_batch_encoder import RecordColumns, batches
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.faultproxy import ADD_OFFSETS, ADD_PARTITIONS, END_TXN, PRODUCE, Fault, FaultProxy
from live.brokerfeatures import set_feature
from live.real import create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.drawn(5, matrix="transaction versions")]
SIZE = 6
"""Records of a transaction: half of them in each of two partitions."""
INIT = 22
LAST_EPOCH = 0x7FFF - 1
"""The last one that a producer id has."""


@pytest.fixture(scope="module")
def broker(state_home: FilePath) -> Iterator[Sandbox]:
    """A broker of which nobody else has to know that its features change."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    yield up(SandboxSpec(name="txnversion", workers=0))
    down("txnversion")


class Numbers:
    """Batches of numbers in transactions of their own, by producers of one id."""

    def __init__(self, bootstrap: str, direct: str):
        self.id = f"txn-{secrets.token_hex(4)}"
        self.topic = create_topic(direct, self.id, 2, "delete")
        self._bootstrap, self._direct = bootstrap, direct
        self.made: BatchProducer | None = None
        self.known: dict[int, bool | None] = {}
        """Whether each transaction was committed; None where nobody said."""
        self._old: list[BatchProducer] = []

    def close(self) -> None:
        self.forget()
        for each in self._old:
            with suppress(OSError, Unreachable):
                each.close()

    def forget(self) -> None:
        if self.made is not None:
            self._old.append(self.made)
        self.made = None

    def producer(self) -> BatchProducer:
        if self.made is None:
            given = {"bootstrap.servers": self._bootstrap}
            self.made = BatchProducer(given, self.id, transaction_timeout_ms=20_000, timeout=1.0)
            self.made.initialise(30)
        return self.made

    def transaction(self, number: int, *, commit: bool = True, late: Fault | None = None) -> None:
        """Transaction ``number``; ``late`` is delivered in its middle. Raises what its producer
        raises.
        """
        self.known[number] = False
        made = self.producer()
        made.partitions(self.topic, 30)
        for partition in (0, 1):
            values = [b"%d" % number] * (SIZE // 2)
            place = TopicPartition(self.topic, partition)
            made.add([place])
            for batch in batches(RecordColumns(pa.array(values, pa.binary())), 10_000):
                made.send(place, len(batch), batch.encode)
            made.flush()
            if (
                partition == 0
                and late is not None
                and late.caught.is_set()
                and not late.delivered.is_set()
            ):
                late.release()
        self.known[number] = None if commit else False
        made.end(commit=commit, patience=20)
        self.known[number] = commit

    def seen(self) -> Counter[int]:
        """How many records of each transaction a reader with read_committed sees, when nothing is
        open any more.
        """
        last = BatchProducer(
            {"bootstrap.servers": self._direct}, self.id, transaction_timeout_ms=20_000, timeout=10
        )
        last.initialise(30)
        last.close()
        kafka = Kafka({"bootstrap.servers": self._direct}, timeout=120)
        image = kafka.image([self.topic], patience=30, superseded=True)[self.topic]
        assert not image.held_back
        return Counter(int(r.value or b"") for r in (*image.latest, *image.superseded))

    def check(self) -> None:
        """Nothing torn, lost or there twice."""
        seen = self.seen()
        assert {number: count for number, count in seen.items() if count != SIZE} == {}
        assert {number for number, done in self.known.items() if done} - set(seen) == set()
        assert {number for number, done in self.known.items() if done is False} & set(seen) == set()


def rounds(cluster: Sandbox, apis: list[int], count: int, seed: int) -> tuple[Counter[str], int]:
    """``count`` transactions with a fault at each second one; how they ended, and how many faults
    were met.
    """
    chance = random.Random(seed)
    proxy = FaultProxy(cluster.bootstrap_servers)
    numbers = Numbers(proxy.bootstrap, cluster.bootstrap_servers)
    told, held, met = Counter[str](), None, 0
    try:
        for number in range(count):
            fault = None
            if number % 2 and held is None:
                api, lost = chance.choice(apis), chance.random() < 0.4
                skip = chance.randrange(2) if api == PRODUCE else 0
                fault = proxy.lose(api, skip) if lost else proxy.hold(api)
            try:
                numbers.transaction(number, commit=chance.random() < 0.8, late=held)
                told["answered"] += 1
            except (Refusal, Unreachable, OSError) as e:
                told[type(e).__name__] += 1
                numbers.forget()
            if held is not None and held.delivered.is_set():
                held = None
            if fault is None:
                continue
            met += fault.caught.is_set()
            if not fault.caught.is_set():
                proxy.withdraw(fault)
            elif not fault.lost:
                held = fault
        if held is not None:
            held.release()
        numbers.check()
    finally:
        numbers.close()
        proxy.close()
    return told, met


def test_late_and_lost_requests_tear_lose_and_repeat_nothing(cluster: Sandbox) -> None:
    told, met = rounds(cluster, [END_TXN, PRODUCE], 120, 7)
    assert met >= 40, told
    assert told["answered"] >= 60


@pytest.mark.slow
def test_a_thousand_late_and_lost_requests_tear_lose_and_repeat_nothing(cluster: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(
                lambda seed: rounds(cluster, [END_TXN, END_TXN, PRODUCE], 100, seed),
                range(100, 128),
            )
        )
    assert sum(met for _, met in found) >= 1000, [met for _, met in found]


def test_before_version_2_neither_do_they(broker: Sandbox) -> None:
    set_feature(broker.bootstrap_servers, 1, 2)
    try:
        _, met = rounds(broker, [END_TXN, PRODUCE, ADD_PARTITIONS], 40, 8)
    finally:
        set_feature(broker.bootstrap_servers, 2, 1)
    assert met >= 10


def test_commits_whose_answer_is_lost_are_answered_in_the_end_and_the_producer_goes_on(
    cluster: Sandbox,
) -> None:
    proxy = FaultProxy(cluster.bootstrap_servers)
    numbers = Numbers(proxy.bootstrap, cluster.bootstrap_servers)
    first = numbers.producer()
    for number in range(5):
        fault = proxy.lose(END_TXN)
        numbers.transaction(number)
        assert fault.caught.is_set()
    assert numbers.producer() is first
    fault = proxy.lose(END_TXN)
    # nobody waits long for an abort: the next producer ends what is open
    with pytest.raises(Unreachable):
        numbers.transaction(5, commit=False)
    numbers.check()
    assert numbers.known == dict.fromkeys(range(5), True) | {5: False}
    numbers.close()
    proxy.close()


def test_a_producer_of_before_version_2_that_is_used_on_behind_a_doubt_tears_a_transaction(
    cluster: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_producer, "has_version_2", lambda wire: False)
    proxy = FaultProxy(cluster.bootstrap_servers)
    numbers = Numbers(proxy.bootstrap, cluster.bootstrap_servers)
    numbers.producer()
    fault = proxy.hold(END_TXN)
    with pytest.raises(Unreachable):
        numbers.transaction(0)
    with pytest.raises(Refusal):
        numbers.transaction(1, late=fault)
    with pytest.raises(AssertionError):
        numbers.check()
    assert numbers.seen() == {0: SIZE, 1: SIZE // 2}
    numbers.close()
    proxy.close()


def test_a_transaction_costs_no_request_but_its_records_and_its_end(cluster: Sandbox) -> None:
    proxy = FaultProxy(cluster.bootstrap_servers)
    numbers = Numbers(proxy.bootstrap, cluster.bootstrap_servers)
    numbers.transaction(0)
    before = numbers.producer().who
    del proxy.seen[:]
    for number in range(1, 4):
        numbers.transaction(number, commit=number != 2)
    transactional = {PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, INIT}
    asked = Counter(api for api in proxy.seen if api in transactional)
    assert asked[END_TXN] == 3
    assert set(asked) == {PRODUCE, END_TXN}
    assert numbers.producer().who == (before[0], before[1] + 3)
    numbers.check()
    numbers.close()
    proxy.close()


def use_up(bootstrap: str, id_: str) -> None:
    """Initialise ``id_`` until whoever does it next has the last epoch but two, in requests that
    may take their time.
    """
    made = BatchProducer(
        {"bootstrap.servers": bootstrap}, id_, transaction_timeout_ms=20_000, timeout=60.0
    )
    made.initialise(60)

    async def some(count: int) -> list[Any]:
        connection = await made._wire.manager.get_connection(made._coordinator)
        asked = [connection.send_request(init_request(made.id, 20_000)) for _ in range(count)]
        return [await each for each in asked]

    while (left := LAST_EPOCH - 3 - made.who[1]) > 0:
        given = made._wire.run("initialise", partial(some, min(left, 500)))
        made.who = max(
            (each.producer_id, each.producer_epoch) for each in given if not each.error_code
        )
    made.close()


@pytest.mark.parametrize("lost", [False, True])
def test_behind_the_last_epoch_comes_another_producer_id_also_where_the_answer_is_lost(
    cluster: Sandbox, lost: bool
) -> None:
    proxy = FaultProxy(cluster.bootstrap_servers)
    numbers = Numbers(proxy.bootstrap, cluster.bootstrap_servers)
    use_up(cluster.bootstrap_servers, numbers.id)
    made = numbers.producer()
    first, epochs = made.who[0], []
    for number in range(6):
        if lost and made.who[1] == LAST_EPOCH:
            proxy.lose(END_TXN)
        numbers.transaction(number, commit=number != 1)
        epochs.append((made.who[0] == first, made.who[1]))
    assert epochs == [
        (True, LAST_EPOCH - 1),
        (True, LAST_EPOCH),
        (False, 0),
        (False, 1),
        (False, 2),
        (False, 3),
    ]
    numbers.check()
    numbers.close()
    proxy.close()


def test_the_feature_decides_and_a_producer_outlives_its_changes(broker: Sandbox) -> None:
    numbers = Numbers(broker.bootstrap_servers, broker.bootstrap_servers)
    number = 0

    def some(*, bumps: bool) -> None:
        nonlocal number
        assert numbers.producer().bumps_epoch is bumps
        for _ in range(4):
            number += 1
            numbers.transaction(number, commit=number % 4 != 2)

    def initialised(bumps: bool) -> bool:
        numbers.forget()
        return numbers.producer().bumps_epoch is bumps

    some(bumps=True)
    for level, kind in ((1, 2), (2, 1)):
        set_feature(broker.bootstrap_servers, level, kind)
        some(bumps=level == 1)  # one that was initialised before stays with its requests
        eventually(lambda level=level: initialised(level == 2))  # type: ignore[misc]
        some(bumps=level == 2)
    numbers.check()
    numbers.close()
