"""A generation starts while Spark reads the frame: no task is told of one that has not, and
failures are the caller's.
"""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.attempt import control_channel
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.dataframe import generation_start
from connectctl.ops.task_runtime.dataframe.api import Target, spec_of_task
from connectctl.ops.task_runtime.dataframe.generation_start import GenerationStart, with_generation
from connectctl.ops.task_runtime.job.config_topic_records import Generation

GENERATION = Generation("g-configs", "c", 7, read_to=9)
REACHED = {"primary": KnownEnds("id", (3, 0, 5))}
SPEC: TaskSpec = spec_of_task(Target({}, "g", "c", "t", "o", ("source",), "n"))


class Kafka:
    """A start that lasts until ``go``, and what it comes to."""

    def __init__(self, end: Generation | Exception = GENERATION):
        self.go = threading.Event()
        self.cancelled = threading.Event()
        self._end = end

    def start(self) -> Generation:
        assert self.go.wait(60)
        if isinstance(self._end, Exception):
            raise self._end
        return self._end

    def opened(self) -> Any:
        return closing(
            GenerationStart("localhost", None, self.start, lambda: REACHED, self.cancelled.set)
        )


@pytest.fixture(autouse=True)
def asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_start, "PATIENCE", 0.01)


def test_a_task_waits_for_its_generation_however_often_the_driver_has_none_yet() -> None:
    kafka, told = Kafka(), list[TaskSpec]()
    with kafka.opened() as started:
        asked = threading.Event()
        said = started._status

        def noted() -> dict[str, Any]:
            answer: dict[str, Any] = said()
            if not answer:
                asked.set()
            return answer

        started._status = noted
        task = threading.Thread(target=lambda: told.append(with_generation(SPEC, started.address)))
        task.start()
        assert asked.wait(60)
        assert not told
        kafka.go.set()
        task.join(60)
        assert started.during(lambda: "done") == "done"
    assert told == [replace(SPEC, generation=GENERATION, reached=REACHED)]
    assert told[0].generation.read_to == 9
    assert not kafka.cancelled.is_set()


def test_where_it_does_not_start_the_caller_gets_the_reason_and_tasks_write_nothing() -> None:
    kafka = Kafka(Refused("Group g has live workers"))
    kafka.go.set()
    with kafka.opened() as started:
        assert kafka.cancelled.wait(60)
        with pytest.raises(ConnectctlError, match="The tasks were not started"):
            with_generation(SPEC, started.address)
        with pytest.raises(Refused, match="live workers"):
            started.during(lambda: "reports of tasks that failed")


def test_what_a_start_raises_comes_before_what_its_cancelled_jobs_raise() -> None:
    kafka = Kafka(Refused("Group g has live workers"))

    def cancelled() -> None:
        kafka.go.set()
        assert kafka.cancelled.wait(60)
        raise RuntimeError("Job 3 cancelled")

    with kafka.opened() as started, pytest.raises(Refused, match="live workers"):
        started.during(cancelled)


def test_what_spark_raises_is_raised_behind_a_start_that_succeeds() -> None:
    kafka = Kafka()

    def broken() -> None:
        kafka.go.set()
        raise RuntimeError("no such file")

    with kafka.opened() as started, pytest.raises(RuntimeError, match="no such file"):
        started.during(broken)


def test_a_start_that_timed_out_is_over_and_not_still_on_its_way() -> None:
    kafka = Kafka(TimeoutError("no answer"))
    kafka.go.set()
    with kafka.opened() as started:
        assert kafka.cancelled.wait(60)
        with pytest.raises(ConnectctlError, match="The tasks were not started"):
            with_generation(SPEC, started.address)


def test_a_task_of_a_call_that_is_over_hears_of_no_generation() -> None:
    kafka = Kafka()
    kafka.go.set()
    with kafka.opened() as started:
        address = started.address
    with pytest.raises(ConnectctlError, match="Lost connection to the Spark driver"):
        with_generation(SPEC, address)


def test_who_does_not_know_the_word_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_channel, "GREETING", 1.0)
    kafka = Kafka()
    kafka.go.set()
    with kafka.opened() as started:
        stranger = DriverAddress(started.address.host, started.address.port, "guessed")
        with pytest.raises(ConnectctlError, match="Lost connection to the Spark driver"):
            with_generation(SPEC, stranger)
        with socket.create_connection((stranger.host, stranger.port)) as line:
            line.sendall(b"[]\n")
            assert line.recv(100) == b""
