"""Latencies as a histogram: quantiles that are never too low, and sums over leases and tasks."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any, cast

import pytest
from connectctl.ops.task_runtime.attempt.task_attempt import REPORT, TaskReport
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.job.scheduler import JobRun
from connectctl.ops.task_runtime.spi.latency_meter import (
    BUCKETS,
    MOST_POLLS,
    LatencyMeter,
    OpenPolls,
    bucket_of,
    edge,
    latency_metrics,
)
from connectctl.ops.task_runtime.spi.metrics import metrics
from connectctl.ops.task_runtime.spi.transaction_batch import TaskStats
from hypothesis import given
from hypothesis import strategies as st

TIMES = st.lists(st.floats(0.0002, 1000), min_size=1, max_size=200)


def meter(*seconds: float, promise: float | None = None) -> LatencyMeter:
    made = LatencyMeter(promise=promise)
    for each in seconds:
        made.committed([(each, 1)])
    return made


@given(TIMES, st.sampled_from([0.5, 0.99, 1.0]))
def test_a_quantile_is_never_too_low_and_at_most_a_sixteenth_of_a_doubling_too_high(
    times: list[float], share: float
) -> None:
    exact = sorted(times)[math.ceil(len(times) * share) - 1]
    found = meter(*times).quantile(share)
    assert found is not None
    assert exact * (1 - 1e-9) <= found <= exact * 2 ** (1 / 16) * (1 + 1e-9)


@given(TIMES, TIMES)
def test_what_two_leases_measured_adds_up_to_what_one_would_have_also_by_way_of_json(
    one: list[float], other: list[float]
) -> None:
    both = LatencyMeter()
    for part in (one, other):
        both.add(json.loads(json.dumps(asdict(meter(*part)))))
    whole = meter(*one, *other)
    assert (both.counts, both.longest, both.records) == (
        whole.counts,
        whole.longest,
        len(one) + len(other),
    )
    assert both.total == pytest.approx(whole.total)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-9, 0.0001, 0.1, 3600.0, 1e9])
def test_every_time_has_a_bucket_and_there_are_not_many(seconds: float) -> None:
    assert 0 <= bucket_of(seconds) <= BUCKETS
    assert edge(bucket_of(seconds)) >= seconds or bucket_of(seconds) == BUCKETS


def test_where_nothing_was_measured_nothing_is_told() -> None:
    empty = LatencyMeter()
    assert (empty.quantile(0.99), empty.broken) == (None, False)
    assert set(latency_metrics(empty, empty).values()) == {None}


def test_a_promise_is_broken_by_more_than_one_record_in_a_hundred_and_missed_by_each_late_transaction() -> (
    None
):
    kept = meter(*[0.05] * 99, 0.3, promise=0.1)
    assert (kept.broken, kept.missed) == (False, 1)
    broken = meter(*[0.05] * 98, 0.3, 0.3, promise=0.1)
    assert (broken.broken, broken.missed) == (True, 2)


def test_a_promise_that_was_kept_to_the_millisecond_is_not_broken_by_the_width_of_a_bucket() -> (
    None
):
    assert not meter(0.1, promise=0.1).broken


def test_prometheus_gets_rising_counts_that_hold_every_record_at_the_end() -> None:
    edges, counts = zip(*meter(0.001, 0.02, 0.02, 5.0).cumulative(), strict=True)
    assert list(counts) == sorted(counts)
    assert counts[-1] == 4
    assert dict(zip(edges, counts, strict=True))[0.0016] == 1


@given(st.lists(st.floats(0, 100), min_size=1, max_size=3 * MOST_POLLS))
def test_of_very_many_polls_no_record_is_lost_and_none_is_measured_too_short(
    gaps: list[float],
) -> None:
    polls, at = OpenPolls(), 0.0
    for gap in gaps:
        at += gap
        polls.add(at, 2)
    took = polls.took(at)
    assert len(took) < MOST_POLLS
    assert sum(records for _, records in took) == 2 * len(gaps)
    assert max(seconds for seconds, _ in took) == pytest.approx(at - gaps[0])


def test_reports_add_up_in_totals_and_the_time_between_two_statuses_is_reported_separately() -> (
    None
):
    clock, done = [0.0], cast("Any", None)
    run = JobRun({0: {}}, Until(), done, now=lambda: clock[0])
    for seconds in (0.2, 0.05):
        stats = TaskStats(latency=meter(seconds, promise=0.1))
        run.totals[0].add(TaskReport.parse(TaskReport.of(0, "stopped", stats).json))
        run.measure_latency()
        clock[0] += REPORT
        found = metrics(run.totals[0])
        assert found["poll-to-visible-last-p99-time-ms"] == pytest.approx(seconds * 1000, rel=0.045)
    assert found["poll-to-visible-p99-time-ms"] == found["poll-to-visible-max-time-ms"] == 200
    assert (found["latency-promise-ms"], found["latency-promise-missed-total"]) == (100, 1)
    run.measure_latency()
    assert metrics(run.totals[0])["poll-to-visible-last-p99-time-ms"] is None


def test_a_moment_between_two_statuses_has_no_latency_of_its_own() -> None:
    run = JobRun({0: {}}, Until(), cast("Any", None), now=lambda: 0.0)
    run.totals[0].add(TaskReport.of(0, "running", TaskStats(latency=meter(0.2))))
    run.measure_latency()
    run.measure_latency()
    assert metrics(run.totals[0])["poll-to-visible-last-p99-time-ms"] == 200


def test_a_run_merges_what_its_tasks_measured() -> None:
    done: object = None
    run = JobRun({0: {}, 1: {}}, Until(), done)  # type: ignore[arg-type]
    for number, seconds in ((0, 0.01), (1, 0.4)):
        stats = TaskStats(latency=meter(seconds, promise=0.1))
        run.totals[number].add(TaskReport.of(number, "ended", stats))
    assert (run.latency.records, run.latency.longest, run.latency.promise) == (2, 0.4, 0.1)
