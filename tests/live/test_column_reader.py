"""What is read column by column from a real broker is what librdkafka reads of the same log."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from connectctl.ops.clients.kafka_protocol import column_reader
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.consume import read_ranges
from connectctl.ops.jobs.audit import Cluster, columns
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.sandbox.cluster import Sandbox
from live.columnrecords import fill

pytestmark = pytest.mark.live


def told(some: Any) -> list[Any]:
    every = some.records() if isinstance(some, Columns) else some
    return [(m.offset(), m.key(), m.value(), m.headers() or [], m.timestamp()) for m in every]


@pytest.mark.parametrize("most", [3_000, 8 << 20])
def test_every_codec_and_outcome_is_read_as_librdkafka_reads_it(
    cluster: Sandbox, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_reader, "FETCH_BYTES", most)
    name, client = f"columns-{most}", {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient(client)
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    fill(cluster.bootstrap_servers, name)
    ends = Kafka(client, timeout=120).extents([name])[name]
    whole = {TopicPartition(name, p): (0, extent.stable) for p, extent in ends.items()}
    part = {TopicPartition(name, 0): (37, ends[0].stable - 30), TopicPartition(name, 1): (5, 6)}
    for ranges in (whole, part):
        found: dict[Any, list[Any]] = {}
        for place, some in columns(Cluster(client, 30), ranges):
            assert isinstance(some, Columns)
            found.setdefault(place, []).extend(told(some))
        expected: dict[Any, list[Any]] = {}
        for place, some_ in read_ranges(Kafka(client, timeout=120), ranges):
            expected.setdefault(place, []).extend(told(some_))
        assert found == expected
    assert sum(map(len, found.values())) > 100
