"""What Connect says of fenced tasks and of slow fencing, and what connectctl says beside it; and
the cure.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from live.real import connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SOURCE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
TASKS = 14


def run(cluster: Sandbox, *args: str, code: int = 0) -> Any:
    # In the middle of a rebalance the group does not tell its workers' addresses.
    where = ("--context", f"sandbox-{cluster.spec.name}", "--rest", cluster.rest_urls[0])
    ran = connectctl(*where, *args, "-o", "json")
    assert ran.code == code, ran.out + ran.err
    return ran.json


def findings(cluster: Sandbox, name: str) -> dict[str, Any]:
    return {
        finding["id"]: finding for finding in run(cluster, "connectors", "show", name)["findings"]
    }


def test_a_fenced_task_is_told_to_be_fenced_where_connect_says_expired(cluster: Sandbox) -> None:
    source = f"d{uuid.uuid4().hex[:8]}"
    config = {"connector.class": SOURCE, "tasks.max": "1", "topic": source, "throughput": "50"}
    with connector(cluster, source, config) as workers:
        eventually(lambda: workers.state(source) == ["RUNNING"] * 2)
        assert "FENCE007" not in findings(cluster, source)
        # or it could be the leader's round by its time, which ended when the task started
        time.sleep(2)
        run(cluster, "fence", source, "--force", "--yes")
        eventually(lambda: workers.state(source) == ["RUNNING", "FAILED"])
        said = workers.call("GET", f"/connectors/{source}/status").json()["tasks"][0]["trace"]
        # Which of them depends on whether the task was sending or committing when it was fenced.
        signs = (
            "before its producer transaction expired",
            "ProducerFencedException",
            "InvalidTxnStateException",
            "Unhandled error in EndTxnResponse",
        )
        assert any(sign in said for sign in signs), said
        told = findings(cluster, source)["FENCE007"]
        assert told["subject"] == f"{source} task 0"
        assert "its producer was fenced" in told["message"]
        assert "by a tool" in told["message"]


def test_fencing_that_stalls_is_recognised_predicted_and_cured(cluster: Sandbox) -> None:
    source = f"s{uuid.uuid4().hex[:8]}"
    config = {
        "connector.class": SOURCE,
        "tasks.max": str(TASKS),
        "topic": source,
        "throughput": "1",
    }
    with connector(cluster, source, config) as workers:
        eventually(lambda: workers.state(source) == ["RUNNING"] * (TASKS + 1))
        eventually(lambda: "FENCE008" not in findings(cluster, source))
        # Two tasks less make new task configs, for which the leader fences the ids of all that
        # were.
        fewer = config | {"tasks.max": str(TASKS - 2), "name": source}
        workers.call("PUT", f"/connectors/{source}/config", fewer)
        told = eventually(lambda: findings(cluster, source).get("FENCE008"))
        assert "blocked by zombie fencing (14 ids, sequential" in told["message"]
        assert "s are left" in told["message"]
        assert told["nextStep"].endswith(f" connectors cure {source}")

        planned = run(cluster, "connectors", "cure", source, "--dry-run")
        assert [step["step"] for step in planned["steps"]] == [
            "SetOverrides",
            "AwaitRound",
            "RestartWhatFailed",
        ]
        run(cluster, "connectors", "cure", source, "--yes", "--timeout", "600")
        # A task of before that is slow to stop writes its status behind that of its successor.
        eventually(lambda: workers.state(source) == ["RUNNING"] * (TASKS - 1))
        assert "FENCE008" not in findings(cluster, source)
        now = workers.call("GET", f"/connectors/{source}/config").json()
        assert now["admin.override.retry.backoff.max.ms"] == "10"

        # With the cure the next round is over before anyone could look.
        workers.call("PUT", f"/connectors/{source}/config", now | {"tasks.max": str(TASKS - 4)})
        eventually(lambda: workers.state(source) == ["RUNNING"] * (TASKS - 3))
        again = ("connectors", "cure", source, "--yes")
        eventually(lambda: run(cluster, *again)["results"][0]["outcome"] == "already")
