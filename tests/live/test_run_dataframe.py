"""A DataFrame as the source of a job: files in batch and as a stream, whatever is stopped, killed,
repeated or wrong.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark import session as spark_session
from live.real import Ran, connectctl, create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(5, matrix="jobs of DataFrames"),
    # PySpark leaves the socket of an answer to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]
SHOPS = 3
SCHEMA = "shop string, id long, value string"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    opened = spark_session.open_session("local[2]", {}, log)
    stop = opened.stop
    opened.stop = lambda: None  # a run's end, of which there are many here
    yield opened
    stop()


class Place:
    """A directory of files, a topic and a group of their own, and the job that carries the one to
    the other.
    """

    def __init__(self, cluster: Sandbox, directory: Path):
        self.cluster, self.directory = cluster, directory
        self.name = f"frame-{secrets.token_hex(4)}"
        self.group = f"g-{self.name}"
        self.files = directory / "in"
        self.files.mkdir()
        self.topic = create_topic(cluster.bootstrap_servers, f"{self.name}-data", 2, "delete")
        self.written = 0
        self.config = {
            "connector.class": "DataFrameSource",
            "format": "json",
            "load": str(self.files),
            "topic": self.topic,
            "partition.columns": "shop",
            "offset.column": "id",
            "tasks.max": "2",
            "records.per.transaction": "100",
        }

    def append(self, count: int) -> None:
        """A file of so many rows, which go round the shops."""
        rows = [
            {"shop": f"shop {n % SHOPS}", "id": n, "value": f"{n % SHOPS}:{n}"}
            for n in range(self.written, self.written + count)
        ]
        self.add(*rows)
        self.written += count

    def add(self, *rows: dict[str, Any], at: Path | None = None) -> None:
        """A file with these rows, there at once."""
        name = f"{secrets.token_hex(4)}.json"
        whole = self.directory / name
        whole.write_text("".join(json.dumps(row) + "\n" for row in rows))
        whole.rename((at or self.files) / name)

    def args(self, *args: str, until: Any = None, **change: Any) -> list[str]:
        path = self.directory / "job.yaml"
        config = {k: v for k, v in (self.config | change).items() if v is not None}
        job = {
            "name": self.name,
            "config": config,
            "spark": {"master": "local[2]"},
            "until": until or {"forever": True},
        }
        path.write_text(json.dumps(job))  # which is YAML, too
        context = ["--context", f"sandbox-{self.cluster.spec.name}", "--group-id", self.group]
        return [*context, "run", str(path), "--yes", "-o", "json", *args]

    def run(self, *args: str, **change: Any) -> Ran:
        return connectctl(*self.args(*args, **change))

    def well(self, **change: Any) -> Any:
        ran = self.run(**change)
        assert ran.code == 0, ran.err
        return ran.json

    def badly(self, **change: Any) -> str:
        """The one line that a run ends with which does not come to anything."""
        ran = self.run(**change)
        assert ran.code in (1, 2, 4), (ran.out, ran.err)
        line = ran.err.strip().splitlines()[-1]
        if line.startswith("{"):
            error = json.loads(line)["error"]
            return ". ".join(filter(None, (error["message"], error["why"], error["nextStep"])))
        return line

    def seen(self) -> dict[str, list[int]]:
        """What a reader with read_committed sees, by shop, in the topic's order where that is one
        partition's.
        """
        kafka = Kafka({"bootstrap.servers": self.cluster.bootstrap_servers}, timeout=120)
        image = kafka.image([self.topic], patience=30, superseded=True)[self.topic]
        found = defaultdict(list)
        for record in sorted((*image.latest, *image.superseded), key=lambda r: r.offset):
            shop, _, number = (record.value or b"?:0").decode().partition(":")
            found[shop].append(int(number))
        return found

    def all_there(self) -> None:
        seen = self.seen()
        assert {shop: sorted(some) for shop, some in seen.items()} == {
            str(shop): list(range(shop, self.written, SHOPS)) for shop in range(SHOPS)
        }


@pytest.fixture
def place(cluster: Sandbox, tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(spark_session, "open_session", lambda *args: session)
    return Place(cluster, tmp_path)


def test_a_batch_ends_by_itself_and_the_next_one_sends_only_what_is_new(place: Place) -> None:
    place.append(600)
    first = place.well()
    assert (first["outcome"], first["records"], [t["state"] for t in first["tasks"]]) == (
        "ended",
        600,
        ["ENDED"] * 2,
    )
    place.append(300)
    place.config["tasks.max"] = "3"
    again = place.well(query="select shop, id, upper(value) value from source")
    assert (again["records"], len(again["tasks"])) == (300, 3)
    place.all_there()
    assert place.well(until={"records": 5})["records"] == 0


STREAM = {
    "streaming": "true",
    "schema": SCHEMA,
    "option.maxFilesPerTrigger": "1",
    "records.per.transaction": "20",
}


def test_a_stream_that_is_stopped_in_the_middle_of_a_micro_batch_goes_on_there_with_and_without_its_checkpoint(
    place: Place, tmp_path: Path
) -> None:
    place.append(300)
    kept = {**STREAM, "checkpoint": str(tmp_path / "checkpoint")}
    first = place.well(until={"records": 100}, **kept)
    assert (first["outcome"], 100 <= first["records"] < 300) == ("ended", True)
    place.append(150)
    second = place.well(until={"idle": "2s"}, **kept)
    assert (second["outcome"], first["records"] + second["records"]) == ("ended", 450)
    place.append(90)
    line = place.badly(until={"idle": "2s"}, **STREAM)
    assert "rows of micro-batch 0 are behind the committed offset" in line
    assert "the query has a new checkpoint and reads written rows again" in line
    assert place.well(until={"idle": "2s"}, late="drop", **STREAM)["records"] == 90
    place.all_there()


def test_sigterm_ends_a_stream_between_two_transactions(place: Place) -> None:
    place.append(200)

    def end() -> None:
        eventually(lambda: sum(map(len, place.seen().values())) == 200)
        os.kill(os.getpid(), signal.SIGTERM)

    # a signal that the run does not hear is nobody's end
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        ending = threading.Thread(target=end)
        ending.start()
        ran = place.well(**STREAM)
        ending.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (ran["outcome"], ran["records"]) == ("stopped", 200)
    place.all_there()


@pytest.mark.slow
def test_a_stream_that_is_killed_and_begun_again_from_nothing_doubles_and_loses_nothing(
    place: Place,
) -> None:
    place.append(3000)
    command = [sys.executable, "-m", "connectctl.cli", *place.args(**STREAM)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as killed:
        try:
            eventually(lambda: sum(map(len, place.seen().values())) > 100)
        finally:
            os.kill(killed.pid, signal.SIGKILL)
    place.append(300)
    assert place.well(until={"idle": "4s"}, late="drop", **STREAM)["outcome"] == "ended"
    place.all_there()


def test_what_is_no_frame_is_one_line_and_nothing_is_written(place: Place, tmp_path: Path) -> None:
    place.append(3)
    before = Kafka(
        {"bootstrap.servers": place.cluster.bootstrap_servers}, timeout=120
    ).topic_names()
    for change, said in (
        ({"offset.column": "seq"}, "has no column seq. Columns: id, shop, value"),
        ({"format": "jsonn"}, "Failed to find the data source: jsonn"),
        ({"load": str(tmp_path / "nowhere")}, "Path does not exist"),
        ({"query": "selec 1"}, "Syntax error at or near 'selec'"),
        ({"query": "select shop, id from source"}, "has no column value. Columns: shop, id"),
        ({"query": "select *, nope from source"}, "with name `nope` cannot be resolved"),
        (
            {"query": "select shop, id / 2 id, value from source"},
            "of type double cannot be a source offset",
        ),
        (
            {"query": "select shop, id, id value from source"},
            "is a bigint; expected string or binary",
        ),
        ({"schema": "shop strin"}, "Unsupported data type"),
        ({"streaming": "true"}, "Schema must be specified"),
        ({"format": None}, "Missing source"),
    ):
        line = place.badly(**change)
        assert said in line, line
    after = Kafka({"bootstrap.servers": place.cluster.bootstrap_servers}, timeout=120).topic_names()
    assert not {topic for topic in after - before if place.name in topic}
    assert place.seen() == {}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"shop": "shop 0", "id": "ten", "value": "0:10"}, "id"),
        (
            {"shop": "shop 0", "value": "0:10"},
            "contains a null, which is not a valid source offset",
        ),
    ],
)
def test_a_schema_that_changes_in_the_middle_fails_its_tasks_with_one_line(
    place: Place, bad: dict[str, Any], said: str
) -> None:
    place.append(30)
    place.add(bad)
    # What the first run has committed is behind for the second, which has no checkpoint.
    for streaming in ({"streaming": "false"}, {"streaming": "true", "late": "drop"}):
        line = place.badly(schema=SCHEMA, until={"idle": "4s"}, **streaming)
        assert "FAILED" in line
        assert said in line
        assert "Traceback" not in line
    assert all(number < 30 for some in place.seen().values() for number in some)


def test_rows_that_a_stream_brings_late_are_refused_by_name_or_dropped_as_the_job_says(
    place: Place, tmp_path: Path
) -> None:
    """An id that was assigned early and committed late, and a tie between two micro-batches of two
    runs.
    """
    place.written = 100
    place.append(30)
    kept = {**STREAM, "checkpoint": str(tmp_path / "checkpoint")}
    assert place.well(until={"idle": "1s"}, **kept)["records"] == 30
    late = [
        {"shop": "shop 0", "id": 5, "value": "0:5"},
        {"shop": "shop 0", "id": 129, "value": "0:1290"},
    ]
    place.add(*late, {"shop": "shop 0", "id": 132, "value": "0:132"})
    line = place.badly(until={"idle": "1s"}, **kept)
    assert (
        "2 rows of micro-batch 1 are behind the committed offset of their source partition" in line
    )
    assert (
        'The row of {"shop":"shop 0"} at {"id":5}, The row of {"shop":"shop 0"} at {"id":129}'
        in line
    )
    assert sum(map(len, place.seen().values())) == 30
    dropped = place.run(until={"idle": "1s"}, late="drop", **kept)
    assert (dropped.code, dropped.json["records"]) == (0, 1)
    assert (
        "2 late rows, behind the committed offset of their source partition: dropped" in dropped.err
    )
    assert sorted(place.seen()["0"])[-3:] == [126, 129, 132]
    assert place.seen()["0"].count(5) == 0


def test_a_micro_batch_that_is_through_and_comes_again_is_skipped_whole(
    place: Place, tmp_path: Path
) -> None:
    """Spark's driver dies behind the commit of the tasks, and before it has written down that the
    micro-batch is done.
    """
    place.append(60)
    checkpoint = tmp_path / "checkpoint"
    kept = {**STREAM, "checkpoint": str(checkpoint)}
    assert place.well(until={"idle": "1s"}, **kept)["records"] == 60
    for done in (checkpoint / "commits").glob("*0*"):
        done.unlink()
    again = place.run(until={"idle": "1s"}, **kept)
    assert (again.code, again.json["records"]) == (0, 0)
    assert "60 rows are at or before the committed offsets: skipped" in again.err
    place.all_there()


def test_offsets_of_columns_of_before_are_refused_with_both(place: Place) -> None:
    place.append(3)
    assert place.well()["records"] == 3
    other = {"query": "select shop store, id, value from source", "partition.columns": "store"}
    line = place.badly(**other)
    assert '{"id":0} of {"shop":"shop 0"}' in line
    assert "made of store" in line
    assert f"offsets show {place.name}" in line
    line = place.badly(query="select shop, cast(id as string) id, value from source")
    assert "the offset of id (text)" in line
    place.all_there()
