"""``connectctl.testing.run_source``: what is committed with which offsets, over failures, and what
is refused.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.source import (
    ExactlyOnceSupport,
    RetriableError,
    Setting,
    SourceConnector,
    SourceRecord,
    SourceRecords,
    SourceTask,
    TransactionBoundaries,
)
from connectctl.testing import Fault, SourceRun, check_exactly_once, run_source

JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


class Count(SourceTask):
    """Numbers of ``of``, ``size`` in a poll; ``trace`` has the calls."""

    trace: list[str]
    fails_at = -1

    def start(self, configs: Mapping[str, str]) -> None:
        self.place = {"of": configs["of"]}
        stored = self.context.offsets.offset(self.place)
        self.next = stored["n"] + 1 if stored else 0
        self.configs = configs
        self.trace.append(f"start {configs['of']} at {self.next}")

    def poll(self) -> Sequence[SourceRecord] | SourceRecords | None:
        numbers = range(self.next, min(self.next + 2, int(self.configs["until"])))
        if self.fails_at in numbers:
            raise ValueError(f"no {self.fails_at}")
        self.next = max(self.next, numbers.stop)
        requests = self.context.transaction
        if requests is not None and numbers and numbers.stop % 4 == 0:
            requests.commit_transaction()
        return [SourceRecord(self.place, {"n": n}, "t", {"n": n}, key=f"k{n}") for n in numbers]

    def commit(self) -> None:
        self.trace.append("commit")

    def stop(self) -> None:
        self.trace.append("stop")


class Counting(SourceConnector):
    settings = (Setting("of", "names", required=True),)
    trace: list[str]

    @property
    def names(self) -> list[str]:
        return self.configs["of"].split(",")

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{"of": name, "until": self.configs.get("until", "5")} for name in self.names]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(
        self, configs: Mapping[str, str]
    ) -> TransactionBoundaries:
        return TransactionBoundaries.SUPPORTED


def kind(**task: Any) -> type[Counting]:
    made = type("Own", (Count,), {"trace": [], **task})
    return type("Kind", (Counting,), {"task": made, "trace": made.trace})  # type: ignore[attr-defined]


def numbers(run: SourceRun) -> list[int]:
    return [int(value.decode().split(":")[1].rstrip("}")) for value in run.values() if value]


def test_each_poll_is_a_commit_of_its_records_and_their_offset() -> None:
    run = run_source(kind(), {"of": "a"} | JSON)
    assert [[r.value for r in each.records] for each in run.commits] == [
        [b'{"n":0}', b'{"n":1}'],
        [b'{"n":2}', b'{"n":3}'],
        [b'{"n":4}'],
    ]
    assert [each.offsets for each in run.commits] == [[({"of": "a"}, {"n": n})] for n in (1, 3, 4)]
    assert (run.state, run.error, run.starts, run.records[0].key) == ("RUNNING", None, 1, b"k0")
    assert (run.occasions["poll"], run.occasions["commit"]) == (4, 3)


def test_a_run_begins_behind_the_offsets_that_are_given() -> None:
    first = run_source(kind(), {"of": "a", "until": "3"} | JSON)
    assert first.offsets == [({"of": "a"}, {"n": 2})]
    assert numbers(run_source(kind(), {"of": "a", "until": "6"} | JSON, offsets=first.offsets)) == [
        3,
        4,
        5,
    ]


def test_all_tasks_run_and_more_than_tasks_max_are_refused() -> None:
    run = run_source(kind(), {"of": "a,b", "tasks.max": "2"} | JSON)
    assert numbers(run) == [*range(5), *range(5)]
    assert {p["of"]: o["n"] for p, o in run.offsets} == {"a": 4, "b": 4}
    with pytest.raises(ConnectctlError, match="has generated 2 tasks, which is greater than 1"):
        run_source(kind(), {"of": "a,b"} | JSON)


def test_a_configuration_is_validated_as_by_a_run() -> None:
    with pytest.raises(BadInput, match='Missing required configuration "of"'):
        run_source(kind(), {})
    with pytest.raises(BadInput, match=r"transforms\.x\.type"):
        run_source(kind(), {"of": "a", "transforms": "x"})


def test_what_a_task_raises_is_raised_or_is_the_state_of_the_run() -> None:
    with pytest.raises(ValueError, match="no 2"):
        run_source(kind(fails_at=2), {"of": "a"} | JSON)
    run = run_source(kind(fails_at=2), {"of": "a"} | JSON, expect_failure=True)
    assert (run.state, str(run.error), numbers(run)) == ("FAILED", "no 2", [0, 1])


@pytest.mark.parametrize(
    ("fault", "starts", "trace"),
    [
        (
            Fault.CRASH_BEFORE_COMMIT,
            2,
            ["start a at 0", "start a at 0", "commit", "commit", "stop", "stop"],
        ),
        (Fault.CRASH_AFTER_COMMIT, 2, ["start a at 0", "start a at 2", "commit", "stop", "stop"]),
        (
            Fault.COMMIT_LOST,
            2,
            ["start a at 0", "stop", "start a at 0", "commit", "commit", "stop"],
        ),
        (Fault.COMMIT_UNANSWERED, 2, ["start a at 0", "stop", "start a at 2", "commit", "stop"]),
        (Fault.POLL, 1, ["start a at 0", "commit", "commit", "stop"]),
    ],
)
def test_after_a_failure_a_new_task_starts_behind_what_is_committed(
    fault: Fault, starts: int, trace: list[str]
) -> None:
    connector = kind()
    run = run_source(connector, {"of": "a", "until": "4"} | JSON, fail_at={fault: 1})
    assert (numbers(run), run.starts) == ([0, 1, 2, 3], starts)
    assert connector.trace == trace


@pytest.mark.parametrize("boundary", ["poll", "interval", "connector"])
def test_a_good_connector_is_exactly_once_with_each_boundary_of_transactions(boundary: str) -> None:
    config = {"of": "a,b", "until": "8", "tasks.max": "2", "transaction.boundary": boundary} | JSON
    runs = check_exactly_once(lambda fail_at: run_source(kind(), config, fail_at=fail_at))
    assert runs > 1 + 10


DISABLED = {"exactly.once.source.support": "disabled", "of": "a", "until": "6"} | JSON


def test_without_exactly_once_records_are_there_when_they_are_sent_and_offsets_follow() -> None:
    run = run_source(kind(), DISABLED)
    assert (numbers(run), run.offsets) == (list(range(6)), [({"of": "a"}, {"n": 5})])
    assert [(len(commit.records), len(commit.offsets)) for commit in run.commits] == [
        (2, 0)
    ] * 3 + [(0, 1)]


@pytest.mark.parametrize("fault", [Fault.COMMIT_LOST, Fault.CRASH_BEFORE_COMMIT])
def test_without_exactly_once_no_record_is_lost_and_some_come_again(fault: Fault) -> None:
    run = run_source(kind(), DISABLED, fail_at={fault: 1})
    assert (numbers(run), run.starts) == ([*range(6), *range(6)], 2)
    with pytest.raises(AssertionError, match="too many"):
        check_exactly_once(lambda fail_at: run_source(kind(), DISABLED, fail_at=fail_at))


def test_a_source_without_an_end_is_stopped() -> None:
    run = run_source(kind(), {"of": "a", "until": "1000000"} | JSON, polls=7)
    assert (numbers(run), run.state) == (list(range(14)), "RUNNING")


def test_an_error_that_lasts_ends_with_the_polls() -> None:
    def poll(self: Any) -> None:
        raise RetriableError("503")

    run = run_source(kind(poll=poll), {"of": "a"}, polls=20)
    assert (run.records, run.occasions["poll"]) == ([], 20)


def test_a_connector_that_asks_kafka_is_told_that_there_is_none() -> None:
    def start(self: Any, configs: Mapping[str, str]) -> None:
        self.context.target.layouts  # noqa: B018

    connector = type("Asks", (kind(),), {"start": start})
    with pytest.raises(
        ConnectctlError, match=r"connectctl.testing has no Kafka: context.target.layouts"
    ):
        run_source(connector, {"of": "a"})


def records(*given: SourceRecord) -> type[SourceConnector]:
    """A connector whose only task gives these records in its first poll."""

    class Once(SourceTask):
        def start(self, configs: Mapping[str, str]) -> None:
            self.left = [] if self.context.offsets.offset({"of": "a"}) else list(given)

        def poll(self) -> Sequence[SourceRecord]:
            some, self.left = self.left, []
            return some

    class Given(SourceConnector):
        task = Once

        def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
            return [{}]

    return Given


def record(value: str, **more: Any) -> SourceRecord:
    return SourceRecord({"of": "a"}, {"n": 1}, "t", value, **more)


def test_records_lie_where_the_partitioner_of_java_puts_their_keys() -> None:
    source = records(*(record(f"v{n}", key=f"k{n}") for n in range(300)))
    for given in ({}, {"producer.override.batch.size": "1000"}):
        run = run_source(source, given, partitions={"t": 7})
        assert all(r.partition == java_partition(r.key or b"", 7) for r in run.records)
        assert set(run.values()) == {f"v{n}".encode() for n in range(300)}
    assert {r.partition for r in run_source(source, {}).records} == {0}


def test_records_are_what_a_consumer_gets_of_them() -> None:
    run = run_source(records(record("v", key="k", headers=[("h", b"1")], timestamp=1700)), {})
    assert [(r.partition, r.key, r.value, r.headers, r.timestamp) for r in run.records] == [
        (0, b"k", b"v", (("h", b"1"),), 1700)
    ]
    before = time.time_ns() // 1_000_000
    (one,) = run_source(records(record("v")), {}).records
    assert before <= (one.timestamp or 0) <= time.time_ns() // 1_000_000


@pytest.mark.parametrize(
    ("given", "config", "message"),
    [
        (record("x" * 1_100_000), {}, "too large"),
        (record("x" * 2000), {"producer.override.max.request.size": "1000"}, "too large"),
        (record("x", partition=3), {}, "t has 1 partitions, and no partition 3"),
        (record("x", timestamp=-5), {}, "before 1970"),
    ],
)
def test_a_record_that_kafka_does_not_take_fails_the_task_and_nothing_is_committed(
    given: SourceRecord, config: dict[str, str], message: str
) -> None:
    run = run_source(records(record("first"), given), config, expect_failure=True)
    assert (run.state, run.commits, run.offsets) == ("FAILED", [], [])
    assert message in str(run.error)
