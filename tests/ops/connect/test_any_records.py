"""Whatever lies in a config, status or offsets topic, and whatever members of a group say, is
survived.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.librdkafka.client import member_of
from connectctl.ops.config import ignored_input
from connectctl.ops.connect import config_topic, status_topic
from connectctl.ops.connect.connect_protocol import (
    ConnectGroup,
    decode_assignment,
    decode_current,
    decode_metadata,
)
from connectctl.ops.connect.connector import statuses_from_topic
from connectctl.ops.connect.internal_topics import classify, config_topic_signals
from connectctl.ops.connect.source_keys import owner_of, owners_of, parse_key
from connectctl.ops.connect.source_offsets import read_offset, worker_reads
from connectctl.ops.connect.task_config_commits import lost_task_configs
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.operations.connectors.config.history import topic_versions
from connectctl.ops.operations.connectors.observe import assembled, with_health
from connectctl.ops.operations.fencing.observe import task_id_ranges
from connectctl.ops.task_runtime.job.config_topic_records import config_topic_state
from connectctl.ops.task_runtime.job.status_topic import statuses_from
from fakes.anyjson import encodings
from fakes.kafkareads import records
from hypothesis import given
from hypothesis import strategies as st

CONFIG = {"properties": {"connector.class": "x.Source", "tasks.max": "1", "name": "a"}}
STATUS = {
    "state": "RUNNING",
    "trace": None,
    "worker_id": "w:8083",
    "generation": 1,
    "version": "4.3.1",
    "metrics": {"n": 1},
}
VALID: dict[str, Any] = {
    "connector-a": CONFIG,
    "task-a-0": CONFIG,
    "commit-a": {"tasks": 1},
    "target-state-a": {"state": "PAUSED", "state.v2": "STOPPED"},
    "tasks-fencing-a": {"task-count": 1},
    "session-key": {"key": "a2V5", "algorithm": "HmacSHA256", "creation-timestamp": 1},
    "restart-connector-a": {"include-tasks": True, "only-failed": False},
    "logger-cluster-a": {"level": "INFO"},
    "status-connector-a": STATUS,
    "status-task-a-0": STATUS,
    "status-topic-t:connector-a": {
        "topic": {"name": "t", "connector": "a", "task": 0, "discoverTimestamp": 1}
    },
    '["a",{"p":1}]': {"position": 3},
}
ODD_TASKS = ["task-a-²", "task-a-" + "9" * 5000, "task-a-", "task--1", "status-task-a-²"]
ODD_KEYS = [*ODD_TASKS, "connector-", "commit-", '["a",1]', ""]


@pytest.fixture(autouse=True)
def nothing_ignored_yet() -> None:
    ignored_input.take()


@st.composite
def topics(draw: Any) -> list[ConsumerRecord]:
    """Records of valid and odd keys, each with a valid value, a mutated one, or none."""
    found = []
    for offset in range(draw(st.integers(1, 8))):
        key = draw(st.sampled_from([*VALID, *ODD_KEYS]))
        text = key.encode()
        raw = draw(
            st.one_of(
                st.none(), st.sampled_from([text, text, text + b"\xff"]), encodings(["a", {"p": 1}])
            )
        )
        value = draw(st.one_of(st.none(), encodings(VALID.get(key, CONFIG))))
        found.append(ConsumerRecord(raw, value, 0, offset, draw(st.sampled_from([None, 1]))))
    return found


@given(found=topics())
def test_records_of_any_kind_are_read_or_ignored(found: list[ConsumerRecord]) -> None:
    state = config_topic.parse(found, "cfg")
    image = TopicImage("cfg", len(found), tuple(found[1:]), {0: 9}, superseded=tuple(found[:1]))
    for each in (state, config_topic.state_of(image)):
        health = with_health(assembled(each.connectors, statuses_from_topic(found, "cfg")), None)
        assert [h.name for h in health] == sorted(each.connectors)
        assert all(str(h.verdict) for h in health)
        assert all(c.looks_like in (None, "source", "sink") for c in each.connectors.values())
        assert all(len(c.task_configs) <= c.task_count for c in each.connectors.values())
        config_topic_signals("cfg", each, 1)
    list(lost_task_configs(found, 1.0))
    task_id_ranges(found)
    topic_versions(found, "a")
    assert config_topic_state(found, "a").transactional_ids >= 0
    assert all(isinstance(s.metrics, dict | None) for s in statuses_from(found, "a").values())
    status_topic.topics(found)
    classify("cfg", found)
    owners_of([record.key for record in found])


@given(found=topics())
def test_offsets_of_any_kind_are_read_or_ignored(found: list[ConsumerRecord]) -> None:
    for record in found:
        key, offset = parse_key(record.key), read_offset(record)
        owner_of(record.key)
        if not isinstance(key, str):
            worker_reads(key, offset, None, has_dedicated=False)


@given(
    data=st.binary(max_size=60)
    | st.binary(max_size=60).map(lambda tail: b"\x00\x02\x00\x03a:1" + tail)
)
def test_metadata_and_assignments_of_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_metadata, decode_current, decode_assignment):
        try:
            decode(data)
        except ValueError:
            continue
    member = member_of(
        "g", SimpleNamespace(metadata=data, assignment=data, id="m", client_id="c", client_host="h")
    )
    assert ConnectGroup("g", "Stable", "sessioned", (member,)).owners is not None


BAD = [{"tasks": value} for value in (None, "a", "1", [1], True, 1.0, -1, 10**9)]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_commit_that_workers_cannot_read_is_ignored_and_named(bad: dict[str, Any]) -> None:
    found = records(("connector-a", CONFIG), ("task-a-0", CONFIG), ("commit-a", bad))
    state = config_topic.parse(found, "cfg")
    (finding,) = state.findings
    assert (finding.id, finding.subject) == ("RECORD001", "cfg-0@2")
    assert "'commit-a'" in finding.message
    assert "tasks is" in finding.message
    assert state.connectors["a"].unread == {config_topic.COMMIT}
    assert finding in ignored_input.take()


def test_the_record_before_one_that_is_ignored_counts_as_with_workers() -> None:
    told = records(
        ("connector-a", CONFIG),
        ("commit-a", {"tasks": 3}),
        ("target-state-a", {"state": "PAUSED", "state.v2": "STOPPED"}),
        ("commit-a", {"tasks": None}),
        ("target-state-a", {"state": "STARTED", "state.v2": 1}),
        ("connector-a", {"properties": "none"}),
    )
    image = TopicImage("cfg", 6, tuple(told[3:]), {0: 6}, superseded=tuple(told[:3]))
    found = config_topic.state_of(image).connectors["a"]
    assert (found.task_count, found.target_state, found.config) == (
        3,
        "STOPPED",
        CONFIG["properties"],
    )
    assert found.unread == frozenset()


def test_what_a_newer_record_supersedes_does_not_matter() -> None:
    told = records(
        ("commit-a", {"tasks": None}),
        ("connector-a", CONFIG),
        ("task-a-0", CONFIG),
        ("commit-a", {"tasks": 1}),
    )
    image = TopicImage("cfg", 4, tuple(told[1:]), {0: 4}, superseded=tuple(told[:1]))
    state = config_topic.state_of(image)
    assert (state.connectors["a"].task_count, state.findings) == (1, ())
    assert list(lost_task_configs(told, 9e9)) == []


@pytest.mark.parametrize("number", ["²", "9" * 5000, "2147483648", "", "x"], ids=lambda n: n[:10])
def test_a_key_that_names_no_task_is_ignored(number: str) -> None:
    told = records(
        ("connector-a", CONFIG), (f"task-a-{number}", CONFIG), ("commit-a", {"tasks": 0})
    )
    state = config_topic.parse(told, "cfg")
    assert ["names no task" in finding.message for finding in state.findings] == [True]


def test_a_status_that_workers_ignore_does_not_hide_the_one_before() -> None:
    told = records(
        ("status-connector-a", STATUS), ("status-connector-a", STATUS | {"state": "SLEEPING"})
    )
    assert statuses_from_topic(told, "st")["a", -1].state == "RUNNING"
    assert [f.subject for f in ignored_input.take()] == ["st-0@1"]
