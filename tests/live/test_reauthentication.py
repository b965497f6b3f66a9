"""Sessions of SASL end every ten seconds, and whoever writes or reads whole batches lives through
it.
"""

from __future__ import annotations

import itertools
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from connectctl.ops.clients.kafka_protocol.headers import Headers
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.batch_headers import Batch
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer, UnknownOutcome
from live.securedcluster import as_admin, as_user, create_topic, create_user, super_user

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
WAYS = ("SCRAM", "PLAIN", "OAUTH")
LIFETIME = 10.0
"""Seconds that a session lasts on the listeners of the fixture ``secured``."""
PATIENCE = 600.0
"""Seconds for new attempts: on a machine that stalls, a session may end before the new login is
through.
"""


def test_writers_and_readers_of_batches_outlive_their_sessions(secured: Sandbox) -> None:
    with ThreadPoolExecutor() as pool:
        for lived in pool.map(lambda way: outlives(secured, way, 1.4 * LIFETIME), WAYS):
            assert lived.connections == 1
            assert lived.written == lived.read > 0


@pytest.mark.slow
def test_they_do_so_for_two_minutes(secured: Sandbox) -> None:
    with ThreadPoolExecutor() as pool:
        for lived in pool.map(lambda way: outlives(secured, way, 120.0), WAYS):
            print(
                f"{lived.written} records written, {lived.read} read, {lived.connections} "
                "connections"
            )
            assert lived.connections == 1
            assert lived.written == lived.read > 0


def write(handle: TaskProducer, topic: str, patience: float = 60.0) -> None:
    """A transaction of two records."""
    columns = RecordColumns(pa.array([b"one", b"two"]))
    handle.begin()
    handle.send(TransactionBatch(record_batches=[ColumnBatch(topic, columns)]))
    handle.commit(patience)


def test_a_login_that_is_taken_away_ends_its_producer_when_it_has_to_be_renewed(
    secured: Sandbox,
) -> None:
    topic = create_topic(secured, f"reauthentication-{secrets.token_hex(4)}")
    client = as_user(secured, topic, create_user(secured, topic))
    admin, pattern = super_user(secured), ResourcePatternType.LITERAL
    who = (f"User:{topic}", "*", AclOperation.WRITE, AclPermissionType.ALLOW)
    rights = [
        AclBinding(kind, topic, pattern, *who)
        for kind in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID)
    ]
    for future in admin.create_acls(rights).values():
        future.result(300)
    handle, done = TaskProducer(Kafka(client, timeout=60), topic, timeout_ms=60_000), 0

    def go_on() -> None:
        nonlocal done
        while True:
            try:
                write(handle, topic, 5.0)
                done += 1
            except UnknownOutcome:  # the broker was the first to end the session
                handle.abort(60)
            time.sleep(0.1)

    try:
        handle.initialise(60)
        write(handle, topic)
        gone = UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_512)
        for future in admin.alter_user_scram_credentials([gone]).values():
            future.result(300)
        # a commit is asked for until its time is up, and told as an outage
        with pytest.raises(Unreachable):
            go_on()
    finally:
        handle.discard()
    reader = Kafka(as_admin(secured, "SCRAM"), timeout=60)
    image = reader.image([topic], patience=60, superseded=True)[topic]
    assert len([*image.latest, *image.superseded]) >= 2 * (done + 1)


class Lived:
    """What came of one writer and one reader, each on one connection: records, and connections that
    the reader needed.
    """

    def __init__(self, cluster: Sandbox, way: str, topic: str):
        self.client = as_admin(cluster, way)
        self.place = TopicPartition(create_topic(cluster, topic), 0)
        self.written = self.read = self.connections = 0

    def run(self, seconds: float) -> None:
        """Write and read in turns. Raises ``UnknownOutcome`` where the writer's connection
        broke.
        """
        kafka: Any = Kafka(self.client, timeout=60)
        handle, headers = (
            TaskProducer(kafka, f"{self.place.topic}-id", timeout_ms=60_000),
            Headers(self.client, timeout=60),
        )
        seen: set[int] = set()
        at = 0
        try:
            handle.initialise(60)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                write(handle, self.place.topic)
                self.written += 2
                for found in headers.read(self.place, at, at + 3):
                    self.read += found.records if isinstance(found, Batch) else 0
                at += 3  # two records and the marker
                seen |= {id(connection) for connection in headers._connections.values()}
                time.sleep(0.02)
            time.sleep(LIFETIME)  # in which its session ends, while nothing is asked
            write(handle, self.place.topic)
            self.connections = len(seen)
        finally:
            handle.discard()
            headers.close()


def outlives(cluster: Sandbox, way: str, seconds: float) -> Lived:
    """The first attempt of which no connection broke, or the last."""
    end = time.monotonic() + PATIENCE
    for attempt in itertools.count():
        lived = Lived(cluster, way, f"reauthentication-{way.lower()}-{seconds:g}-{attempt}")
        with suppress(UnknownOutcome):
            lived.run(seconds)
        if lived.connections == 1 or time.monotonic() > end:
            return lived
    raise AssertionError("unreachable")
