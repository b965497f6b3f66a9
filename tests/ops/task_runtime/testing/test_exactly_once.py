"""``check_exactly_once`` finds the mistakes that connectors are known for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.source import SourceConnector, SourceRecord, SourceTask
from connectctl.testing import check_exactly_once, run_source, run_transform
from connectctl.transform import Record, Records, Transform

PLACE = {"s": 1}


class Good(SourceTask):
    def start(self, configs: Mapping[str, str]) -> None:
        self.next = (self.context.offsets.offset(PLACE) or {"next": 0})["next"]

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.next >= 6:
            return None
        self.next += 2
        return [
            SourceRecord(PLACE, {"next": n + 1}, "t", str(n))
            for n in (self.next - 2, self.next - 1)
        ]


class StartsOver(Good):
    """It does not read its offsets."""

    def start(self, configs: Mapping[str, str]) -> None:
        self.next = 0


class OffByOne(Good):
    """Its offset is that of the record, and it begins with it."""

    def poll(self) -> Sequence[SourceRecord] | None:
        found = super().poll()
        return found and [SourceRecord(PLACE, {"next": int(r.value)}, "t", r.value) for r in found]


class Remembers(Good):
    """It keeps where it is beside its offsets, and moves on when it polls."""

    at = 0

    def start(self, configs: Mapping[str, str]) -> None:
        self.next = type(self).at

    def poll(self) -> Sequence[SourceRecord] | None:
        found = super().poll()
        type(self).at = self.next
        return found


def connector(task: type[SourceTask]) -> type[SourceConnector]:
    def task_configs(self: Any, max_tasks: int) -> list[dict[str, str]]:
        if hasattr(task, "at"):
            task.at = 0
        return [{}]

    return type("Kind", (SourceConnector,), {"task": task, "task_configs": task_configs})


def check(task: type[SourceTask]) -> int:
    return check_exactly_once(lambda fail_at: run_source(connector(task), {}, fail_at=fail_at))


def test_a_good_task_passes_each_failure_at_each_occasion() -> None:
    assert check(Good) == 1 + 4 + 4 * 3


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (StartsOver, "Not exactly-once after commit lost 2: 2 records too many"),
        (OffByOne, r"Not exactly-once after commit lost 2: \d+ records too many"),
        (Remembers, "Not exactly-once after commit lost 1: 2 records lost"),
    ],
)
def test_a_task_with_a_mistake_is_found(task: type[SourceTask], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check(task)


def test_a_source_without_a_record_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="committed nothing"):
        check(type("Nothing", (Good,), {"poll": lambda self: None}))


class Upper(Transform):
    def process(self, records: Records) -> Any:
        return [Record((r.value or b"").upper(), r.key) for r in records]


class HoldsBack(Transform):
    """It gives the records of the poll before."""

    def start(self, configs: Mapping[str, str]) -> None:
        self.held: list[Record] = []

    def process(self, records: Records) -> Any:
        held, self.held = self.held, [Record(r.value) for r in records]
        return held


def test_a_transform_is_held_to_it_as_well() -> None:
    topics = {"in": ["a", "b", "c", "d", "e"]}
    runs = check_exactly_once(
        lambda fail_at: run_transform(Upper, {"topic": "out"}, topics, batch=2, fail_at=fail_at)
    )
    assert runs > 1 + 4 * 3
    with pytest.raises(AssertionError, match="Not exactly-once after commit"):
        check_exactly_once(
            lambda fail_at: run_transform(
                HoldsBack, {"topic": "o"}, topics, batch=2, fail_at=fail_at
            )
        )
