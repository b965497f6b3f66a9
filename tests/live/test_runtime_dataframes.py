"""A DataFrame into a real topic, each row once, however often it is written."""

from __future__ import annotations

import json
import secrets
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark.arrow_map import map_in_arrow
from connectctl.ops.clients.spark.session import open_session
from connectctl.ops.clients.spark.task_input import proven
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.task_runtime.attempt import shared_clients
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress
from connectctl.ops.task_runtime.attempt.newest_attempt import AttemptRegistry, Superseded
from connectctl.ops.task_runtime.dataframe import api, batch_round
from connectctl.ops.task_runtime.dataframe import task as dataframe_task
from connectctl.ops.task_runtime.dataframe.api import Target, write_exactly_once
from connectctl.ops.task_runtime.dataframe.batch_round import large_batches, shared
from connectctl.ops.task_runtime.dataframe.generation_start import with_generation
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.stream_writer import StreamWriter
from connectctl.ops.task_runtime.dataframe.task import Writing
from connectctl.ops.task_runtime.job.config_topic_records import config_topic_state
from connectctl.ops.task_runtime.task.generation_check import GenerationCheck
from live.real import create_topic, eventually, write_uncommitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(14, matrix="DataFrames"),
    # PySpark leaves the socket of an answer to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]

UNGUARDED = pytest.mark.drawn(matrix="DataFrames without a guard")
"""What a guard prevents happens without it: each commit takes one guard away."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory: Path = tmp_path_factory.mktemp("spark")
    conf = {"spark.sql.shuffle.partitions": 2, "spark.local.dir": str(directory)}
    opened = open_session("local[2]", conf, directory / "spark.log")
    yield opened
    opened.stop()


@pytest.fixture
def target(cluster: Sandbox) -> Target:
    name = f"frame-{secrets.token_hex(4)}"
    bootstrap = cluster.bootstrap_servers
    return Target(
        client={"bootstrap.servers": bootstrap},
        group_id=f"g-{name}",
        connector=name,
        topic=create_topic(bootstrap, f"{name}-data", 2, "delete"),
        offsets_topic=create_topic(bootstrap, f"{name}-offsets"),
        partition=["shop"],
        offset="id",
        rows_per_transaction=50,
    )


def frame(session: Any, *ids: int) -> Any:
    from pyspark.sql import functions as f

    data = session.createDataFrame([(f"shop {n % 3}", n) for n in ids], "shop string, id long")
    return data.withColumn("value", f.concat_ws(":", "shop", "id"))


def seen(target: Target) -> list[int]:
    kafka = Kafka(dict(target.client), timeout=120)
    image = kafka.image([target.topic], patience=30, superseded=True)[target.topic]
    assert not image.held_back
    return sorted(
        int((r.value or b"").rpartition(b":")[2]) for r in (*image.latest, *image.superseded)
    )


def consumed(target: Target, count: int) -> list[Any]:
    consumer = Consumer(
        {**target.client, "group.id": target.topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([target.topic])
    found: list[Any] = []
    while len(found) < count:
        some = consumer.consume(count, 30)
        assert some, f"{len(found)} of {count} came"
        found += some
    consumer.close()
    return found


def test_each_row_is_there_once_however_often_and_by_however_many_tasks_it_is_written(
    session: Any, target: Target
) -> None:
    first = write_exactly_once(frame(session, *range(300)), target)
    assert (first.sent, first.skipped) == (300, 0)
    assert first.transactions >= 6
    again = write_exactly_once(frame(session, *range(400)), replace(target, tasks=3))
    assert (again.sent, again.skipped) == (100, 300)
    assert seen(target) == list(range(400))


class Stream:
    """A directory of files as a stream, each run of it to the end of what is there by then."""

    def __init__(self, session: Any, directory: Path):
        self._session, self.directory = session, directory

    def add(self, *ids: int) -> None:
        frame(self._session, *ids).coalesce(1).write.mode("append").json(str(self.directory / "in"))

    def run(self, write: Any, checkpoint: str = "checkpoint") -> None:
        """Raises what ended the query."""
        stream = self._session.readStream.schema("shop string, id long, value string").json(
            str(self.directory / "in")
        )
        writing = stream.writeStream.foreachBatch(write).option(
            "checkpointLocation", str(self.directory / checkpoint)
        )
        writing.trigger(availableNow=True).start().awaitTermination()

    def forget(self, batch: int) -> None:
        """As if Spark had died before it wrote down that the batch is done: it repeats it."""
        for file in (self.directory / "checkpoint" / "commits").glob(f"*{batch}*"):
            file.unlink()


@pytest.fixture
def stream(session: Any, tmp_path: Path) -> Stream:
    return Stream(session, tmp_path)


def test_a_streaming_query_writes_each_micro_batch_once_and_skips_one_that_is_repeated(
    stream: Stream, target: Target
) -> None:
    writer = StreamWriter(target)
    for start in (0, 100):
        stream.add(*range(start, start + 100))
        stream.run(writer)
        assert writer.written is not None
        assert (writer.written.sent, writer.written.skipped) == (100, 0)
    stream.forget(1)
    stream.run(writer)
    again = writer.written
    assert again is not None
    assert (again.sent, again.skipped) == (0, 100)
    assert seen(target) == list(range(200))
    stored = {
        key: value for key, value in offsets_of(target).items() if b"connectctl.stream" in key
    }
    assert all(
        json.loads(value)["batch"] == 1 and json.loads(value)["through"]
        for value in stored.values()
    )
    assert len(stored) == target.tasks


def test_of_a_batch_that_one_task_could_not_write_only_what_is_missing_is_written_when_it_comes_again(
    session: Any, stream: Stream, target: Target
) -> None:
    bootstrap = str(target.client["bootstrap.servers"])
    name = create_topic(
        bootstrap, f"{target.topic}-small", 2, "delete", config={"max.message.bytes": "2000"}
    )
    writer = StreamWriter(replace(target, topic=name, tasks=3))
    rows = frame(session, *range(30)).selectExpr(
        "shop", "id", f"if(id = 29, concat('{'x' * 3000}:', id), value) value"
    )
    rows.coalesce(1).write.json(str(stream.directory / "in"))
    with pytest.raises(Exception, match="is too large"):
        stream.run(writer)
    through = [
        json.loads(value)
        for key, value in offsets_of(target).items()
        if b"connectctl.stream" in key
    ]
    resource = ConfigResource(ResourceType.TOPIC, name)
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", "9000", incremental_operation=AlterConfigOpType.SET)
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result()
    stream.run(writer)
    assert all(each["through"] for each in through)
    done = sum(each["rows"] for each in through)
    assert writer.written is not None
    assert (writer.written.sent, writer.written.skipped) == (30 - done, done)
    assert seen(writer.target) == list(range(30))


@pytest.mark.parametrize("plain", [True, False])
def test_rows_that_a_stream_brings_late_are_refused_by_name_and_never_skipped_in_silence(
    stream: Stream, target: Target, plain: bool
) -> None:
    def in_words(batch: Any, number: int) -> None:
        write_exactly_once(batch, target)

    write = in_words if plain else StreamWriter(target)
    stream.add(0, 1, 6, 8)
    stream.run(write)
    stream.add(3, 9)  # of shop 0, which is at 6: assigned early, committed late
    with pytest.raises(
        Exception, match="1 rows of micro-batch 1 are behind the committed offset"
    ) as caught:
        stream.run(write)
    assert 'The row of {"shop":"shop 0"} at {"id":3}' in str(caught.value)
    assert seen(target) == [0, 1, 6, 8]
    dropping = StreamWriter(target, late="drop")
    stream.run(dropping)
    assert dropping.written is not None
    assert (dropping.written.sent, dropping.written.late, seen(target)) == (1, 1, [0, 1, 6, 8, 9])
    stream.forget(1)
    stream.run(dropping)
    assert seen(target) == [0, 1, 6, 8, 9]


def test_a_query_with_a_new_checkpoint_is_refused_unless_it_says_that_its_rows_may_be_dropped(
    stream: Stream, target: Target
) -> None:
    stream.add(*range(30))
    stream.run(StreamWriter(target))
    with pytest.raises(Exception, match="the query has a new checkpoint"):
        stream.run(StreamWriter(target), "another")
    dropping = StreamWriter(target, late="drop")
    stream.run(dropping, "a third")
    assert dropping.written is not None
    assert (dropping.written.sent, dropping.written.late) == (0, 30)
    assert seen(target) == list(range(30))


def test_a_stream_without_an_order_is_written_once_by_query_and_batch(
    stream: Stream, target: Target
) -> None:
    writer = StreamWriter(replace(target, partition=(), offset="", key="shop"))
    stream.add(*range(50, 100))
    stream.run(writer)
    stream.add(*range(50))
    stream.run(writer)
    stream.forget(1)
    stream.run(writer)
    assert writer.written is not None
    assert (writer.written.sent, writer.written.skipped) == (0, 50)
    assert seen(target) == list(range(100))
    with pytest.raises(BadInput, match="No column is set as source offset"):
        write_exactly_once(frame(stream._session, 1), writer.target)


def test_structs_are_written_by_a_converter_from_frames_and_streams(
    session: Any, stream: Stream, target: Target
) -> None:
    structured = replace(
        target,
        value="order",
        key="id",
        value_converter="JsonConverter",
        key_converter="JsonConverter",
        converter_configs={
            "value.converter.schemas.enable": "false",
            "key.converter.schemas.enable": "false",
        },
    )

    def orders(df: Any) -> Any:
        return df.selectExpr(
            "shop", "id", "named_struct('id', id, 'of', map(shop, id), 'n', id / 2BD) `order`"
        )

    write_exactly_once(orders(frame(session, *range(10))), structured)
    writer = StreamWriter(structured)
    stream.add(*range(10, 20))

    def write(df: Any, number: int) -> None:
        writer(orders(df), number)

    stream.run(write)
    stream.forget(0)
    stream.run(write)
    assert writer.written is not None
    assert (writer.written.sent, writer.written.skipped) == (0, 10)
    found = {int(r.key()): json.loads(r.value()) for r in consumed(target, 20)}
    assert sorted(found) == list(range(20))
    assert found[7]["of"] == {"shop 1": 7}
    ntz = "struct(timestamp_ntz '2024-02-29 00:00:00' at) `order`"
    bad = frame(session, 1).selectExpr("shop", "id", ntz)
    with pytest.raises(BadInput, match=r"order\.at is a timestamp_ntz"):
        write_exactly_once(bad, structured)


def offsets_of(target: Target) -> dict[bytes, bytes]:
    image = Kafka(dict(target.client), timeout=120).image([target.offsets_topic], patience=30)[
        target.offsets_topic
    ]
    return {record.key: record.value for record in image.latest if record.key and record.value}


def test_a_zombie_that_holds_a_transaction_open_is_fenced_and_leaves_nothing(
    session: Any, target: Target
) -> None:
    id_ = f"{target.group_id}-{target.connector}-7"
    bootstrap = str(target.client["bootstrap.servers"])
    zombie = write_uncommitted(bootstrap, target.topic, id_, (None, "shop 0:999"))
    write_exactly_once(frame(session, *range(30)), target)
    assert seen(target) == list(range(30))
    del zombie


def test_calls_that_share_out_alike_are_one_generation_and_any_other_is_a_new_one(
    session: Any, target: Target
) -> None:
    kafka = Kafka(dict(target.client), timeout=120)
    topic = f"{target.group_id}-configs"

    def commits() -> int:
        return config_topic_state(
            kafka.image([topic], patience=30)[topic].latest, target.connector
        ).commit

    write_exactly_once(frame(session, *range(10)), target)
    kafka = Kafka(dict(target.client), timeout=120)  # the other one does not know the topic
    first = commits()
    write_exactly_once(frame(session, *range(20)), target)
    assert commits() == first
    write_exactly_once(frame(session, *range(30)), replace(target, tasks=3))
    second = commits()
    assert second > first
    write_exactly_once(frame(session, *range(40)), target)
    assert commits() > second
    assert seen(target) == list(range(40))


def started(writing: Writing) -> Writing:
    """What a task has once its generation has started."""
    assert writing.start is not None
    return replace(writing, spec=with_generation(writing.spec, writing.start), start=None)


class Unchecked(GenerationCheck):
    """Asks nobody whether its generation is the newest."""

    def stale_because(self) -> str | None:
        return None


@pytest.mark.parametrize(
    ("watch", "how", "twice"),
    [(GenerationCheck, "stale", False), pytest.param(Unchecked, "ended", True, marks=UNGUARDED)],
)
def test_a_zombie_of_a_call_with_another_number_of_tasks_that_begins_late_sends_nothing(
    session: Any,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
    watch: type[GenerationCheck],
    how: str,
    twice: bool,
) -> None:
    monkeypatch.setattr(shared_clients, "GenerationCheck", watch)
    late: list[Writing] = []

    def not_yet(df: Any, writing: Writing, tasks: int, active: Any) -> list[Any]:
        late.append(started(writing))
        return []

    with monkeypatch.context() as patch:
        patch.setattr(api, "written_by", not_yet)
        write_exactly_once(frame(session, *range(60)), replace(target, tasks=7))
    rows = frame(session, *range(60)).toArrow().combine_chunks()
    successor = replace(target, tasks=2)
    # its round of fencing is over
    generation = api.generation_of(successor, frame(session, 1).dtypes)

    def batches() -> Iterator[Any]:
        # The zombie has initialised its producer and read the offsets by now.
        write_exactly_once(frame(session, *range(60)), successor)
        yield from rows.to_batches()

    report = dataframe_task.run(late[0], 6, batches())
    write_exactly_once(frame(session, *range(60)), successor)
    assert (generation.commit > late[0].spec.generation.commit, report.reason) == (True, how)
    assert seen(target) == sorted(list(range(60)) * (2 if twice else 1))


@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=UNGUARDED)])
def test_a_copy_of_a_task_that_fences_it_is_the_one_whose_report_counts(
    session: Any, target: Target, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    """As with speculation, or a stage that is tried again: unguarded, the older attempt's end would
    be the task's.
    """
    begun: list[Writing] = []

    def not_yet(df: Any, writing: Writing, tasks: int, active: Any) -> list[Any]:
        begun.append(started(writing))
        return []

    monkeypatch.setattr(api, "written_by", not_yet)
    write_exactly_once(frame(session, *range(60)), replace(target, tasks=1))
    id_ = f"{target.group_id}-{target.connector}-0"
    calls = TransactionClient(dict(target.client), timeout=120)
    driver = AttemptRegistry("127.0.0.1")
    writing = replace(begun[0], attempts=driver.address if guarded else None)
    rows = (
        frame(session, *range(60)).coalesce(1).sortWithinPartitions("id").toArrow().combine_chunks()
    )
    reports = []

    def batches() -> Iterator[Any]:
        parts = rows.to_batches()[0]
        yield parts.slice(0, 55)
        # the older one is initialised
        eventually(lambda: isinstance(calls.describe([id_])[id_], Transaction))
        reports.append(dataframe_task.run(writing, 0, iter([parts]), number=2))
        yield parts.slice(55)

    with pytest.raises(Superseded) if guarded else nullcontext():
        older = dataframe_task.run(writing, 0, batches(), number=1)
        assert older.reason == "fenced"
    driver.close()
    calls.close()
    assert (reports[0].reason, reports[0].records + reports[0].skipped) == ("ended", 60)
    assert seen(target) == list(range(60))


def test_a_frame_that_is_partitioned_needs_no_shuffle_and_one_that_is_not_is_found_out(
    session: Any, target: Target
) -> None:
    from pyspark.sql import functions as f

    target = replace(target, partitioned=True)
    parted = session.range(0, 1000, 1, 4).withColumn("shop", f.expr("concat('shop ', id div 250)"))
    parted = parted.withColumn("value", f.concat_ws(":", "shop", "id"))
    assert write_exactly_once(parted, target).sent == 1000
    assert write_exactly_once(parted, replace(target, tasks=4)).skipped == 1000
    torn = parted.withColumn("shop", f.expr("concat('shop ', id % 2)"))
    with pytest.raises(ConnectctlError, match="is in two partitions of the DataFrame"):
        write_exactly_once(torn, replace(target, connector=f"{target.connector}-torn"))
    assert len(seen(target)) <= 1500


@pytest.mark.drawn
@pytest.mark.parametrize("codec", ["zstd", "lz4"])  # connectctl's own producer, and librdkafka's
def test_headers_and_times_are_written_as_sparks_own_sink_takes_them(
    session: Any, target: Target, codec: str
) -> None:
    rows = session.range(3).selectExpr(
        "'shop' shop",
        "id",
        "concat('', id) value",
        "1700000000000 + id at",
        "if(id = 1, null, array(struct('n' key, cast(id as string) value), struct('none' key, "
        "null value))) headers",
    )
    rows = rows.withColumn("headers", rows.headers.cast("array<struct<key:string,value:binary>>"))
    client = {**target.client, "compression.type": codec}
    write_exactly_once(rows, replace(target, client=client, headers="headers", timestamp="at"))
    assert {
        each.value(): (each.headers() or [], each.timestamp()[1]) for each in consumed(target, 3)
    } == {
        b"0": ([("n", b"0"), ("none", None)], 1700000000000),
        b"1": ([], 1700000000001),
        b"2": ([("n", b"2"), ("none", None)], 1700000000002),
    }


def test_rows_that_break_off_in_the_middle_of_a_tie_are_committed_whole_or_not_at_all(
    session: Any, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one offset are told apart by nothing: half of them committed would hide the others
    for ever.
    """
    target = replace(target, partitioned=True, offset="one", rows_per_transaction=1000)
    # which an adaptive plan does not tell
    monkeypatch.setattr(batch_round, "partitions_of", lambda df: 2)
    # Ordered by a join, and so before they fail: what is written is what came by then.
    ordered = session.range(0, 60_000, 1, 1).selectExpr("id div 60000 one", "id").hint("merge")
    ordered = ordered.join(session.range(1).selectExpr("'shop' shop", "id one"), "one")

    def rows(until: int) -> Any:
        # By the time that it fails the task is ready to write what it has.
        fails = (
            "concat(java_method('java.lang.Thread', 'sleep', 4000L), raise_error('the source "
            "is gone'))"
        )
        return ordered.selectExpr(
            "shop", "one", f"if(id < {until}, concat('v:', id), {fails}) value"
        )

    with pytest.raises(Exception, match="the source is gone"):
        write_exactly_once(rows(55_000), target)
    time.sleep(1)  # the task outlives what Spark says of it
    assert seen(target) == []
    assert write_exactly_once(rows(60_000), target).sent == 60_000
    assert seen(target) == list(range(60_000))


@pytest.mark.parametrize(
    ("of", "whole"),
    [("id", True), ("if(id < 55000, id, raise_error('gone'))", False)],
    ids=["whole", "broken off"],
)
def test_what_pyspark_shows_of_rows_that_break_off_is_an_ordinary_end(
    session: Any, tmp_path: Path, of: str, whole: bool
) -> None:
    """The measurement behind decision 18: a PySpark in which it comes out otherwise is to be looked
    at anew.
    """
    found = tmp_path / "found"

    def look(batches: Any) -> Any:
        rows = 0
        for batch in proven(batch for batch in chain(batches, [None])):
            if batch is not None:
                rows += batch.num_rows
            else:
                # the iterator of PySpark's has just ended, and raised nothing
                found.write_text(f"{rows}")
        return iter(())

    frame = session.range(0, 60_000, 1, 1).selectExpr(f"{of} id")
    with nullcontext() if whole else pytest.raises(Exception, match="gone"):
        map_in_arrow(frame, look, "a int").collect()
    rows = int(eventually(lambda: found.is_file() and found.read_text()))
    assert rows == 60_000 if whole else 0 < rows < 55_000


@pytest.mark.parametrize(
    ("topic", "columns", "said"),
    [
        (
            {"message.timestamp.after.max.ms": "1000"},
            {"at": "if(id = 7, 9999999999999, 1700000000000)"},
            r"The row of \{\"shop\":\"shop\"\} at \{\"id\":7\} was rejected by the broker: .*imestamp",
        ),
        (
            {"max.message.bytes": "2000"},
            {"value": "if(id = 7, repeat('x', 3000), 'small')"},
            r"The row of \{\"shop\":\"shop\"\} at \{\"id\":7\} is too large: .* 3\d{3} bytes; the limit of .* is 2000 bytes "
            r".*Raise max.message.bytes",
        ),
        (
            {},
            {"id": "if(id = 7, null, id)"},
            r"The row of \{\"shop\":\"shop\"\} at \{\"id\":null\}",
        ),
    ],
    ids=["timestamp", "size", "offset"],
)
def test_a_row_that_kafka_does_not_take_is_named_at_once(
    session: Any, target: Target, topic: dict[str, str], columns: dict[str, str], said: str
) -> None:
    name = create_topic(
        str(target.client["bootstrap.servers"]), f"{target.topic}-strict", 2, "delete", config=topic
    )
    target = replace(target, topic=name, timestamp="at", patience=30)
    made = {"shop": "'shop'", "id": "id", "value": "'small'", "at": "1700000000000"} | columns
    rows = session.range(20).selectExpr(*(f"{of} {name}" for name, of in made.items()))
    with pytest.raises(ConnectctlError, match=said) as caught:
        write_exactly_once(rows, target)
    assert "Call it again" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_topic_that_takes_small_batches_gets_small_batches(session: Any, target: Target) -> None:
    bootstrap = str(target.client["bootstrap.servers"])
    name = create_topic(
        bootstrap, f"{target.topic}-small", 2, "delete", config={"max.message.bytes": "2000"}
    )
    target = replace(target, topic=name)
    assert write_exactly_once(frame(session, *range(1000)), target).sent == 1000
    assert seen(target) == list(range(1000))


def test_offsets_of_other_columns_are_refused_with_both(session: Any, target: Target) -> None:
    write_exactly_once(frame(session, 1, 2), target)
    other = frame(session, 3, 4).withColumnRenamed("shop", "store")
    with pytest.raises(
        Refused, match=r'there is \{"id":\d\} of \{"shop":"shop \d"\}.* made of store'
    ):
        write_exactly_once(other, replace(target, partition=["store"]))
    text = frame(session, 5)
    with pytest.raises(Refused, match=r"the offset of id \(text\)"):
        write_exactly_once(text.withColumn("id", text.id.cast("string")), target)
    assert seen(target) == [1, 2]


def test_a_group_with_live_workers_is_refused(
    session: Any, target: Target, cluster: Sandbox
) -> None:
    with pytest.raises(Refused, match="has live workers; writing would fence their leader"):
        write_exactly_once(frame(session, 1), replace(target, group_id=cluster.group_id))
    assert seen(target) == []


def test_bad_columns_are_one_line_and_nothing_is_written(session: Any, target: Target) -> None:
    good = frame(session, 1, 2)
    for bad, said in (
        (good.drop("shop"), "has no column shop. Columns: id, value"),
        (good.withColumn("id", good.id.cast("double")), "double cannot be a source offset"),
        (
            good.withColumn("shop", good.id.cast("double")),
            "double cannot be part of the source partition",
        ),
        (good.withColumn("value", good.id), "is a bigint; expected string or binary"),
    ):
        with pytest.raises(BadInput, match=said):
            write_exactly_once(bad, target)
    with pytest.raises(ConnectctlError, match="a null, which is not a valid source offset"):
        write_exactly_once(good.withColumn("id", good.id.cast("long") * None), target)
    with pytest.raises(BadInput, match="No column is set as source partition"):
        write_exactly_once(good, replace(target, partition=()))
    assert seen(target) == []


def test_a_frame_that_spark_knows_to_be_ordered_is_not_sorted_again(session: Any) -> None:
    frame = session.range(0, 100, 1, 2).selectExpr(
        "concat('s', id div 50) source", "id", "cast(id as string) value"
    )
    work: Any = None
    writing = Writing(
        work,
        "t",
        FrameColumns(("source",), "id"),
        10,
        registry=DriverAddress("localhost", 1, "word"),
    )
    plans = [
        str(shared(frame, writing, tasks)._jdf.queryExecution().executedPlan()) for tasks in (2, 1)
    ]
    assert "Sort" not in plans[0]
    assert "Coalesce 1" in plans[1]
    assert "Sort" in plans[1]


@pytest.mark.parametrize(
    ("own", "meanwhile"), [(None, ["50000", "16777216"]), ("7", ["7", "16777216"])]
)
def test_arrows_batches_are_large_while_a_frame_is_written_unless_the_session_says_how_large(
    session: Any, own: str | None, meanwhile: list[str]
) -> None:
    names = [
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.execution.arrow.maxBytesPerBatch",
    ]
    if own is not None:
        session.conf.set(names[0], own)
    try:
        before = [session.conf.get(name) for name in names]
        with large_batches(session):
            assert [session.conf.get(name) for name in names] == meanwhile
        assert [session.conf.get(name) for name in names] == before
    finally:
        session.conf.unset(names[0])


class TriedAgain:
    """Has a stage of a writing with three tasks tried again, while the first attempt of one of them
    is still at work.

    Two tasks run at once. When both have their rows, what was shuffled is lost: the third cannot
    begin, and Spark tries the stage again, with a copy of the one that has not ended.
    """

    LONG = 1

    def __init__(self, session: Any, directory: Path):
        self._session, self._directory = session, directory
        self._shared = batch_round.shared
        directory.mkdir()

    def shared(self, df: Any, writing: Writing, tasks: int) -> Any:
        """``batch_round.shared``, of which tasks give their rows when they may."""
        place, long = str(self._directory), self.LONG

        def held(batches: Any) -> Any:
            import time
            from pathlib import Path

            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            task, here = context.partitionId(), Path(place)
            first = next(batches, None)  # all was fetched by then
            (here / f"{task}-{context.taskAttemptId()}").touch()
            while not (here / "go").exists() or (
                task == long and len(list(here.glob(f"{task}-*"))) < 2
            ):
                time.sleep(0.05)
            yield from (each for each in (first, *batches) if each is not None)

        shuffled = self._shared(df, writing, tasks)
        return map_in_arrow(shuffled, held, shuffled.schema)

    def lose(self) -> None:
        """Once the first two have their rows."""
        eventually(lambda: len([f for f in self._directory.iterdir() if f.name[0] in "01"]) == 2)
        local = Path(self._session.sparkContext.getConf().get("spark.local.dir"))
        lost = list(local.rglob("shuffle_*"))
        assert lost
        for file in lost:
            file.unlink()
        (self._directory / "go").touch()

    def attempts(self, task: int) -> int:
        return len(list(self._directory.glob(f"{task}-*")))


@pytest.mark.drawn
@pytest.mark.parametrize("streaming", [False, True])
def test_a_stage_that_is_tried_again_beside_a_task_of_the_first_attempt_writes_each_row_once(
    session: Any, target: Target, stream: Stream, monkeypatch: pytest.MonkeyPatch, streaming: bool
) -> None:
    again = TriedAgain(session, stream.directory / "attempts")
    monkeypatch.setattr(batch_round, "shared", again.shared)
    target = replace(target, tasks=3)
    lost = threading.Thread(target=again.lose, daemon=True)
    lost.start()
    # Of thirty shops each task has some.
    rows = frame(session, *range(90)).selectExpr("concat('shop ', id % 30) shop", "id", "value")
    if streaming:
        rows.coalesce(1).write.json(str(stream.directory / "in"))
        stream.run(StreamWriter(target))
    else:
        assert write_exactly_once(rows, target).fenced == ()
    lost.join(300)
    assert again.attempts(TriedAgain.LONG) >= 2
    assert seen(target) == list(range(90))
