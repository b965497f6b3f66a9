"""What reads a source topic: a place that its leader does not have is looked at again, and never
reset.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy import source_reader
from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import TopicReader
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import Start

PLACE = TopicPartition("t", 0)


class Library:
    """confluent-kafka's consumer: ``next`` are the messages of its next batch."""

    def __init__(self, watermarks: Any, settings: dict[str, Any]):
        self.watermarks, self.settings = watermarks, settings
        self.next: list[Any] = []

    def assign(self, places: Any) -> None:
        """It reads whatever is next."""

    def get_watermark_offsets(self, place: Any, *, cached: bool) -> Any:
        return self.watermarks

    def consume(self, most: int, seconds: float) -> list[Any]:
        found, self.next = self.next, []
        return found

    def close(self) -> None:
        """It has no connection."""


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[TopicReader, Library]]:
    """A reader that begins at offset 7 of ``t-0``, and its consumer."""
    kafka = SimpleNamespace(properties=dict, ask=lambda doing, call: call())
    monkeypatch.setattr(source_reader, "Kafka", lambda client, timeout: kafka)
    monkeypatch.setattr(
        source_reader, "starts_of", lambda source, kafka, begin: {PLACE: Start(begin[PLACE])}
    )

    def begun(reset: str, watermarks: Any = None) -> tuple[TopicReader, Library]:
        made: list[Library] = []

        def opened(settings: dict[str, Any]) -> Library:
            made.append(Library(watermarks, settings))
            return made[-1]

        monkeypatch.setattr(confluent_kafka, "Consumer", opened)
        source: Any = SimpleNamespace(
            alias="src", reset=reset, isolation="read_committed", timeout=5, admin={}, consumer={}
        )
        found = TopicReader(source)
        found.begin({PLACE: 7})
        return found, made[0]

    return begun


def event(error: int) -> Any:
    said = KafkaError(error)
    return SimpleNamespace(
        error=lambda: said, topic=lambda: "t", partition=lambda: 0, offset=lambda: -1001
    )


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_place_that_is_out_of_range_is_no_reason_to_begin_anew(reader: Any, reset: str) -> None:
    made, library = reader(reset)
    library.next = [event(KafkaError._AUTO_OFFSET_RESET)]
    with pytest.raises(Unreachable, match="Offset 7 of t-0 is out of range"):
        made.read(10)
    assert not made.opened


def test_without_a_reset_it_is_for_a_person_to_decide(reader: Any) -> None:
    made, library = reader("none")
    library.next = [event(KafkaError._AUTO_OFFSET_RESET)]
    with pytest.raises(ConnectctlError, match="has no start offset") as raised:
        made.read(10)
    assert raised.value.code == "no-offset"


def test_consumers_reset_nothing_by_themselves(reader: Any) -> None:
    _, library = reader("earliest")
    assert library.settings["auto.offset.reset"] == "error"


@pytest.mark.parametrize(
    ("watermarks", "lag"),
    [((0, 9), 2), ((0, 7), 0), ((0, -1001), None), ((-1001, -1001), None), (None, None)],
)
def test_a_lag_that_is_not_known_is_not_none_to_read(
    reader: Any, watermarks: Any, lag: int | None
) -> None:
    made, _ = reader("earliest", watermarks)
    assert made.lag == lag


def test_the_end_of_a_partition_at_no_offset_is_no_end(reader: Any) -> None:
    made, library = reader("earliest", (0, 9))
    library.next = [event(KafkaError._PARTITION_EOF)]
    assert made.read(10) == []
    assert (made.has_more, made.lag) == (True, 2)
