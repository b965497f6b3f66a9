"""A task's metrics by Connect's names, from what a kernel and a polled task count."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.task_runtime.attempt.task_attempt import TaskReport
from connectctl.ops.task_runtime.job.task_totals import TaskTotals
from connectctl.ops.task_runtime.spi.boundaries import End
from connectctl.ops.task_runtime.spi.metrics import Metrics, TaskMeter, metrics
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult, TaskStats
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.polledsource import Broker, run
from hypothesis import given
from hypothesis import strategies as st


def of(*leases: TaskResult) -> Metrics:
    total = TaskTotals()
    for ended in leases:
        total.add(TaskReport.of(0, ended.reason.value, ended.stats))
    return metrics(total)


def test_a_task_that_did_nothing_has_totals_of_zero_and_no_sizes_or_times() -> None:
    found = metrics(TaskTotals())
    assert {name for name, value in found.items() if value == 0} == {
        "source-record-poll-total",
        "source-record-write-total",
        "source-record-active-count",
        "source-record-active-count-max",
        "global-offset-write-failure-total",
        "global-offset-unwritten-count",
        "total-record-failures",
        "total-record-errors",
        "total-records-skipped",
        "total-retries",
        "total-errors-logged",
        "deadletterqueue-produce-requests",
        "transform-record-filtered-total",
    }
    assert {value for name, value in found.items() if value != 0} == {None}


def test_sizes_of_transactions_and_batches_and_the_totals_of_records() -> None:
    found = of(run(Broker()))  # ten records in batches of three, each a transaction
    assert [found[f"transaction-size-{which}"] for which in ("min", "avg", "max")] == [1, 2.5, 3]
    assert (found["batch-size-max"], found["batch-size-avg"]) == (3, 2.5)
    assert (found["source-record-poll-total"], found["source-record-write-total"]) == (10, 10)
    assert (found["source-record-active-count"], found["source-record-active-count-max"]) == (0, 3)


def test_a_copy_has_metrics_of_its_batches_and_of_what_its_source_had_lost() -> None:
    meter = TaskMeter(lost=7, partitions=4)
    for unopened, batches in ((True, 1), (True, 1), (False, 30)):
        meter.batch(unopened, batches)
    totals = TaskTotals(meter=TaskMeter())
    assert "copy-batch-opened-total" not in metrics(totals)
    totals.meter.add(asdict(meter))
    totals.meter.add(asdict(meter))
    found = metrics(totals)
    names = ("copy-batch-unopened-total", "copy-batch-opened-total", "copy-offset-lost-total")
    assert [found[name] for name in names] == [4, 60, 14]
    assert found["copy-partition-count"] == 4


def test_times_are_there_once_there_was_a_batch_and_a_commit() -> None:
    found = of(run(Broker()))
    for name in ("poll-batch", "offset-commit"):
        most, mean = found[f"{name}-max-time-ms"], found[f"{name}-avg-time-ms"]
        assert most is not None
        assert mean is not None
        assert 0 <= mean <= most


def test_records_of_an_aborted_transaction_are_written_and_its_offsets_are_a_transaction_without_records() -> (
    None
):
    found = of(run(Broker(), Boundary.CONNECTOR, asks={5: End.ABORT, 9: End.COMMIT}))
    assert (found["source-record-poll-total"], found["source-record-write-total"]) == (10, 10)
    assert [found[f"transaction-size-{which}"] for which in ("min", "avg", "max")] == [0, 2, 4]


def test_a_commit_that_fails_has_its_share_and_its_records_are_polled_again() -> None:
    broker = Broker()
    broker.doubt_at = 2
    found = of(run(broker))
    assert (
        found["offset-commit-failure-percentage"],
        found["offset-commit-success-percentage"],
    ) == (0.2, 0.8)
    assert (found["source-record-poll-total"], found["source-record-write-total"]) == (13, 10)
    assert found["source-record-active-count"] == 0


def test_what_was_polled_and_never_ended_is_active_to_the_last() -> None:
    assert of(run(Broker(), Boundary.CONNECTOR))["source-record-active-count"] == 10


def test_leases_add_up_and_extremes_stay_extremes() -> None:
    one = of(run(Broker()))
    both = of(run(Broker()), run(Broker()))
    for name in ("source-record-poll-total", "source-record-write-total"):
        assert both[name] == 2 * (one[name] or 0)
    for name in (
        "transaction-size-min",
        "transaction-size-max",
        "transaction-size-avg",
        "batch-size-max",
    ):
        assert both[name] == one[name]


def test_refusals_of_the_global_offsets_topic_add_up_and_what_it_lacks_is_that_of_the_last_lease() -> (
    None
):
    total = TaskTotals()
    for left in (["a", "b"], ["a"]):
        stats = TaskStats(
            meter=TaskMeter(global_failures=3), unwritten=left, unwritten_because="refused"
        )
        total.add(TaskReport.parse(TaskReport.of(0, "stopped", stats).json))
    assert metrics(total)["global-offset-write-failure-total"] == 6
    assert metrics(total)["global-offset-unwritten-count"] == 1
    assert (list(total.unwritten), total.unwritten_because) == (["a"], "refused")


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=20))
def test_what_is_active_is_what_was_polled_and_is_not_settled(
    batches: list[tuple[int, bool]],
) -> None:
    counts, active = TaskStats(), 0
    for size, committed in batches:
        counts.meter.poll(size, 0.1)
        active += size
        if committed:
            counts.commit(active)
            active = 0
        assert counts.meter.active == active
    summed = TaskMeter()
    summed.add(asdict(counts.meter))
    assert summed == counts.meter


def test_an_attempt_that_raises_is_a_failure_and_takes_no_time() -> None:
    meter = TaskMeter()
    with pytest.raises(UnknownOutcome), meter.committing():
        raise UnknownOutcome("no answer")
    assert (meter.commits, meter.failed_commits, meter.commit_time) == (0, 1, 0.0)


def test_a_member_of_a_group_has_its_lag_its_transactions_and_how_long_it_waits() -> None:
    meter = TaskMeter(lag=70, read=9, read_settled=6)
    total = TaskTotals(transactions=4, aborted=1, waited=1.5, meter=meter)
    assert metrics(total) == metrics(TaskTotals(transactions=4, aborted=1)) | {
        "sink-record-read-total": 9,
        "sink-record-active-count": 3,
        "records-lag": 70,
        "transaction-total": 4,
        "transaction-abort-total": 1,
        "waiting-time-ms": 1500,
    }


def test_the_lag_is_that_of_the_last_lease_and_unknown_where_that_told_none() -> None:
    meter = TaskMeter()
    meter.add(asdict(TaskMeter(lag=5, polled=2)))
    meter.add(asdict(TaskMeter(lag=3, polled=2)))
    assert (meter.lag, meter.polled) == (3, 4)
    meter.add(asdict(TaskMeter()))
    assert meter.lag is None
