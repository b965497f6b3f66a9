"""Transforms of ``connectctl run`` on Spark and a real broker: whatever is killed, each record's
output is there once.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.piped import Piped
from live.real import eventually, write
from live.rundirectory import KILLED, python_workers, well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.drawn(2, matrix="transforms"),
]


def test_each_record_is_transformed_once_and_a_second_run_goes_on_where_the_first_ended(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Piped(cluster, tmp_path, "Shout")
    place.append(2000)
    first = well(place.run(idle="3s"))
    assert (first["outcome"], first["records"]) == ("ended", 2000)
    place.each_once()
    assert place.committed() == 4
    assert place.members() == []  # static members do not leave by themselves
    place.append(400)
    second = well(place.run(records=400))
    assert second["records"] == 400
    place.each_once()


@pytest.mark.usefixtures("without_spark")
def test_a_function_of_a_dataframe_is_a_transform(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Piped(cluster, tmp_path, "evens", guarantee="at-least-once")
    place.append(400)
    ran = well(place.run(idle="3s"))
    assert ran["outcome"] == "ended"
    assert sorted(int(line.split()[1]) for line in place.seen()) == list(range(0, 400, 2))


@KILLED
def test_what_a_function_of_dataframes_gives_is_written_as_columns_each_record_once(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Piped(cluster, tmp_path, "evens")
    place.append(2000)
    with place.running() as process:
        eventually(lambda: len(place.seen()) >= 1000)
        for _ in range(2):
            place.append(400)  # not waited for
            for worker in python_workers(process)[:1]:
                worker.kill()
            place.append(400)
            eventually(lambda: len(place.seen()) >= place.written / 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) == 0
    assert sorted(int(line.split()[1]) for line in place.seen()) == list(range(0, place.written, 2))
    assert place.committed() == 4


@KILLED
def test_a_worker_of_spark_that_is_killed_costs_no_record_and_gives_none_twice(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Piped(cluster, tmp_path, "Shout")
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


@pytest.mark.usefixtures("without_spark")
def test_a_filter_by_an_expression_keeps_records_of_json_as_they_are(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Piped(cluster, tmp_path, "evens")
    place.plugins = []
    place.config |= {
        "connector.class": "Filter",
        "condition": "amount > 5 and shop == 'a'",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    orders = [f'{{"amount":  {n}, "shop": "{"ab"[n % 2]}"}}' for n in range(12)]
    for partition in range(4):
        some = [(f"{n}", order) for n, order in enumerate(orders) if n % 4 == partition]
        write(cluster.bootstrap_servers, place.source, *some, partition=partition)
    ran = well(place.run(idle="3s"))
    assert (ran["outcome"], ran["records"]) == ("ended", 3)
    assert sorted(place.seen()) == sorted(orders[6::2])
    assert place.committed() == 4
