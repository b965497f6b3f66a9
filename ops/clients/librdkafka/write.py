"""Writes records in one transaction, which readers see whole or not at all.

librdkafka cannot determine the outcome of a transaction in doubt (it has no KIP-890 transactions).
After any error the handle is therefore discarded, and the caller, who knows the expected records,
reads again. A new handle with the same transactional id completes or aborts the transaction of the
old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.core.wait import wait_until
from connectctl.ops.kafka.acls import Operation, Resource, Right

TRANSACTION_TIMEOUT_MS = 60_000
QUEUE = 500_000
ABORT_TIMEOUT = 5.0
PAUSE = 0.1
_TOO_FEW_BROKERS = "INVALID_REPLICATION_FACTOR"


def write_transaction(
    kafka: Connection, id_: str, records: Iterable[tuple[str, int, bytes, bytes | None]]
) -> int:
    """Write ``(topic, partition, key, value)`` in one transaction of the transactional id ``id_``;
    return their number.
    """
    doing = "write offsets in a transaction"
    properties = kafka.properties(
        transactional__id=id_,
        transaction__timeout__ms=TRANSACTION_TIMEOUT_MS,
        linger__ms=20,
        queue__buffering__max__messages=QUEUE,
    )
    producer = kafka.ask(doing, lambda: confluent_kafka.Producer(properties))
    topics: set[str] = set()
    try:
        producer.init_transactions(kafka.timeout)
        producer.begin_transaction()
        try:
            count = _produce_all(producer, records, topics)
        except BaseException:
            # Nothing was asked to be committed yet: readers need not wait until the coordinator
            # gives the handle up.
            with suppress(KafkaException):
                producer.abort_transaction(ABORT_TIMEOUT)
            raise
        # Waits for the records, too, and fails where one of them was not taken.
        producer.commit_transaction(kafka.timeout)
    except KafkaException as e:
        raise kafka.failure(e.args[0], doing, _missing_right(e.args[0].name(), id_, topics)) from e
    return count


def _missing_right(error: str, id_: str, topics: set[str]) -> Right | None:
    """Return the right whose absence an error of this name reports; None where it may be one of
    several.
    """
    if error == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
        return Right(Operation.WRITE, Resource.TRANSACTIONAL_ID, id_)
    if error == "TOPIC_AUTHORIZATION_FAILED" and len(topics) == 1:
        return Right(Operation.WRITE, Resource.TOPIC, next(iter(topics)))
    return None


def _produce_all(
    producer: Any, records: Iterable[tuple[str, int, bytes, bytes | None]], topics: set[str]
) -> int:
    """Produce the records, and add their topics to ``topics``; return their number."""
    count = 0
    produce, poll = producer.produce, producer.poll
    for topic, partition, key, value in records:
        count += 1
        topics.add(topic)
        while True:
            try:
                produce(topic, value=value, key=key, partition=partition)
                break
            except BufferError:
                poll(0.1)
    return count


def create_topic(
    kafka: Connection,
    name: str,
    partitions: int,
    replicas: int,
    config: Mapping[str, str],
    *,
    exactly: bool = False,
) -> None:
    """Create a topic; one that exists already is fine. It has ``replicas`` replicas, or unless it
    must have ``exactly`` so many, one on each broker of a cluster that has fewer: brokers that are
    away count, because a topic has the replicas of its creation for ever. Raises
    ``ConnectctlError``, ``TimedOut`` where those that are away have to come back first.
    """
    while True:
        try:
            _create(kafka, name, partitions, replicas, config)
            break
        except ConnectctlError as e:
            if exactly or e.code != _TOO_FEW_BROKERS:
                raise
            # Brokers in KRaft mode assign replicas to registered brokers that are away, older ones
            # do not.
            offline, known = _brokers(kafka)
            if known >= replicas:
                raise _away(name, replicas, offline, e) from e
            replicas = known

    def led() -> bool | None:
        """Return whether every partition has a leader, by the metadata of the broker that describes
        the cluster.
        """
        metadata = kafka.ask(
            f"describe the topic {name}", lambda: kafka.admin.list_topics(name, kafka.timeout)
        )
        found = metadata.topics[name]
        leaders = [p.leader for p in found.partitions.values()] if found.error is None else []
        return (bool(leaders) and min(leaders) >= 0) or None

    if not wait_until(led, kafka.timeout, PAUSE):
        raise TimedOut(
            f"The topic {name} was created, but its partitions have no leaders after "
            f"{kafka.timeout:g} s"
        )


def _create(
    kafka: Connection, name: str, partitions: int, replicas: int, config: Mapping[str, str]
) -> None:
    new = NewTopic(name, partitions, replicas, config=dict(config))
    future = kafka.admin_request(
        lambda admin, seconds: admin.create_topics([new], request_timeout=seconds), repeats=False
    )[name]
    try:
        kafka.ask(f"create the topic {name}", future.result)
    except ConnectctlError as e:
        if e.code != "TOPIC_ALREADY_EXISTS":
            raise


def _brokers(kafka: Connection) -> tuple[list[int], int]:
    """Return the brokers that have replicas and are away, and the number of all."""
    metadata = kafka.ask("list the brokers", lambda: kafka.admin.list_topics(timeout=kafka.timeout))
    topics = metadata.topics.values()
    known = {
        broker for topic in topics for each in topic.partitions.values() for broker in each.replicas
    }
    return sorted(known - metadata.brokers.keys()), len(known | metadata.brokers.keys())


def _away(name: str, replicas: int, away: list[int], error: ConnectctlError) -> ConnectctlError:
    """Return the error for a topic that would have fewer replicas because brokers are ``away``;
    ``error`` where none is.
    """
    if not away:
        return error
    brokers = (
        f"broker{'s' * (len(away) > 1)} {', '.join(map(str, away))} "
        f"{'are' if len(away) > 1 else 'is'} away"
    )
    return TimedOut(
        f"The topic {name} is to have {replicas} replicas, and {brokers}",
        why=error.why or error.what,
        next_step="Start the brokers, or create the topic yourself.",
        code="brokers-away",
    )
