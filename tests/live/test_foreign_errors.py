"""No error of a client library comes out of ours: each call fails once, and the rows are there once
all the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

import kafka.errors
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.dataframe import api, task
from connectctl.ops.task_runtime.dataframe.api import Target
from connectctl.ops.task_runtime.dataframe.task import Writing
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from fakes import failingclients
from live.real import create_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from fakes.failingclients import Failing

pytestmark = pytest.mark.live
DTYPES = [("shop", "string"), ("id", "bigint"), ("value", "string")]
CLIENTS: dict[str, Callable[[], AbstractContextManager[Failing]]] = {
    "confluent": failingclients.confluent,
    "sent": lambda: failingclients.kafka_python(answered=False),
    "answered": lambda: failingclients.kafka_python(answered=True),
}
ERRORS: dict[str, list[Callable[[], Exception]]] = {
    "confluent": [
        lambda: KafkaException(KafkaError(KafkaError._TRANSPORT)),
        lambda: KafkaException(KafkaError(KafkaError._TIMED_OUT)),
        lambda: KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)),
    ],
    "sent": [
        kafka.errors.KafkaConnectionError,
        kafka.errors.KafkaTimeoutError,
        ConnectionResetError,
    ],
    "answered": [
        kafka.errors.KafkaConnectionError,
        kafka.errors.RequestTimedOutError,
        BrokenPipeError,
    ],
}


def target(cluster: Sandbox) -> Target:
    name = f"foreign-{secrets.token_hex(4)}"
    bootstrap = cluster.bootstrap_servers
    offsets, topic = (
        create_topic(bootstrap, f"{name}-offsets"),
        create_topic(bootstrap, f"{name}-data", 1, "delete"),
    )
    return Target(
        {"bootstrap.servers": bootstrap},
        f"g-{name}",
        name,
        topic,
        offsets,
        "shop",
        "id",
        patience=30,
    )


def written(place: Target, first: int, codec: str) -> None:
    """A call of ``write_exactly_once`` in a process that has just begun, without Spark: the
    driver's part, and a task's.
    """
    api.forget(place)
    generation = api.generation_of(place, DTYPES)
    work = replace(
        api.spec_of_task(place), generation=generation, reached=api._reached[api.sharing_key(place)]
    )
    # which decides on the producer
    manner = replace(work.delivery, properties={"compression.type": codec})
    rows = pa.RecordBatch.from_pydict(
        {
            "shop": ["a"] * 4,
            "id": range(first, first + 4),
            "value": [f"{n}" for n in range(first, first + 4)],
        }
    )
    writing = Writing(replace(work, delivery=manner), place.topic, place.columns, 2)
    report = task.run(writing, 0, iter([rows]))
    assert report.reason == EndReason.ENDED, report


def all_there(place: Target, count: int) -> None:
    image = Kafka(dict(place.client), timeout=120).image(
        [place.topic], patience=30, superseded=True
    )[place.topic]
    values = sorted(int(record.value or b"") for record in (*image.latest, *image.superseded))
    assert values == list(range(count))


def each_call_fails_once(cluster: Sandbox, client: str, codec: str, every: int) -> dict[str, int]:
    """Every so manyth call of a writing fails, one to a writing; the calls that failed, by their
    names.
    """
    place, errors = target(cluster), ERRORS[client]
    written(place, 0, codec)
    number = 4
    with CLIENTS[client]() as failing:
        written(place, number, codec)
        number += 4
        count = len(failing.calls)
        failed: list[str] = []
        for at in range(1, count + 1, every):
            failing.calls, failing.at, failing.error = [], at, errors[at % len(errors)]
            try:
                written(place, number, codec)
            except BaseException:
                print(f"the call {at} of {count}: {failing.calls[at - 1 : at]}")
                raise
            failed += failing.calls[at - 1 : at]
            number += 4
    all_there(place, number)
    return failingclients.told(failed)


@pytest.mark.parametrize(
    ("client", "codec"), [("confluent", "lz4"), ("sent", "none"), ("answered", "none")]
)
def test_an_error_of_a_client_library_is_repeated_and_never_comes_out_of_ours(
    cluster: Sandbox, client: str, codec: str
) -> None:
    """``lz4`` is written by librdkafka, anything else by connectctl's own producer."""
    print(each_call_fails_once(cluster, client, codec, 7))


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("client", list(CLIENTS))
def test_whichever_call_fails_the_rows_are_there_once(
    cluster: Sandbox, client: str, codec: str
) -> None:
    print(each_call_fails_once(cluster, client, codec, 1))
