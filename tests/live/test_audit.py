"""The audit of topics that real producers and real workers wrote, and of topics that were made
wrong by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.kafka.topic_partition import TopicPartition
from live.real import FILE_SOURCE, Ran, connectctl, connector, create_topic, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/audit.json").read_text())


def audit(cluster: Sandbox, *args: str) -> Ran:
    return connectctl("--context", f"sandbox-{cluster.spec.name}", "audit", *args)


def judged(cluster: Sandbox, *args: str) -> Any:
    ran = audit(cluster, *args, "-o", "json")
    assert ran.out, ran.err
    data = ran.json
    jsonschema.validate(data, SCHEMA)
    assert (ran.code == 0) is (data["verdict"] == "exactly-once" and not data["reordered"]), data
    return data


def producer(cluster: Sandbox, id_: str) -> Producer:
    made = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": id_, "linger.ms": 0}
    )
    made.init_transactions(120)
    return made


def put(
    writer: Producer, topic: str, numbers: Iterable[int], task: int = 0, partition: int = 0
) -> None:
    for number in numbers:
        value = json.dumps({"task": task, "seq": number})
        writer.produce(topic, key=f"task-{task}", value=value, partition=partition)


def transact(
    writer: Producer, topic: str, numbers: Iterable[int], task: int = 0, partition: int = 0
) -> None:
    writer.begin_transaction()
    put(writer, topic, numbers, task, partition)
    writer.commit_transaction(60)


def ids(data: Any) -> set[str]:
    return {finding["id"] for finding in data["findings"]}


def topic(cluster: Sandbox, name: str, partitions: int = 2) -> str:
    return create_topic(cluster.bootstrap_servers, name, partitions, policy="delete")


def test_what_is_right_is_exactly_once_and_aborted_records_do_not_count(cluster: Sandbox) -> None:
    name = topic(cluster, "audit-right")
    writer = producer(cluster, "audit-right")
    for start in range(0, 50, 10):
        transact(writer, name, range(start, start + 10))
        writer.begin_transaction()
        put(writer, name, range(start + 10, start + 13))
        writer.flush(300)
        writer.abort_transaction(60)
    writer.begin_transaction()
    put(writer, name, range(50, 60))
    put(writer, name, range(40), task=1, partition=1)
    writer.commit_transaction(60)
    data = judged(cluster, name, "--sequence", "$.seq")
    assert data["verdict"] == "exactly-once"
    assert data["records"] == {"committed": 100, "aborted": 15, "open": 0}
    assert data["recordsRead"] == 100
    assert data["transactions"] == {"committed": 6, "aborted": 5, "open": 0}
    assert [(s["partition"], s["records"]) for s in data["bySourcePartition"]] == [
        ({"key": "task-0"}, 60),
        ({"key": "task-1"}, 40),
    ]
    by_value = judged(cluster, name, "--sequence", "$.seq", "--by", "$.task", "--first", "0")
    assert [s["partition"] for s in by_value["bySourcePartition"]] == [{"task": "0"}, {"task": "1"}]
    part = judged(
        cluster, name, "--sequence", "$.seq", "--since", "offset:5", "--until", "offset:33"
    )
    assert part["verdict"] == "exactly-once"
    assert part["recordsRead"] == part["records"]["committed"] > 20
    later = judged(cluster, name, "--sequence", "$.seq", "--since", "2100-01-01")
    assert (later["verdict"], later["records"]["committed"], ids(later)) == (
        "undecided",
        0,
        {"AUDIT020"},
    )
    assert judged(cluster, name)["verdict"] == "undecided"
    assert audit(cluster, name, "--headers-only").code == 0


def test_duplicates_gaps_and_order_are_told_with_their_offsets(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = topic(cluster, "audit-wrong")
    writer = producer(cluster, "audit-wrong")
    transact(writer, name, [*range(10), *range(7, 10), *range(15, 20)])
    transact(writer, name, [0, 1, 2, 4, 3, 5], task=1, partition=1)
    # every record is a transaction, whose marker takes an offset, too
    for number in (0, 1, 2, 3, 4, 3):
        transact(writer, name, [number], task=2, partition=1)
    found = {}
    for engine in ("local", "spark"):
        bad, html = tmp_path / engine, tmp_path / f"{engine}.html"
        found[engine] = judged(
            cluster,
            name,
            "--sequence",
            "$.seq",
            "--engine",
            engine,
            "--evidence",
            str(bad),
            "--html",
            str(html),
        )
        import pyarrow.parquet as pq

        rows = pq.read_table(bad).to_pylist()
        assert sorted((r["kind"], r["first"], r["last"]) for r in rows) == [
            ("duplicate", 3, 3),
            ("duplicate", 7, 9),
            ("gap", 10, 14),
            ("reordered", 4, 4),
        ]
        assert not re.search(r'src="|href="[^#]|url\(|@import', html.read_text())
    data = found["local"]
    assert data == found["spark"]
    assert (data["verdict"], data["duplicates"], data["gaps"], data["reordered"]) == (
        "duplicates",
        4,
        5,
        1,
    )
    copies = [e for e in data["evidence"] if e["kind"] == "duplicate"]
    assert [(e["first"], e["offset"], e["otherOffset"]) for e in copies] == [
        (7, 10, 7),
        (3, 17, 13),
    ]
    assert ids(data) == {"AUDIT001", "AUDIT002", "AUDIT003"}


def test_an_open_transaction_hides_what_is_behind_it_until_it_ends(cluster: Sandbox) -> None:
    name = topic(cluster, "audit-open", 1)
    first, second = producer(cluster, "audit-open-1"), producer(cluster, "audit-open-2")
    first.begin_transaction()
    put(first, name, range(5))
    assert first.flush(300) == 0
    transact(second, name, range(8), task=1)
    data = judged(cluster, name, "--sequence", "$.seq", "--patience", "0")
    assert data["verdict"] == "undecided"
    assert data["transactions"] == {"committed": 1, "aborted": 0, "open": 1}
    assert {"AUDIT011", "AUDIT012"} <= ids(data)
    first.commit_transaction(60)
    assert judged(cluster, name, "--sequence", "$.seq")["verdict"] == "exactly-once"


def test_a_transaction_that_ends_differently_in_two_partitions_is_torn(cluster: Sandbox) -> None:
    name = topic(cluster, "audit-torn")
    writer = producer(cluster, "audit-torn")
    transact(writer, name, range(5))
    writer.begin_transaction()
    put(writer, name, range(5, 10))
    put(writer, name, range(3), task=1, partition=1)
    assert writer.flush(300) == 0
    calls = TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=60)
    place = TopicPartition(name, 1)
    (open_,) = [p for p in calls.producers([place])[place] if p.start_offset is not None]  # type: ignore[union-attr]
    assert calls.mark(place, open_, commit=False) == 0
    calls.close()
    writer.commit_transaction(60)
    transact(writer, name, range(10, 12))
    data = judged(cluster, name, "--sequence", "$.seq")
    assert (data["verdict"], data["torn"]) == ("torn", 3)
    assert "AUDIT006" in ids(data)
    (part,) = [e for e in data["evidence"] if e["kind"] == "torn-transaction"]
    assert (part["topic"], part["partition"], part["offset"]) == (name, 1, 0)


def test_records_and_source_offsets_are_compared_both_ways(cluster: Sandbox) -> None:
    name = topic(cluster, "audit-offsets")
    offsets = create_topic(cluster.bootstrap_servers, "audit-offsets-own", 3)
    writer = producer(cluster, "audit-offsets")
    transact(writer, name, range(10))
    transact(writer, name, range(10), task=1, partition=1)
    wish = (
        name,
        "--sequence",
        "$.seq",
        "--by",
        "$.task",
        "--connector",
        "nobody",
        "--offset-field",
        "seqno",
    )

    def look(*committed: int) -> Any:
        keys = [
            (["nobody", {"id": task}], {"seqno": seqno}) for task, seqno in enumerate(committed)
        ]
        write(cluster.bootstrap_servers, offsets, *keys)
        return judged(cluster, "--offsets-topic", offsets, *wish)

    clean = look(9, 9)
    assert clean["verdict"] == "exactly-once"
    assert clean["bySourcePartition"][0]["committedOffset"] == {"seqno": 9}
    torn = look(9, 6)
    assert (torn["verdict"], torn["torn"], torn["gaps"]) == ("torn", 3, 0)
    lost = look(14, 9, 2)
    assert (lost["verdict"], lost["torn"], lost["gaps"]) == ("gaps", 0, 5 + 3)
    assert {"AUDIT005"} <= ids(lost)


def test_a_transform_is_compared_with_what_its_group_has_committed(cluster: Sandbox) -> None:
    source, name = topic(cluster, "audit-in"), topic(cluster, "audit-out")
    bootstrap = {"bootstrap.servers": cluster.bootstrap_servers}
    reader = Consumer(bootstrap | {"group.id": "audit-transform"})

    def add(to: str, *numbers: int) -> None:
        for n in numbers:
            record = (f"k{n}", {"task": n % 2, "seq": n // 2})
            write(cluster.bootstrap_servers, to, record, partition=n % 2)

    def commit(*offsets: int) -> None:
        places = [Position(source, partition, offset) for partition, offset in enumerate(offsets)]
        reader.commit(offsets=places, asynchronous=False)

    def look(*args: str, group: str = "audit-transform") -> Any:
        return judged(cluster, name, "--from", source, "--group", group, *args)

    def wrong(data: Any) -> set[tuple[str, str, int]]:
        return {
            (e["kind"], f"{e['topic']}-{e['partition']}", e["offset"]) for e in data["evidence"]
        }

    sequence = ("--sequence", "$.seq", "--by", "$.task")
    add(source, *range(20))
    add(name, *range(16))
    nothing = look()
    assert (nothing["verdict"], "AUDIT025" in ids(nothing)) == ("undecided", True)
    commit(8, 8)
    for how in ((), sequence):
        clean = look(*how)
        assert (
            clean["verdict"],
            clean["inputs"]["processed"],
            clean["inputs"]["notYetProcessed"],
        ) == (
            "exactly-once",
            16,
            4,
        )
        assert {"AUDIT027"} <= ids(clean)
    commit(9, 8)  # k16 is processed, and in the output it is not
    add(name, 5, 19)  # k5 is there already, and k19 not yet processed
    missing = ("lost", f"{source}-0", 8)
    for how in ((), sequence):
        data = look(*how)
        assert data == look(*how, "--engine", "spark")
        assert (data["verdict"], data["duplicates"], data["gaps"], data["torn"]) == (
            "torn",
            1,
            1,
            1,
        )
        assert wrong(data) == {missing, ("duplicate", f"{name}-1", 8), ("torn", f"{name}-1", 9)}
        assert {"AUDIT021", "AUDIT022", "AUDIT023", "AUDIT027"} <= ids(data)
        subset = look(*how, "--subset")
        assert wrong(subset) == wrong(data) - {missing}
        assert subset["inputs"]["missing"] == 1
    writer = producer(cluster, "audit-transform")
    writer.begin_transaction()
    pending = [Position(source, 0, 10)]
    writer.send_offsets_to_transaction(pending, reader.consumer_group_metadata(), 60)
    unknown = look("--patience", "0")
    assert [part["state"] for part in unknown["inputs"]["partitions"]] == ["unknown", "committed"]
    assert "AUDIT024" in ids(unknown)
    assert missing not in wrong(unknown)
    writer.abort_transaction(60)
    assert wrong(look()) == wrong(data)
    reader.close()


def test_what_a_real_worker_writes_with_exactly_once_is_proven(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = topic(cluster, "audit-file", 1)
    source = tmp_path / "in.txt"
    source.write_text("".join(f'{{"line":{n}}}\n' for n in range(500)))
    config = {
        "connector.class": FILE_SOURCE,
        "tasks.max": "1",
        "file": str(source),
        "topic": name,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "batch.size": "50",
    }
    wish = (
        name,
        "--sequence",
        "$.line",
        "--by",
        "partition",
        "--first",
        "0",
        "--connector",
        "audit-file",
    )
    with connector(cluster, "audit-file", config):
        data = eventually(lambda: _if_whole(cluster, wish, 500))
        assert data["verdict"] == "exactly-once"
        assert data["records"]["aborted"] == 0
        assert data["transactions"]["committed"] >= 10
        with source.open("a") as more:
            more.writelines(f'{{"line":{n}}}\n' for n in range(500, 600))
        assert eventually(lambda: _if_whole(cluster, wish, 600))["verdict"] == "exactly-once"
        # A line that came from elsewhere is no line of the file.
        transact(producer(cluster, "audit-file-stranger"), name, [599])
        assert {"AUDIT014", "AUDIT019"} <= ids(judged(cluster, *wish))


def _if_whole(cluster: Sandbox, wish: tuple[str, ...], count: int) -> Any:
    """The audit's answer, once the task has written everything."""
    ran = audit(cluster, *wish, "-o", "json")
    if not ran.out:
        return None  # its offsets topic may have no record of the connector yet
    return ran.json if ran.json["records"]["committed"] >= count else None


def test_bad_input_is_one_line_and_an_empty_topic_proves_nothing(cluster: Sandbox) -> None:
    name = topic(cluster, "audit-empty", 3)
    assert judged(cluster, name, "--sequence", "$.seq")["verdict"] == "undecided"
    assert audit(cluster, name, "--headers-only").code == 1
    for args, said in (
        (("audit-emtpy",), "Did you mean audit-empty?"),
        ((name, "--sequence", "seq"), "does not begin with $"),
        ((name, "--headers-only", "--sequence", "$.seq"), "--headers-only reads no records"),
        ((name, "--since", "yesterday"), "is not a valid time or offset"),
    ):
        ran = audit(cluster, *args)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
        assert ran.err.count("\n") == 1
