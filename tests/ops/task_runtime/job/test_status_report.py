"""What a run's own status topic says is told beside what workers say."""

from __future__ import annotations

import json

from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.task_runtime.job.status_report import names_of
from connectctl.ops.task_runtime.job.status_topic import RUN_PREFIX

STATUS = json.dumps(
    {"state": "RUNNING", "trace": None, "worker_id": "w:1", "generation": 1}
).encode()


def test_connectors_are_named_by_the_records_of_one_prefix() -> None:
    ours = ConsumerRecord(RUN_PREFIX.encode() + b"status-connector-orders", STATUS, 0, 0)
    theirs = ConsumerRecord(b"status-connector-users", STATUS, 0, 1)
    assert names_of([ours, theirs, ConsumerRecord(None, STATUS, 0, 2)], RUN_PREFIX, "statuses") == {
        "orders"
    }
    assert names_of([theirs], "", "statuses") == {"users"}
