"""The public producer on three brokers: leaders move, a broker dies and comes back, a coordinator
does.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.direct_requests import DirectRequests
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.kafka_protocol.transactions import find_request
from connectctl.producer import AbortRequired, TransactionalProducer
from fakes.sandboxes import kill_broker, start_broker
from kafka.admin import KafkaAdminClient
from live.campaignbroker import Broker, own_broker
from live.publicproducer import insist, seen, write_once
from live.real import create_topic, eventually
from live.threebrokers import dying

pytestmark = pytest.mark.live
PARTITIONS = 3


@pytest.fixture(scope="module")
def three() -> Iterator[Broker]:
    with own_broker(3) as broker:
        yield broker


@pytest.fixture
def client(three: Broker) -> dict[str, Any]:
    return {"bootstrap.servers": three.bootstrap}


@pytest.fixture
def topic(three: Broker) -> str:
    """With a replica on each broker, and another leader for each partition."""
    return create_topic(
        three.bootstrap, f"public-{secrets.token_hex(4)}", PARTITIONS, "delete", replicas=3
    )


@pytest.fixture
def producer(client: dict[str, Any], topic: str) -> Iterator[TransactionalProducer]:
    given = client | {"transactional.id": topic, "socket.timeout.ms": 3000}
    with TransactionalProducer(given) as made:
        insist(made.init_transactions)
        yield made


def leaders(client: dict[str, Any], topic: str) -> dict[int, Any]:
    wire = KafkaProtocolClient(client, timeout=120)
    try:
        return {place.partition: leader for place, leader in Leaders(wire).leaders([topic]).items()}
    finally:
        wire.close()


def coordinator(client: dict[str, Any], id_: str) -> int:
    wire = KafkaProtocolClient(client, timeout=120)
    try:

        def found() -> int:
            answer = wire.run("find a coordinator", lambda: wire.ask(find_request(id_)))
            return 0 if answer.error_code else int(answer.node_id)

        return int(eventually(found))
    finally:
        wire.close()


def moved(three: Broker, client: dict[str, Any], topic: str) -> None:
    """Have others lead partition 0 by a clean restart of its leader, and then its first replica."""
    three.restart(leaders(client, topic)[0])
    admin = KafkaAdminClient(bootstrap_servers=three.bootstrap.split(","))
    (described,) = admin.describe_topics([topic])
    (first,) = (
        each["replica_nodes"][0] for each in described["partitions"] if each["partition_index"] == 0
    )

    def led_by_first() -> bool:
        admin.elect_leaders(0, raise_errors=False)
        return bool(leaders(client, topic)[0] == first)

    eventually(led_by_first)
    admin.close()


def beside(work: Callable[[], None], while_: Callable[[int], None]) -> int:
    """Call ``while_`` with numbers until ``work`` is done beside it, and twice more; how often."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            failed.append(e)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    number = left = 0
    while thread.is_alive() or left < 2:
        left += not thread.is_alive()
        while_(number)
        number += 1
    thread.join()
    assert not failed
    return number


def test_transactions_go_on_while_leaders_move_and_each_record_is_there_once(
    three: Broker, client: dict[str, Any], topic: str, producer: TransactionalProducer
) -> None:
    aborted = list[int]()
    done = beside(
        lambda: moved(three, client, topic),
        lambda number: aborted.append(write_once(producer, topic, number, range(PARTITIONS))),
    )
    print(f"{done} transactions, {sum(aborted)} aborted")
    assert seen(client, topic) == sorted(
        str(number) for number in range(done) for _ in range(PARTITIONS)
    )


def test_transactions_go_on_while_each_broker_is_killed_and_each_record_is_there_once(
    three: Broker, client: dict[str, Any], topic: str, producer: TransactionalProducer
) -> None:
    aborted = list[int]()

    def kills() -> None:
        for number in range(1, 4):
            three.kill(0.5, number)
            three.wait()

    done = beside(
        kills, lambda number: aborted.append(write_once(producer, topic, number, range(PARTITIONS)))
    )
    print(f"{done} transactions, {sum(aborted)} aborted")
    assert seen(client, topic) == sorted(
        str(number) for number in range(done) for _ in range(PARTITIONS)
    )


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_ended_by_the_next_coordinator_while_its_own_is_away(
    three: Broker, client: dict[str, Any], topic: str, producer: TransactionalProducer, commit: bool
) -> None:
    write_once(producer, topic, 0, range(PARTITIONS))
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(topic, "1", partition=partition)
    producer.flush()
    away = coordinator(client, topic)
    kill_broker(three.sandbox, away)
    try:
        insist(producer.commit_transaction if commit else producer.abort_transaction)
        write_once(producer, topic, 2, range(PARTITIONS))
    finally:
        start_broker(three.sandbox, away)
        three.wait()
    assert seen(client, topic) == ["0"] * 3 + (["1"] * 3 if commit else []) + ["2"] * 3


def test_a_leader_that_is_killed_asks_for_an_abort_behind_which_the_next_leader_is_found(
    three: Broker, client: dict[str, Any], topic: str, producer: TransactionalProducer
) -> None:
    write_once(producer, topic, 0, range(PARTITIONS))
    away = next(
        leader for leader in leaders(client, topic).values() if leader != coordinator(client, topic)
    )
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(topic, "lost", partition=partition)
    kill_broker(three.sandbox, away)
    try:
        with pytest.raises(AbortRequired):
            producer.commit_transaction()
        insist(producer.abort_transaction)
        write_once(producer, topic, 1, range(PARTITIONS))
    finally:
        start_broker(three.sandbox, away)
        three.wait()
    assert seen(client, topic) == ["0"] * 3 + ["1"] * 3


def test_a_coordinator_that_dies_behind_an_abort_of_what_nobody_acknowledged_fences_nobody(
    three: Broker,
    client: dict[str, Any],
    topic: str,
    producer: TransactionalProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_once(producer, topic, 0, range(PARTITIONS))
    first = coordinator(client, topic)
    partition, leader = next(
        (place, each) for place, each in leaders(client, topic).items() if each != first
    )
    producer.begin_transaction()
    producer.produce(topic, "lost", partition=partition)
    three.kill(0.5, leader)
    with pytest.raises(AbortRequired):
        producer.flush()
    three.wait()
    ask = DirectRequests.ask
    moved = list[int]()

    def then_die(requests: DirectRequests, doing: str, request: Any, broker: int, *a: Any) -> Any:
        answer = ask(requests, doing, request, broker, *a)
        if doing == "end its transaction" and not answer.error_code and not moved:
            three.kill(0.5, broker)
            three.wait()
            moved.append(broker)
        return answer

    monkeypatch.setattr(DirectRequests, "ask", then_die)
    insist(producer.abort_transaction)
    write_once(producer, topic, 1, range(PARTITIONS))
    assert moved
    assert seen(client, topic) == ["0"] * 3 + ["1"] * 3


@pytest.mark.slow
def test_two_hundred_transactions_and_more_are_whole_whoever_dies(
    three: Broker, client: dict[str, Any], topic: str, producer: TransactionalProducer
) -> None:
    done = aborted = 0
    with dying(three, seed=7) as killed:
        while done < 200 or killed() < 6:
            aborted += write_once(producer, topic, done, range(PARTITIONS))
            done += 1
        print(f"{done} transactions, {aborted} aborted, {killed()} brokers killed")
    assert seen(client, topic) == sorted(
        str(number) for number in range(done) for _ in range(PARTITIONS)
    )
