"""Three brokers of which any one dies at any moment: what is read is whole or an error, what is
written is there once.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol import cluster_lock
from connectctl.ops.clients.kafka_protocol.brokers import Brokers
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.cluster_lock import GroupLock
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.named_groups import describe
from connectctl.ops.connect.cluster_lock import group_of
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.sandbox.status import SandboxState, status
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from depth import deep
from fakes.sandboxes import kill_broker, start_broker
from live import countingplugin
from live.campaign import Campaign
from live.campaignbroker import Broker, KeptBroker
from live.campaignkinds import SOURCES
from live.campaignseed import seed, withstand
from live.oracle import judge
from live.real import connectctl, create_topic, eventually, write
from live.threebrokers import dying

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import TopicImage

pytestmark = pytest.mark.live
KEYS = 40
PARTITIONS = 8
TIMEOUT = 20.0
PATIENCE = 120.0
READINGS, CALLS, LEAST_KILLS = 100, 6, 2


@pytest.fixture(scope="module")
def kept() -> Iterator[KeptBroker]:
    brokers = KeptBroker(3)
    yield brokers
    brokers.close()


@pytest.fixture
def three(kept: KeptBroker) -> Broker:
    return kept.get()


def keys_in_all_partitions(connector: str) -> set[bytes]:
    """``KEYS`` keys, as many in each partition of the offsets topic."""
    of: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for number in count():
        key = f'["{connector}",{{"file":{number}}}]'.encode()
        of[java_partition(key, PARTITIONS)].append(key)
        if all(len(keys) >= KEYS // PARTITIONS for keys in of.values()):
            break
    return {key for keys in of.values() for key in keys[: KEYS // PARTITIONS]}


class Offsets:
    """An offsets topic with three replicas, in which a connector has ``KEYS`` source partitions."""

    def __init__(self, three: Broker):
        self.bootstrap = three.bootstrap
        self.connector = f"read-{secrets.token_hex(4)}"
        self.topic = create_topic(
            three.bootstrap, f"{self.connector}-offsets", PARTITIONS, replicas=3
        )
        self.keys = keys_in_all_partitions(self.connector)
        write(three.bootstrap, self.topic, *((key, {"next": 7}) for key in sorted(self.keys)))

    def kafka(self) -> Kafka:
        return Kafka({"bootstrap.servers": self.bootstrap}, timeout=TIMEOUT)


def readings(three: Broker, count: int) -> Counter[str]:
    """So many readings while brokers die: how many were whole, how many an error. Any other is a
    failure.
    """
    place, found = Offsets(three), Counter[str]()
    kafka, kept = place.kafka(), None
    with dying(three, seed()) as killed:
        # Readings by one connection for long, by new ones, and by what reads on from where it was.
        number = 0
        while killed() < LEAST_KILLS or number < count:
            number += 1
            if number % 5 == 0:
                kafka = place.kafka()
            try:
                if number % 3:
                    assert (
                        whole(kafka.image([place.topic], patience=TIMEOUT)[place.topic])
                        == place.keys
                    )
                else:
                    kept = (
                        kept
                        if kept is not None and number % 4
                        else CommittedOffsets(kafka, place.topic, place.connector)
                    )
                    kept.refresh(TIMEOUT)
                    assert kept.known() == place.keys
                found["whole"] += 1
            except ConnectctlError as e:
                found[type(e).__name__] += 1
        found["brokers killed"] = killed()
    print(dict(found))
    return found


def whole(image: TopicImage) -> set[bytes | None]:
    assert not image.held_back
    assert sorted(image.end_offsets) == list(range(PARTITIONS))
    return {record.key for record in image.latest}


def test_a_reading_is_whole_or_an_error_whoever_dies(three: Broker) -> None:
    number = deep(READINGS, 40)
    found = readings(three, number)
    assert found["whole"] > number / 2


@pytest.mark.slow
def test_two_thousand_readings_are_whole_or_errors(three: Broker) -> None:
    found = readings(three, 2_000)
    assert found["whole"] > 1_000


def test_offsets_show_gives_all_source_partitions_or_no_success(
    three: Broker, tmp_path: Path
) -> None:
    place = Offsets(three)
    group = place.connector
    for kind, partitions in (("configs", 1), ("statuses", 5)):
        create_topic(three.bootstrap, f"{group}-{kind}", partitions, replicas=3)
    config = {"connector.class": "FileStreamSource", "name": group, "topic": "t", "tasks.max": "1"}
    write(
        three.bootstrap,
        f"{group}-configs",
        (f"connector-{group}", {"properties": config}),
        partition=0,
    )
    topics = {"config": f"{group}-configs", "offsets": place.topic, "status": f"{group}-statuses"}
    context = {"bootstrap_servers": three.bootstrap, "group_id": group, "topics": topics}
    file = tmp_path / "contexts.yaml"
    file.write_text(json.dumps({"current": "c", "contexts": {"c": context}}))
    words = ("--config", str(file), "--timeout", "20", "offsets", "show", group, "-o", "json")
    assert partitions_in(connectctl(*words).out) == KEYS
    codes = Counter[int]()
    with dying(three, seed()):
        for _ in range(deep(CALLS, 3)):
            ran = connectctl(*words)
            codes[ran.code] += 1
            assert ran.code != 0 or partitions_in(ran.out) == KEYS
    print(dict(codes))
    assert codes[0] > 0


def partitions_in(out: str) -> int:
    return sum(len(connector["offsets"]) for connector in json.loads(out)["connectors"])


def test_doctor_names_the_brokers_that_are_down_before_its_time_is_over(three: Broker) -> None:
    """Where most are down, no coordinator moves: it does not wait for one."""
    began, limit = time.monotonic(), 500
    for number in (2, 3):
        kill_broker(three.sandbox, number)
    try:
        where = ("--bootstrap-servers", three.bootstrap, "--group-id", "nobody")
        ran = connectctl(*where, "--timeout", str(limit), "doctor")
    finally:
        for number in (2, 3):
            start_broker(three.sandbox, number)
    three.wait()
    assert ran.code == 5, ran.out + ran.err
    assert "2 of 3 do not accept connections: 2 (" in ran.err
    assert time.monotonic() - began < limit
    print(f"named after {time.monotonic() - began:.0f} s")


def test_a_broker_that_was_killed_is_told_and_comes_back(three: Broker) -> None:
    three.wait()
    name = three.sandbox.layout.name
    assert [p.name for p in status(name).processes] == ["broker", "broker-2", "broker-3"]
    brokers = Brokers({"bootstrap.servers": three.bootstrap}, timeout=TIMEOUT)
    assert brokers.unreachable() == {}
    kill_broker(three.sandbox, 2)
    assert list(brokers.unreachable()) == [2]
    assert [p.state for p in status(name).processes] == [
        SandboxState.RUNNING,
        SandboxState.STOPPED,
        SandboxState.RUNNING,
    ]
    kafka = Kafka({"bootstrap.servers": three.bootstrap}, timeout=TIMEOUT)
    for _ in range(6):
        # The metadata of those that are left names it as the controller, for some seconds.
        seen = Kafka(kafka.client, timeout=TIMEOUT).existing(["made-by-nobody"])
        assert seen.seen == frozenset()
    assert kafka.cluster_id() == three.sandbox.cluster_id
    topic = f"made-meanwhile-{secrets.token_hex(4)}"
    eventually(lambda: Kafka(kafka.client, timeout=TIMEOUT).brokers() == 2)
    # The broker that was killed may have been the controller: a run asks again until there is
    # another one.
    patiently = RetryPolicy(240)
    patiently(
        "create the topic",
        lambda: Kafka(kafka.client, timeout=TIMEOUT).create_topic(topic, 4, 3, {}),
    )

    def described() -> TopicFacts | None:
        found = Kafka(kafka.client, timeout=TIMEOUT).topics([topic])
        return found.get(topic)

    made = eventually(lambda: patiently("describe the topic", described))
    assert set(made.replicas.values()) == {3}
    assert made.out_of_sync == {2}
    start_broker(three.sandbox, 2)
    admin = kafka.admin
    eventually(
        lambda: (
            {len(p.isrs) for p in admin.list_topics(topic, 30).topics[topic].partitions.values()}
            == {3}
        )
    )
    assert {p.state for p in status(name).processes} == {SandboxState.RUNNING}


def test_what_any_broker_answers_is_asked_of_another_one_where_one_was_killed(
    three: Broker,
) -> None:
    """Metadata has it until its session is over, and a client without connections takes any."""
    topic = create_topic(three.bootstrap, f"asked-{secrets.token_hex(4)}", 1, replicas=3)
    clients = [
        KafkaProtocolClient({"bootstrap.servers": three.bootstrap}, timeout=TIMEOUT)
        for _ in range(10)
    ]
    for client in clients:
        assert client.brokers() == [1, 2, 3]
    kill_broker(three.sandbox, 2)
    try:
        for client in clients:
            assert list(Leaders(client).leaders([topic])) == [TopicPartition(topic, 0)]
    finally:
        start_broker(three.sandbox, 2)
        for client in clients:
            client.close()


def test_a_request_to_any_broker_waits_while_all_are_in_their_back_off(three: Broker) -> None:
    """kafka-python connects to none of them for up to a second after its connections broke."""
    topic = create_topic(three.bootstrap, f"waits-{secrets.token_hex(4)}", 1, replicas=3)
    client = KafkaProtocolClient({"bootstrap.servers": three.bootstrap}, timeout=TIMEOUT)
    try:
        for number in client.brokers():
            for _ in range(3):
                client.manager.update_backoff(number)
        assert client.manager.least_loaded_node() is None
        assert list(Leaders(client).leaders([topic])) == [TopicPartition(topic, 0)]
    finally:
        client.close()


def test_the_lock_of_a_cluster_outlives_the_coordinator_that_keeps_it(
    three: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A new coordinator says for a moment that a group of living members is dead; without ``settle``
    # this is believed.
    monkeypatch.setattr(cluster_lock, "SESSION", 300.0)  # whatever the load
    properties = {"bootstrap.servers": three.bootstrap}

    def lock() -> GroupLock:
        return GroupLock(properties, "outlives", timeout=60)

    with lock().held("run-1") as confirm:
        for number in range(1, three.count + 1):
            kill_broker(three.sandbox, number)
            try:
                holder = lock().holder()
                assert holder is not None
                assert holder.run == "run-1"
                group = describe(Kafka(properties, timeout=60), group_of("outlives"))
                assert group is not None
                assert len(group.members) == 1
                confirm()
            finally:
                start_broker(three.sandbox, number)
                three.wait()
            confirm()
    assert lock().holder() is None


# --------------------------------------------------------------------------------------------- runs


class CountingRun:
    """A run of ``connectctl`` with ``tasks`` tasks that write ``numbers`` numbers each."""

    def __init__(self, three: Broker, directory: Path, tasks: int, numbers: int):
        self.tasks, self.numbers, self.name = tasks, numbers, f"run-{secrets.token_hex(4)}"
        self.kafka = Kafka({"bootstrap.servers": three.bootstrap}, timeout=60)
        self.topic = create_topic(
            three.bootstrap, f"{self.name}-data", PARTITIONS, "delete", replicas=3
        )
        archive, class_ = countingplugin.as_zip(directory)
        config = {
            "connector.class": class_,
            "topic": self.topic,
            "tasks.max": str(tasks),
            **countingplugin.CONFIG,
        }
        config |= {"count": str(numbers), "batch": "20", "pause": "0.2"}
        job = {
            "name": self.name,
            "config": config,
            "plugins": [archive],
            "spark": {"master": "local[2]"},
        }
        (directory / "job.yaml").write_text(json.dumps(job | {"until": {"forever": True}}))
        words = [
            "--context",
            f"sandbox-{three.sandbox.layout.name}",
            "--group-id",
            f"g-{self.name}",
            "run",
        ]
        self._command = [*words, str(directory / "job.yaml"), "--yes", "-o", "json"]

    def started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "connectctl.cli", *self._command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def committed(self) -> int:
        """How far committed records reach, over all partitions."""
        return sum(
            extent.stable for extent in self.kafka.extents([self.topic])[self.topic].values()
        )

    def has_begun(self, run: subprocess.Popen[str]) -> None:
        """Wait until the first record is committed."""

        def begun() -> bool:
            assert run.poll() is None, run.communicate()
            return self.committed() > 0

        eventually(begun)

    def ended_well(self, code: int, out: str, err: str) -> None:
        """It ended with its tasks, and each number is there once."""
        print(err)
        assert code == 0, err
        assert [task["state"] for task in json.loads(out)["tasks"]] == ["ENDED"] * self.tasks
        verdict = judge(
            self.kafka, self.topic, f"g-{self.name}-offsets", self.name, countingplugin.whose
        )
        assert not verdict.findings
        assert set(verdict.records.values()) == {self.numbers}
        assert len(verdict.records) == self.tasks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning")
def test_a_run_goes_on_through_the_deaths_of_leaders_and_writes_each_record_once(
    three: Broker, tmp_path: Path
) -> None:
    counting = CountingRun(three, tmp_path, 8, 3_000)
    with counting.started() as run:
        counting.has_begun(run)
        with dying(three, seed()) as killed:
            out, err = run.communicate(timeout=900)
            print(f"{killed()} brokers killed")
            assert killed() > 2
    counting.ended_well(run.returncode, out, err)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning")
def test_a_run_begins_and_ends_while_one_broker_after_the_other_dies(
    three: Broker, tmp_path: Path
) -> None:
    counting = CountingRun(three, tmp_path, 2, 200)
    with dying(three, seed(), 3.0) as killed, counting.started() as run:
        out, err = run.communicate(timeout=400)
        print(f"{killed()} brokers killed")
    counting.ended_well(run.returncode, out, err)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning")
def test_a_run_outlives_seventy_seconds_without_a_quorum(three: Broker, tmp_path: Path) -> None:
    counting = CountingRun(three, tmp_path, 2, 1_500)
    with counting.started() as run:
        counting.has_begun(run)
        for number in (1, 2):
            three.kill(70.0, number)  # longer than a task's own time-outs
        three.wait()
        out, err = run.communicate(timeout=400)
    counting.ended_well(run.returncode, out, err)
    (began,) = [
        line
        for line in err.splitlines()
        if line.startswith(f"waiting: no task of {counting.name} could ")
    ]
    assert "all tasks retry until " in began
    assert "2 of 3 brokers do not accept connections: 1 (" in began
    (over,) = [
        line
        for line in err.splitlines()
        if line.endswith(f"Kafka responds to {counting.name} again")
    ]
    assert err.index(began) < err.index(over)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning")
def test_a_run_without_an_end_waits_for_brokers_that_are_not_up_yet(
    three: Broker, tmp_path: Path
) -> None:
    counting = CountingRun(three, tmp_path, 2, 100)
    for number in range(1, three.count + 1):
        three.kill(60.0, number)  # longer than one request waits
    with counting.started() as run:
        three.wait()
        out, err = run.communicate(timeout=400)
    counting.ended_well(run.returncode, out, err)
    assert "waiting: could not reach Kafka; retrying for up to 300 s (--patience): " in err
    assert "could reach Kafka" in err


def test_a_task_writes_on_to_partitions_that_have_a_leader(three: Broker) -> None:
    """Java's producer does. What is for the partition without a leader waits, and is there when its
    broker is back.
    """
    topic = create_topic(three.bootstrap, f"leaderless-{secrets.token_hex(4)}", 3, "delete")
    kafka = Kafka({"bootstrap.servers": three.bootstrap}, timeout=TIMEOUT)

    def leader(partition: int) -> int:
        return int(kafka.admin.list_topics(topic, 10).topics[topic].partitions[partition].leader)

    victim = int(eventually(lambda: leader(1)))
    producer = TaskProducer(kafka, f"leaderless-{secrets.token_hex(4)}", timeout_ms=60_000)
    kill_broker(three.sandbox, victim)
    try:
        eventually(lambda: leader(1) == -1)
        producer.initialise(PATIENCE)
        began = time.monotonic()
        assert producer.open_older_transaction([topic]) is None
        producer.begin()
        producer.send(
            TransactionBatch(
                [ProducerRecord(topic, None, b"any"), ProducerRecord(topic, None, b"0", 0)]
            )
        )
        producer.commit(PATIENCE)
        assert time.monotonic() - began < TIMEOUT, (
            "it waited for the partition that it does not write to"
        )
        producer.begin()
        producer.send(TransactionBatch([ProducerRecord(topic, None, b"%d" % n, n) for n in (1, 2)]))
        three.kill(0.0, victim)  # starts it again
        producer.commit(PATIENCE)
    finally:
        three.wait()
        producer.discard()
    image = kafka.image([topic], patience=PATIENCE, superseded=True)[topic]
    assert sorted(r.value or b"" for r in (*image.latest, *image.superseded)) == [
        b"0",
        b"1",
        b"2",
        b"any",
    ]


# ---------------------------------------------------------------------------------------- campaigns


def test_tasks_write_each_record_once_while_leaders_die_and_ends_are_not_told(
    three: Broker, tmp_path: Path
) -> None:
    campaign = Campaign(three, seed(), tmp_path, silent=True)
    withstand(campaign, lambda: campaign.run(4, broker_kills=2))


@pytest.mark.campaign
def test_a_long_campaign_on_three_brokers_leaves_every_record_once(
    three: Broker, tmp_path: Path
) -> None:
    campaign = Campaign(three, seed(), tmp_path, silent=True)
    withstand(campaign, lambda: campaign.run(120, broker_kills=60))


@pytest.mark.slow
def test_a_reading_that_takes_no_answer_for_an_end_makes_records_twice(
    three: Broker, tmp_path: Path
) -> None:
    """Without this the campaign would prove nothing."""
    campaign = Campaign(three, seed(), tmp_path, silent=True, believed=True)
    try:
        verdict = campaign.run(6, broker_kills=2)
        print(campaign.table(verdict))
        assert len(verdict.records) == SOURCES
        assert {"twice", "offset went back"} <= verdict.kinds
    finally:
        campaign.close()
