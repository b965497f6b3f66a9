"""Records of polled tasks that a real broker refuses, and topics that take small batches only."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.task_runtime.attempt import task_attempt
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress
from connectctl.ops.task_runtime.attempt.task_attempt import FAILED, TaskLimits, TaskReport
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.job.config_topic_records import Generation
from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.generation_check import GenerationCheck
from live.real import create_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NOBODY = DriverAddress("127.0.0.1", 1, "word")
NOW = 1_700_000_000_000


class Task(SourceTask):
    """Gives twenty records for each of ``topics``, one poll each; number 7 of the last one is
    ``bad``.
    """

    def start(self, configs: Any) -> None:
        self._topics = [
            t for t in configs["topics"].split(",") if not self.context.offsets.offset({"topic": t})
        ]
        self._configs = configs

    def poll(self) -> list[SourceRecord]:
        topic = self._topics.pop(0)
        found = [
            SourceRecord(
                {"topic": topic},
                {"n": n},
                topic,
                "small",
                timestamp=int(self._configs.get("at", 0)) or None,
            )
            for n in range(20)
        ]
        if not self._topics and self._configs["bad"] == "time":
            found[7].timestamp = 9_999_999_999_999
        if not self._topics and self._configs["bad"] == "size":
            found[7].value = "x" * 3000
        return found

    @property
    def finished(self) -> bool:
        return not self._topics


class Source(SourceConnector):
    task = Task

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{}]


def run(
    cluster: Sandbox, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], **topic: str
) -> tuple[TaskReport, str]:
    """What came of the task, and the topic that is created with these settings, which it writes to
    last.
    """
    monkeypatch.setattr(GenerationCheck, "stale_because", lambda self: None)
    name = f"unfit-{secrets.token_hex(4)}"
    bootstrap = cluster.bootstrap_servers
    first = create_topic(bootstrap, f"{name}-any", 1, "delete")
    last = create_topic(
        bootstrap, name, 1, "delete", config={k.replace("_", "."): v for k, v in topic.items()}
    )
    offsets = create_topic(bootstrap, f"{name}-offsets")
    client = {"bootstrap.servers": bootstrap}
    path = f"{__name__}:Source"
    text = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    how = delivery_settings(config)
    generation = Generation("configs", name, 0)
    work = TaskSpec(
        "g", name, path, config | text, generation, client, client, offsets, None, how, 30.0, 30.0
    )
    return task_attempt.run(
        work, 0, config | {"topics": f"{first},{last}"}, TaskLimits(60.0), NOBODY
    ), last


@pytest.mark.drawn(each="config")
@pytest.mark.parametrize("support", ["enabled", "disabled"])
@pytest.mark.parametrize(
    ("config", "topic", "said"),
    [
        (
            {"bad": "time", "at": str(NOW)},
            {"message_timestamp_after_max_ms": "1000"},
            "was rejected by the broker: .*imestamp",
        ),
        ({"bad": "size"}, {"max_message_bytes": "2000"}, "is too large: .*Raise max.message"),
    ],
    ids=["timestamp", "size"],
)
def test_a_record_that_kafka_does_not_take_is_named_at_once(
    cluster: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    support: str,
    config: dict[str, str],
    topic: dict[str, str],
    said: str,
) -> None:
    report, last = run(
        cluster, monkeypatch, config | {"exactly.once.source.support": support}, **topic
    )
    assert report.reason == FAILED, report
    assert report.detail is not None
    assert report.detail.startswith(f'The record of {{"topic":"{last}"}} at {{"n":7}} ')
    assert re.search(said, report.detail), report.detail
    assert "Call it again" not in report.detail
    assert "\n" not in report.detail


def test_a_topic_that_takes_small_batches_gets_small_batches(
    cluster: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty records of 100 bytes and their headers make more than 2,000 bytes."""
    monkeypatch.setattr(Task, "poll", _many(Task.poll))
    report, _ = run(cluster, monkeypatch, {"bad": "no"}, max_message_bytes="2000")
    assert (report.reason, report.records, report.doubts, report.instances) == (
        EndReason.ENDED,
        2 * 20,
        0,
        2,
    ), report


def _many(poll: Any) -> Any:
    def polled(self: Any) -> Any:
        found = poll(self)
        for record in found:
            record.value = "x" * 500
        return found

    return polled
