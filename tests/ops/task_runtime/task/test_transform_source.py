"""The loop of a transform against a group and producers that fail where they are told to: each
record's output once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.attempt.task_attempt import TaskLimits, TimeboxedSource
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.job.task_totals import TaskTotals
from connectctl.ops.task_runtime.spi.metrics import TaskMeter, metrics
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TaskResult, TaskStats
from connectctl.ops.task_runtime.spi.transform import Record, Records, Transform, connector_of
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.transactional_producer import Fenced, UnknownOutcome
from connectctl.ops.task_runtime.task.transform_output import OutputSettings
from connectctl.ops.task_runtime.task.transform_source import TransformSource
from depth import deep
from fakes.consumergroup import Group, Member, Message, Producer
from hypothesis import given, settings
from hypothesis import strategies as st

PLACES = [TopicPartition("in", n) for n in range(3)]
DOUBTS: list[Callable[[], Exception]] = [
    lambda: UnknownOutcome("no answer"),
    lambda: TimedOut("late"),
]


class Upper(Transform):
    def process(self, records: Records) -> Any:
        return [Record((r.value or b"").upper()) for r in records]


def group(count: int = 7, **more: Any) -> Group:
    return Group({p: [b"%d-%d" % (p.partition, n) for n in range(count)] for p in PLACES}, **more)


def run(
    kafka: Group,
    *,
    interval: float = 0.3,
    most: int = 2,
    meter: TaskMeter | None = None,
    counts: TaskStats | None = None,
    kind: Callable[[], Transform] = Upper,
) -> TaskResult:
    """Run until everything that is the member's is read."""
    ticks = iter(range(10**9))
    members: list[Member] = []

    def opened() -> Member:
        members.append(Member(kafka))
        return members[-1]

    stats = counts or TaskStats()
    meter = meter or stats.meter
    source = TransformSource(
        kind, {}, OutputSettings("out"), interval, most, meter, lambda: next(ticks) * 0.1
    )
    ledger = GroupLedger(opened, 1.0)
    task = AttemptLoop(
        lambda: Producer(kafka),  # type: ignore[arg-type,return-value]
        ledger,
        # A member that could not join has read nothing, and may have everything to read.
        stopped=lambda: bool(members) and members[-1].generation >= 0 and not source.has_more,
        sleep=lambda seconds: None,
        patience=1e9,
        stats=stats,
    )
    line: Any = SimpleNamespace(
        send=lambda report: None, stopped=False, lease_over=False, connected=True, attempt=""
    )
    line.last_line = time.monotonic()
    leased = TimeboxedSource(source, 0, stats, TaskLimits(1000.0), line)
    try:
        return task.run(source if counts is None else leased)
    finally:
        source.close()
        ledger.close()


def whole(kafka: Group) -> None:
    """Every record of the input was written once, each partition in its order."""
    for place, data in kafka.input.items():
        own = [v for v in kafka.output if v.startswith(b"%d-" % place.partition)]
        assert own == data[: kafka.offsets.get(place, 0)]
    assert len(kafka.output) == sum(kafka.offsets.values())


def test_each_record_is_written_once_with_the_offsets_behind_it() -> None:
    kafka = group()
    ran = run(kafka)
    assert (ran.reason, ran.stats.records) == (EndReason.STOPPED, 21)
    assert kafka.offsets == dict.fromkeys(PLACES, 7)
    whole(kafka)


def test_several_polls_are_one_transaction_until_the_interval_is_over() -> None:
    quick, slow = group(40), group(40)
    assert run(slow, interval=1.0).stats.transactions < run(quick, interval=0.1).stats.transactions


@pytest.mark.parametrize("script", [{}, {2: "revoke"}])
def test_what_it_reads_is_counted_and_what_is_left_is_its_lag(script: dict[int, str]) -> None:
    meter = TaskMeter()
    kafka = group(script=script)
    run(kafka, meter=meter)
    assert meter.read == meter.read_settled == sum(kafka.offsets.values())
    assert meter.polled == 0  # what it writes is counted as it is polled
    assert meter.lag == 0


class Twice(Transform):
    def process(self, records: Records) -> Any:
        return [Record(r.value or b"") for r in records for _ in range(2)]


def test_what_it_reads_and_what_it_writes_are_counted_apart() -> None:
    kafka, stats = group(), TaskStats()
    run(kafka, counts=stats, kind=Twice)
    found = metrics(TaskTotals(records=stats.records, meter=stats.meter))
    assert (found["sink-record-read-total"], found["sink-record-active-count"]) == (21, 0)
    assert [found[f"source-record-{which}"] for which in ("poll-total", "write-total")] == [42, 42]
    assert found["source-record-active-count"] == 0


@given(
    st.integers(1, 60),
    st.sampled_from(DOUBTS),
    st.booleans(),
    st.dictionaries(st.integers(1, 6), st.sampled_from(["revoke", "lost"]), max_size=2),
)
@settings(deadline=None, max_examples=deep(200, 50))
def test_whatever_call_fails_and_whenever_partitions_go_each_record_is_there_once(
    fail_at: int, doubt: Callable[[], Exception], commit_anyway: bool, script: dict[int, str]
) -> None:
    kafka = group(fail={fail_at: doubt}, commit_anyway=commit_anyway, script=script)
    run(kafka)
    whole(kafka)
    kafka.away.clear()
    kafka.script.clear()
    run(kafka)  # the next owner of what was taken reads nothing again
    assert kafka.offsets == dict.fromkeys(PLACES, 7)
    whole(kafka)


def test_a_revocation_commits_what_was_made_of_the_records_before_it() -> None:
    kafka = group(script={2: "revoke"})
    run(kafka, interval=100.0)
    assert kafka.offsets[PLACES[0]] == 2  # of one poll
    whole(kafka)


def test_of_two_attempts_the_older_ends_and_writes_nothing_more() -> None:
    kafka = group(fail={4: lambda: Fenced("a newer one")})
    assert run(kafka).reason is EndReason.FENCED
    whole(kafka)


def test_records_may_be_given_as_objects_as_columns_and_as_frames() -> None:
    messages = [Message(PLACES[0], n, b"%d" % n) for n in range(3)]
    records, to = Records(messages), OutputSettings("out")
    as_objects = to.records(list(records))
    assert [r.value for r in as_objects] == [b"0", b"1", b"2"]
    assert (
        as_objects
        == to.records(records.arrow)
        == to.records(records.pandas)
        == to.records([records.pandas])
    )
    assert to.records(None) == []


def test_without_an_output_topic_a_record_names_its_own_and_never_one_that_is_read() -> None:
    to = OutputSettings(None, lambda topic: topic == "in")
    (written,) = to.records(Record(b"v", topic="a", partition=3))
    assert (written.topic, written.partition) == ("a", 3)
    with pytest.raises(ConnectctlError, match="without a topic"):
        to.records(Record(b"v"))
    with pytest.raises(ConnectctlError, match="which it reads"):
        to.records(Record(b"v", topic="in"))


@pytest.mark.parametrize(
    "made", [7, "text", {"value": 1}, pa.table({"v": [b"1"]}), pa.table({"value": [1], "x": [2]})]
)
def test_what_is_no_record_is_refused_in_one_line(made: Any) -> None:
    with pytest.raises(ConnectctlError, match=r"The transform returned|of a record is") as told:
        OutputSettings("out").records(made)
    assert "\n" not in str(told.value)


def test_a_function_of_frames_is_called_for_each_partition() -> None:
    seen = []

    def first(frame: Any) -> Any:
        seen.append(set(frame.partition))
        return frame.head(1)

    kind = connector_of(first)
    assert kind is not None
    made = kind.task().process(Records([Message(p, n, b"x") for n in range(2) for p in PLACES]))
    assert seen == [{0}, {1}, {2}]
    assert len(OutputSettings("out").records(made)) == 3
