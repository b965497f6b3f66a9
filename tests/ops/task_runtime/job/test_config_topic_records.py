"""A connector's tasks in a config topic: Connect's own bytes, and which generation is the
newest.
"""

from __future__ import annotations

from connectctl.ops.connect import config_topic
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.task_runtime.job.config_topic_records import (
    ConfigTopicState,
    Generation,
    KeyValue,
    config_topic_state,
    count_record,
    task_set,
)
from hypothesis import given
from hypothesis import strategies as st

CONFIG = {"connector.class": "FileStreamSource", "tasks.max": "2", "name": "c-1"}
TASKS = [{"n": "0"}, {"n": "1"}]


def log(*sets: list[KeyValue]) -> list[ConsumerRecord]:
    """The records as a topic has them: every transaction is followed by a marker."""
    found, offset = [], 0
    for records in sets:
        for key, value in records:
            found.append(ConsumerRecord(key, value, 0, offset))
            offset += 1
        offset += 1
    return found


def target(state: str, name: str = "c-1") -> list[KeyValue]:
    old = "STARTED" if state == "STARTED" else "PAUSED"
    return [(f"target-state-{name}".encode(), f'{{"state":"{old}","state.v2":"{state}"}}'.encode())]


def test_a_set_of_task_configs_is_written_as_connect_writes_it() -> None:
    assert task_set("c-1", CONFIG, TASKS) == [
        (
            b"connector-c-1",
            b'{"properties":{"connector.class":"FileStreamSource","tasks.max":"2","name":"c-1"}}',
        ),
        (b"task-c-1-0", b'{"properties":{"n":"0"}}'),
        (b"task-c-1-1", b'{"properties":{"n":"1"}}'),
        (b"commit-c-1", b'{"tasks":2}'),
    ]
    assert count_record("c-1", 2) == [(b"tasks-fencing-c-1", b'{"task-count":2}')]


def test_what_is_written_is_read_as_a_worker_reads_it() -> None:
    records = log(task_set("c-1", CONFIG, TASKS), count_record("c-1", 2))
    worker = config_topic.parse(records, "t").connectors["c-1"]
    assert (worker.task_count, worker.task_count_record, worker.fencing_pending) == (2, 2, False)
    assert worker.task_configs == dict(enumerate(TASKS))
    assert config_topic_state(records, "c-1") == ConfigTopicState(CONFIG, tuple(TASKS), 2, 3, 5, 2)


def test_a_connector_is_not_mistaken_for_another_with_a_longer_name() -> None:
    records = log(
        task_set("c-1-0", CONFIG, TASKS), count_record("c-1-0", 2), target("STOPPED", "c-1-0")
    )
    assert config_topic_state(records, "c-1") == ConfigTopicState()


def test_a_set_with_a_task_missing_is_no_set() -> None:
    records = [r for r in log(task_set("c-1", CONFIG, TASKS)) if r.key != b"task-c-1-0"]
    found = config_topic_state(records, "c-1")
    assert (found.tasks, found.committed_tasks, found.transactional_ids) == ((), 2, 2)


def test_records_that_are_no_json_and_tombstones_say_nothing() -> None:
    records = [
        ConsumerRecord(b"commit-c-1", b"{", 0, 0),
        ConsumerRecord(b"tasks-fencing-c-1", None, 0, 1),
        ConsumerRecord(None, b"", 0, 2),
    ]
    assert config_topic_state(records, "c-1") == ConfigTopicState(fenced=1)


def test_a_generation_may_start_once_its_round_of_fencing_is_over() -> None:
    begun = log(task_set("c-1", CONFIG, TASKS))
    generation = Generation("t", "c-1", 3)
    assert "no zombie fencing" in str(generation.stale_because(begun))
    assert (
        generation.stale_because(log(task_set("c-1", CONFIG, TASKS), count_record("c-1", 2)))
        is None
    )


def test_a_newer_set_makes_it_stale_even_before_its_own_fencing() -> None:
    first = [task_set("c-1", CONFIG, TASKS), count_record("c-1", 2)]
    records = log(*first, task_set("c-1", CONFIG, TASKS[:1]))
    assert "new set of task configs" in str(Generation("t", "c-1", 3).stale_because(records))


def test_a_taken_over_connector_is_ours_while_it_is_stopped() -> None:
    stopped = [target("STOPPED"), [(b"commit-c-1", b'{"tasks":0}')]]
    generation = Generation("t", "c-1", 2, target_at=0)
    assert generation.stale_because(log(*stopped)) is None
    assert generation.stale_because(log(*stopped, target("STOPPED"))) is None
    assert "target state STARTED" in str(generation.stale_because(log(*stopped, target("STARTED"))))
    assert "target state PAUSED" in str(generation.stale_because(log(*stopped, target("PAUSED"))))
    assert "new task configurations" in str(
        generation.stale_because(log(*stopped, task_set("c-1", CONFIG, TASKS)))
    )


def test_a_connector_that_was_deleted_on_its_workers_is_not_ours_any_more() -> None:
    records = [*log(target("STOPPED")), ConsumerRecord(b"target-state-c-1", None, 0, 9)]
    assert Generation("t", "c-1", -1, target_at=0).stale_because(records)


@given(st.lists(st.sampled_from(["set", "count", "other"]), max_size=12))
def test_of_all_sets_only_the_newest_may_start_and_only_behind_its_count(steps: list[str]) -> None:
    made = {
        "set": task_set("c-1", CONFIG, TASKS),
        "count": count_record("c-1", 2),
        "other": [*task_set("d", CONFIG, TASKS), *count_record("d", 2)],
    }
    records = log(*(made[step] for step in steps))
    commits = [r.offset for r in records if r.key == b"commit-c-1"]
    free = [at for at in commits if Generation("t", "c-1", at).stale_because(records) is None]
    last_set = max((n for n, step in enumerate(steps) if step == "set"), default=None)
    done = last_set is not None and "count" in steps[last_set:]
    assert free == (commits[-1:] if done else [])
