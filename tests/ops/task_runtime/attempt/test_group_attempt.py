"""Which producer a transform gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.attempt import group_attempt
from connectctl.ops.task_runtime.attempt.group_attempt import group_producer, writes_columns
from connectctl.ops.task_runtime.spi.delivery_settings import group_delivery
from connectctl.ops.task_runtime.spi.subscription import subscription
from connectctl.ops.task_runtime.spi.transform import Transform, connector_of
from connectctl.ops.task_runtime.task.at_least_once import GroupIdempotentProducer
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

JOB = {"topics": "in", "topic": "out"}
KAFKA = Kafka({"bootstrap.servers": "localhost:1"}, timeout=1)


class Columns(Transform):
    columnar = True

    def process(self, records: Any) -> Any:
        return records.arrow


class Objects(Transform):
    def process(self, records: Any) -> Any:
        return list(records)


def frame(given: Any) -> Any:
    return given


def spec_for(monkeypatch: pytest.MonkeyPatch, made: Any, config: dict[str, str]) -> Any:
    monkeypatch.setattr(group_attempt, "connector_class", lambda path: connector_of(made))
    return SimpleNamespace(
        path="m:C",
        config=config,
        delivery=group_delivery(config),
        subscription=subscription("c", config),
    )


@pytest.mark.parametrize("codec", [None, "zstd", "lz4", "snappy"])
@pytest.mark.parametrize("made", [Columns, frame])
def test_what_a_transform_of_columns_gives_stays_columns(
    monkeypatch: pytest.MonkeyPatch, made: Any, codec: str | None
) -> None:
    config = JOB if codec is None else JOB | {"producer.override.compression.type": codec}
    spec = spec_for(monkeypatch, made, config)
    assert writes_columns(spec)
    assert group_producer(spec) is TaskProducer


@pytest.mark.parametrize(
    ("made", "changed"),
    [
        (Objects, {}),
        (Columns, {"topic": ""}),  # each record names its own
        (Columns, {"consumer.override.max.poll.records": "100"}),
    ],
)
def test_records_are_written_as_batches_too(
    monkeypatch: pytest.MonkeyPatch, made: Any, changed: dict[str, str]
) -> None:
    spec = spec_for(monkeypatch, made, JOB | changed)
    assert not writes_columns(spec)
    assert group_producer(spec) is TaskProducer


@pytest.mark.parametrize("made", [Objects, Columns])
def test_librdkafka_writes_at_least_once(monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    spec = spec_for(monkeypatch, made, JOB | {"guarantee": "at-least-once"})
    assert not writes_columns(spec)
    assert group_producer(spec) is GroupIdempotentProducer
