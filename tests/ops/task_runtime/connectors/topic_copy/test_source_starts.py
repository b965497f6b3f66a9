"""Where a copy begins: behind what is committed, and never silently behind what its source has
lost.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import (
    LostRange,
    SourceCluster,
    Start,
    start_of,
)

PLACE = TopicPartition("orders", 3)
LOG = OffsetRange(first=100, end=200, stable=190)


def source(reset: str | None = None, isolation: str = "read_committed") -> SourceCluster:
    return SourceCluster("east", {}, {}, isolation, reset or "earliest", 1.0, reset is not None)


@pytest.mark.parametrize(
    ("reset", "at", "start"),
    [
        (None, None, Start(100)),
        (None, 100, Start(100)),
        (None, 150, Start(150)),
        (None, 200, Start(200)),
        ("earliest", None, Start(100)),
        ("latest", None, Start(190, latest=True)),
        ("latest", 150, Start(150)),
        ("earliest", 40, Start(100, lost=LostRange("east", PLACE, 40, 99))),
        ("latest", 40, Start(190, latest=True, lost=LostRange("east", PLACE, 40, 189))),
    ],
)
def test_a_copy_begins_behind_its_offset_or_where_a_person_said(
    reset: str | None, at: int | None, start: Start
) -> None:
    assert start_of(source(reset), PLACE, at, LOG) == start


@pytest.mark.parametrize(
    ("reset", "at", "code", "says"),
    [
        (
            None,
            99,
            "lost-records",
            "Offsets 99 to 99 of orders-3 on east were lost before they were copied",
        ),
        (None, 0, "lost-records", "Offsets 0 to 99 of orders-3"),
        ("none", 5, "lost-records", "Offsets 5 to 99 of orders-3"),
        ("none", None, "no-offset", "orders-3 of east has no start offset"),
        (None, 201, "beyond-the-end", "ends at 200, but the committed offset is 200"),
        ("earliest", 201, "beyond-the-end", "ends at 200"),
    ],
)
def test_what_a_person_has_to_decide_fails_with_the_range(
    reset: str | None, at: int | None, code: str, says: str
) -> None:
    with pytest.raises(ConnectctlError, match=says) as raised:
        start_of(source(reset), PLACE, at, LOG)
    assert raised.value.code == code


def test_what_is_left_out_is_committed_at_once() -> None:
    assert start_of(source("earliest"), PLACE, 40, LOG).leaves_out
    assert start_of(source("latest"), PLACE, None, LOG).leaves_out
    assert not start_of(source(), PLACE, 100, LOG).leaves_out
    assert LostRange("east", PLACE, 40, 99).count == 60


@pytest.mark.parametrize("reset", [None, "latest", "none"])
def test_a_partition_that_appeared_while_the_copy_runs_begins_at_its_beginning(
    reset: str | None,
) -> None:
    cluster = replace(source(reset), added=frozenset({PLACE}))
    assert start_of(cluster, PLACE, None, LOG) == Start(100)
    assert start_of(cluster, PLACE, 150, LOG) == Start(150)
