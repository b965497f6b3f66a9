"""Which producer a transform gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.attempt import group_attempt
from connectctl.ops.task_runtime.attempt.group_attempt import transform_producer, writes_columns
from connectctl.ops.task_runtime.spi.delivery_settings import group_delivery
from connectctl.ops.task_runtime.spi.subscription import subscription
from connectctl.ops.task_runtime.spi.transform import Transform, connector_of
from connectctl.ops.task_runtime.task.at_least_once import GroupIdempotentProducer
from connectctl.ops.task_runtime.task.columnar_producer import ColumnarProducer
from connectctl.ops.task_runtime.task.transactional_producer import TransactionalProducer

JOB = {"topics": "in", "topic": "out"}


class Columns(Transform):
    columnar = True

    def process(self, records: Any) -> Any:
        return records.arrow


class Objects(Transform):
    def process(self, records: Any) -> Any:
        return list(records)


def frame(given: Any) -> Any:
    return given


def kind_for(monkeypatch: pytest.MonkeyPatch, made: Any, config: dict[str, str]) -> type[TransactionalProducer]:
    kafka = Kafka({"bootstrap.servers": "localhost:1"}, timeout=1)
    monkeypatch.setattr(group_attempt, "connector_class", lambda path: connector_of(made))
    spec: Any = SimpleNamespace(
        path="m:C", config=config, delivery=group_delivery(config), subscription=subscription("c", config)
    )
    kind = transform_producer(spec, kafka)
    assert writes_columns(spec, kafka) is (kind is ColumnarProducer)
    return kind


@pytest.mark.parametrize("made", [Columns, frame])
def test_what_a_transform_of_columns_gives_is_written_as_whole_batches(
    monkeypatch: pytest.MonkeyPatch, made: Any
) -> None:
    assert kind_for(monkeypatch, made, JOB) is ColumnarProducer
    assert kind_for(monkeypatch, made, JOB | {"producer.override.compression.type": "zstd"}) is ColumnarProducer


@pytest.mark.parametrize(
    ("made", "changed"),
    [
        (Objects, {}),
        (Columns, {"topic": ""}),  # each record names its own
        (Columns, {"consumer.override.max.poll.records": "100"}),
        (Columns, {"producer.override.linger.ms": "5"}),  # which only librdkafka heeds
        (Columns, {"producer.override.compression.type": "lz4"}),
    ],
)
def test_all_others_are_written_by_librdkafka(
    monkeypatch: pytest.MonkeyPatch, made: Any, changed: dict[str, str]
) -> None:
    assert kind_for(monkeypatch, made, JOB | changed) is TransactionalProducer


def test_at_least_once_has_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kind_for(monkeypatch, Columns, JOB | {"guarantee": "at-least-once"}) is GroupIdempotentProducer
