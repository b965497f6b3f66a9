"""Transforms with a transactional producer for each input partition, on Spark and a real broker, and a change of the way."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.piped import Piped
from live.real import connectctl, eventually
from live.rundirectory import KILLED, python_workers, well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
WAY = {"guarantee": "exactly-once-per-partition"}


def ask(place: Piped, *args: str) -> Any:
    where = ["--context", f"sandbox-{place.cluster.spec.name}", "--group-id", place.group]
    ran = connectctl(*where, *args, "-o", "json")
    assert ran.code == 0, ran.out + ran.err
    return ran.json


def epochs(place: Piped) -> dict[str, tuple[int, int]]:
    """Producer id and epoch of each transactional id of the transform, by what follows its name."""
    stem = f"{place.group}-{place.name}-"
    listed = ask(place, "transactions", "list", place.name)["transactions"]
    return {
        t["transactionalId"].removeprefix(stem): (t["producerId"], t["producerEpoch"])
        for t in listed
        if t["transactionalId"].startswith(stem)
    }


@pytest.mark.usefixtures("without_spark")
def test_ids_are_those_of_input_partitions_and_a_change_of_the_guarantee_fences_the_others(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Piped(cluster, tmp_path, "Shout", **WAY)
    partitions, tasks = {f"{place.source}_{n}" for n in range(4)}, {"0", "1"}
    place.append(2000)
    assert well(place.run(idle="3s"))["records"] == 2000
    place.each_once()
    before = epochs(place)
    assert before.keys() == partitions
    fenced = ask(place, "fence", place.name, "--yes")["results"]
    assert sorted(each["transactionalId"] for each in fenced if each["outcome"] == "fenced") == [
        f"{place.group}-{place.name}-{place.source}_{n}" for n in range(4)
    ]
    before = epochs(place)

    place.config["guarantee"] = "exactly-once"
    place.append(400)
    assert well(place.run(records=400))["records"] == 400
    place.each_once()
    after = epochs(place)
    assert after.keys() == partitions | tasks
    assert all(after[id_] > before[id_] for id_ in partitions)  # fenced, and used by nobody

    place.config |= WAY
    place.append(400)
    assert well(place.run(records=400))["records"] == 400
    place.each_once()
    again = epochs(place)
    assert all(again[id_] > after[id_] for id_ in partitions | tasks)


@KILLED
def test_a_killed_worker_of_spark_and_the_rebalances_behind_it_cost_no_record_and_give_none_twice(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Piped(cluster, tmp_path, "Shout", **WAY)
    place.append(400)
    with place.running() as process:
        eventually(lambda: len(place.seen()) >= 400)
        for _ in range(2):
            place.append(400)  # not waited for
            for worker in python_workers(process)[:1]:
                worker.kill()
            place.append(400)
            eventually(lambda: len(place.seen()) >= place.written)
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) == 0
    place.each_once()
    assert epochs(place).keys() == {f"{place.source}_{n}" for n in range(4)}


@pytest.mark.usefixtures("without_spark")
def test_a_task_less_or_more_moves_partitions_with_their_producers(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Piped(cluster, tmp_path, "Shout", **WAY)
    for tasks in ("2", "1", "3"):
        place.config["tasks.max"] = tasks
        place.append(400)
        assert well(place.run(records=400))["records"] == 400
        place.each_once()
    assert place.members() == []
