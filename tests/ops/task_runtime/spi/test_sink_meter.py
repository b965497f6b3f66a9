"""A sink's metrics are Connect's, by name and by unit."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter, sink_metrics


def test_nothing_measured_is_not_zero() -> None:
    found = sink_metrics(SinkMeter(), 0, 0)
    assert {name for name, value in found.items() if value is None} == {
        "put-batch-max-time-ms",
        "put-batch-avg-time-ms",
        "batch-size-max",
        "batch-size-avg",
        "offset-commit-max-time-ms",
        "offset-commit-avg-time-ms",
        "offset-commit-success-percentage",
        "offset-commit-failure-percentage",
    }


def test_times_are_milliseconds_and_shares_of_one() -> None:
    meter = SinkMeter()
    meter.put(0, 9.0)
    meter.put(10, 0.25)
    meter.put(20, 0.75)
    meter.committed(0.5)
    with pytest.raises(ValueError, match="x"), meter.committing():
        raise ValueError("x")
    found = sink_metrics(meter, 3, 2)
    assert (found["put-batch-max-time-ms"], found["put-batch-avg-time-ms"]) == (750, 500)
    assert (found["batch-size-max"], found["batch-size-avg"]) == (20, 15)
    assert (found["offset-commit-max-time-ms"], found["offset-commit-success-percentage"]) == (
        500,
        0.5,
    )
    assert (found["sink-record-active-count"], found["partition-count"]) == (3, 2)


def test_leases_add_up() -> None:
    whole = SinkMeter()
    for seconds in (0.25, 0.75, 0.5):
        lease = SinkMeter(read=5, failures=2, skipped=1)
        lease.put(4, seconds)
        whole.add(asdict(lease))
    assert (whole.read, whole.sent, whole.put_time, whole.longest_put) == (15, 12, 1.5, 0.75)
    assert sink_metrics(whole, 0, 0)["total-record-errors"] == 3
