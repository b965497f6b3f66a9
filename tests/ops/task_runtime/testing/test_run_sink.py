"""``connectctl.testing.run_sink``: what a sink is given and what is committed, over failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.sink import (
    GroupOffsets,
    ProducerRecord,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from connectctl.testing import Fault, Record, SinkRun, check_exactly_once, run_sink

JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
FIRST = TopicPartition("in", 0)


class Store(SinkTask):
    """Stores in ``stored`` as it flushes; ``calls`` has what it was asked."""

    stored: list[Any]
    calls: list[str]

    def start(self, configs: Mapping[str, str]) -> None:
        self.calls.append("start")
        self.rows: list[Any] = []

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if record.value == "bad":
                reporter = self.context.errant_record_reporter
                assert reporter is not None
                reporter.report(record, ValueError("a bad one"))
            else:
                self.rows.append(record.value)

    def flush(self, offsets: GroupOffsets) -> None:
        self.stored += self.rows
        self.rows.clear()

    def stop(self) -> None:
        self.calls.append("stop")


class Stores(SinkConnector):
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.configs)]


def kind(task: type[SinkTask] = Store, **more: Any) -> Any:
    made = type("Own", (task,), {"stored": [], "calls": [], **more})
    return type("Kind", (Stores,), {"task": made, "exactly_once": hasattr(task, "manifest")})


def test_records_are_converted_and_their_offsets_committed_behind_each_put() -> None:
    sink = kind()
    run = run_sink(
        sink, JSON, {"in": [{"n": 1}, b"2", "3", Record(b"4", partition=1), None]}, batch=2
    )
    assert sink.task.stored == [{"n": 1}, 2, 3, None, 4]
    assert run.offsets == {FIRST: 4, TopicPartition("in", 1): 1}
    assert [each.offsets.get(FIRST) for each in run.commits] == [2, 4, None]
    assert (run.state, run.starts, run.occasions["put"]) == ("RUNNING", 1, 3)


def test_a_run_begins_at_the_offsets_that_are_given() -> None:
    sink = kind()
    run = run_sink(sink, {}, {"in": ["a", "b", "c"]}, offsets={FIRST: 2})
    assert (sink.task.stored, run.offsets) == (["c"], {FIRST: 3})


@pytest.mark.parametrize(
    ("fault", "stored", "calls"),
    [
        (Fault.PUT, "abcd", ["start", "stop"]),
        (Fault.REBALANCE, "abcd", ["start", "stop"]),
        (Fault.COMMIT_LOST, "ababcd", ["start", "stop", "start", "stop"]),
        (Fault.COMMIT_UNANSWERED, "abcd", ["start", "stop", "start", "stop"]),
        (Fault.CRASH_BEFORE_COMMIT, "ababcd", ["start", "start", "stop", "stop"]),
        (Fault.CRASH_AFTER_COMMIT, "abcd", ["start", "start", "stop", "stop"]),
    ],
)
def test_what_is_not_committed_is_given_again(fault: Fault, stored: str, calls: list[str]) -> None:
    sink = kind()
    run = run_sink(sink, {}, {"in": list("abcd")}, fail_at={fault: 1}, batch=2)
    assert ("".join(sink.task.stored), sink.task.calls, run.offsets) == (stored, calls, {FIRST: 4})


@pytest.mark.parametrize(
    ("fault", "revoked"), [(Fault.REBALANCE, [0, 1]), (Fault.PARTIAL_REBALANCE, [0])]
)
def test_a_task_closes_what_is_revoked_and_keeps_the_rest(fault: Fault, revoked: list[int]) -> None:
    calls: list[tuple[str, list[int]]] = []

    def opens(self: Any, partitions: Collection[TopicPartition]) -> None:
        calls.append(("open", sorted(each.partition for each in partitions)))

    def closes(self: Any, partitions: Collection[TopicPartition]) -> None:
        calls.append(("close", sorted(each.partition for each in partitions)))

    sink = kind(open=opens, close=closes)
    topics = {
        "in": [
            Record(value, partition=n) for n, value in ((0, b"a"), (1, b"b"), (0, b"c"), (1, b"d"))
        ]
    }
    run = run_sink(sink, {}, topics, fail_at={fault: 2}, batch=1)
    assert sorted(sink.task.stored) == ["a", "b", "c", "d"]
    assert run.offsets == {FIRST: 2, TopicPartition("in", 1): 2}
    assert calls == [("open", [0, 1]), ("close", revoked), ("open", revoked), ("close", [0, 1])]


def test_a_record_that_the_sink_does_not_want_is_a_dead_letter() -> None:
    sink = kind()
    letters = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    run = run_sink(sink, letters, {"in": ["a", "bad", "c"]})
    assert (sink.task.stored, [(r.topic, r.value) for r in run.dead_letters]) == (
        ["a", "c"],
        [("dead", b"bad")],
    )


def test_what_the_task_raises_is_raised_or_is_the_state_of_the_run() -> None:
    def put(self: Any, records: Any) -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        run_sink(kind(put=put), {}, {"in": ["a"]})
    run = run_sink(kind(put=put), {}, {"in": ["a"]}, expect_failure=True)
    assert (run.state, run.offsets) == ("FAILED", {})
    with pytest.raises(ConnectctlError, match="Tolerance exceeded"):
        run_sink(kind(), JSON, {"in": ["not json"]})


def test_a_configuration_is_validated_as_by_a_run() -> None:
    with pytest.raises(BadInput, match=r"only one of topics or topics\.regex"):
        run_sink(kind(), {"topics.regex": "i.*"}, {"in": []})


def test_a_pause_that_the_task_asks_for_takes_no_time() -> None:
    class Later(Store):
        tries = 0

        def put(self, records: Sequence[SinkRecord]) -> None:
            self.tries += 1
            if records and self.tries < 4:
                self.context.timeout(3_600_000)
                raise RetriableError("the database is away")
            super().put(records)

    sink = kind(Later)
    run = run_sink(sink, {}, {"in": ["a"]})
    assert (sink.task.stored, run.offsets) == (["a"], {FIRST: 1})
    assert run.notes == ["put failed and is retried in 3600 s: the database is away"]


def test_a_sink_that_asks_for_the_same_records_for_a_day_is_not_waited_for() -> None:
    def put(self: Any, records: Sequence[SinkRecord]) -> None:
        self.context.timeout(60_000)
        raise RetriableError("away")

    with pytest.raises(
        TimedOut, match=r"RetriableError after 86400 s: put failed and is retried in 60 s: away"
    ):
        run_sink(kind(put=put), {}, {"in": ["a"]})


class Manifest(Store):
    """Names what it stored in the transaction of its offsets."""

    manifest = True

    def flush(self, offsets: GroupOffsets) -> None:
        """What is stored counts once it is named."""

    def transaction_records(self, offsets: GroupOffsets) -> Sequence[ProducerRecord]:
        return [ProducerRecord("manifest", None, str(row).encode()) for row in self.rows]

    def committed(self, offsets: GroupOffsets) -> None:
        self.rows.clear()


def test_records_of_a_sink_are_committed_with_its_offsets_exactly_once() -> None:
    def run(fail_at: Any) -> SinkRun:
        return run_sink(kind(Manifest), {}, {"in": list("abcde")}, fail_at=fail_at, batch=2)

    assert run({}).values("manifest") == [b"a", b"b", b"c", b"d", b"e"]
    assert check_exactly_once(run) > 1 + 3 * 4


def test_a_sink_is_given_records_after_their_transformations() -> None:
    stages = {
        "transforms": "filter,route,hoist",
        "transforms.filter.type": "Filter",
        "transforms.filter.predicate": "tombstone",
        "predicates": "tombstone",
        "predicates.tombstone.type": "RecordIsTombstone",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "all-$1",
        "transforms.hoist.type": "HoistField$Value",
        "transforms.hoist.field": "line",
    }
    topics: list[str] = []

    def put(self: Any, records: Sequence[SinkRecord]) -> None:
        topics.extend(record.topic for record in records)
        Store.put(self, records)

    sink = kind(put=put)
    run = run_sink(sink, stages, {"in": ["a", None, "b"]})
    assert (topics, sink.task.stored) == (["all-in"] * 2, [{"line": "a"}, {"line": "b"}])
    assert run.offsets == {FIRST: 3}
