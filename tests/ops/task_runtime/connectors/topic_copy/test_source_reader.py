"""What reads a source topic: a place that its leader does not have is looked at again, and never
reset.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import TopicReader


def reader(reset: str, watermarks: Any = None) -> TopicReader:
    source: Any = SimpleNamespace(alias="src", reset=reset, isolation="read_committed", timeout=5)
    made = TopicReader(source)
    made._next = {TopicPartition("t", 0): 7}
    made._consumer = SimpleNamespace(get_watermark_offsets=lambda place, cached: watermarks)
    made._kafka = object()  # type: ignore[assignment]
    return made


def event(error: int) -> Any:
    said = KafkaError(error)
    return SimpleNamespace(
        error=lambda: said, topic=lambda: "t", partition=lambda: 0, offset=lambda: -1001
    )


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_place_that_is_out_of_range_is_no_reason_to_begin_anew(reset: str) -> None:
    with pytest.raises(Unreachable, match="Offset 7 of t-0 is out of range"):
        reader(reset)._take(event(KafkaError._AUTO_OFFSET_RESET))


def test_without_a_reset_it_is_for_a_person_to_decide() -> None:
    with pytest.raises(ConnectctlError, match="has no start offset") as raised:
        reader("none")._take(event(KafkaError._AUTO_OFFSET_RESET))
    assert raised.value.code == "no-offset"


def test_consumers_reset_nothing_by_themselves() -> None:
    assert reader("earliest")._ours()["auto.offset.reset"] == "error"


@pytest.mark.parametrize(
    ("watermarks", "lag"),
    [((0, 9), 2), ((0, 7), 0), ((0, -1001), None), ((-1001, -1001), None), (None, None)],
)
def test_a_lag_that_is_not_known_is_not_none_to_read(watermarks: Any, lag: int | None) -> None:
    assert reader("earliest", watermarks).lag == lag


def test_the_end_of_a_partition_at_no_offset_is_no_end() -> None:
    made = reader("earliest")
    made._take(event(KafkaError._PARTITION_EOF))
    assert (made._next, made.behind) == ({TopicPartition("t", 0): 7}, True)
