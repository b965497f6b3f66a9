"""A topic copy on a real broker: byte for byte, once, in turns with a worker's
MirrorSourceConnector, whatever is gone.
"""

from __future__ import annotations

import json
import secrets
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from live import localrun
from live.copying import Copy
from live.real import connectctl, connector, create_topic, eventually, write
from live.rundirectory import Place
from otherbrokers import VERSION_2

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(4, matrix="runs that copy topics"),
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.fixture
def offsets(cluster: Sandbox) -> str:
    return create_topic(cluster.bootstrap_servers, f"copy-{secrets.token_hex(4)}-offsets", 3)


@pytest.mark.drawn(each="way")
@pytest.mark.parametrize("way", ["unopened", "opened"])
@pytest.mark.parametrize("strict", ["false", "true"])
def test_keys_values_headers_timestamps_and_partitions_stay_as_they_are(
    cluster: Sandbox, offsets: str, strict: str, way: str
) -> None:
    more = {"epoch.per.transaction": strict, "records.per.transaction": "30", "copy.batches": way}
    copy = Copy(cluster, more=more)
    copy.write(100, 57)
    first = copy.run_here(offsets, copy.start())
    assert [ended.stats.records for ended in first] == [100, 57]
    assert all(ended.stats.transactions > 1 for ended in first)
    # The producer speaks transaction version 2: each transaction has its epoch, and needs no
    # instance of its own for that.
    assert not VERSION_2 or all(
        ended.stats.instances <= ended.stats.transactions / 2 for ended in first
    )
    copy.write(10, 20)
    second = copy.run_here(offsets, copy.start())
    assert [ended.stats.records for ended in second] == [10, 20]
    assert copy.all_there()


@pytest.mark.parametrize("way", ["unopened", "opened"])
def test_what_was_aborted_is_not_copied_and_what_is_behind_markers_is(
    cluster: Sandbox, offsets: str, way: str
) -> None:
    copy = Copy(cluster, 1, {"copy.batches": way})
    producer = Producer({"bootstrap.servers": copy.bootstrap, "transactional.id": copy.name})
    producer.init_transactions(120)
    for n, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 3):
        producer.begin_transaction()
        producer.produce(copy.topic, f"{n}")
        producer.flush(300)
        end(30)
    ended = copy.run_here(offsets, copy.start())[0]
    assert ended.stats.records == 3
    assert [value for _, value, _, _ in copy.seen(copy.remote)[0]] == [b"0", b"2", b"4"]
    assert copy.run_here(offsets, copy.start())[0].stats.records == 0


def test_remote_topics_are_made_like_their_source_and_grow_with_it(
    cluster: Sandbox, offsets: str
) -> None:
    copy = Copy(cluster, 2)
    admin = AdminClient({"bootstrap.servers": copy.bootstrap})
    source = Kafka({"bootstrap.servers": copy.bootstrap}, timeout=120)
    copy.config["topics"] = f"{copy.name}-(in|tidy)"
    tidy = create_topic(copy.bootstrap, f"{copy.name}-tidy", 1)
    tasks = copy.start()
    assert source.topics([f"east.{tidy}"])[f"east.{tidy}"].config["cleanup.policy"] == "compact"
    assert [task["task.assigned.partitions"] for task in tasks] == [
        f"{copy.topic}-0,{tidy}-0",
        f"{copy.topic}-1",
    ]
    admin.create_partitions([NewPartitions(copy.topic, 3)])[copy.topic].result()
    eventually(lambda: len(admin.list_topics(copy.topic, 30).topics[copy.topic].partitions) == 3)
    copy.written.append(0)
    copy.write(5, 5, 5)
    copy.run_here(offsets, copy.start())
    assert [len(found) for found in copy.seen(copy.remote)] == [5, 5, 5]
    assert copy.all_there()


def test_a_source_topic_that_is_gone_or_another_by_now_is_one_line(
    cluster: Sandbox, offsets: str
) -> None:
    copy = Copy(cluster, 1)
    copy.write(5)
    tasks = copy.start()
    copy.run_here(offsets, tasks)
    admin = AdminClient({"bootstrap.servers": copy.bootstrap})
    admin.delete_topics([copy.topic])[copy.topic].result()
    eventually(lambda: copy.topic not in admin.list_topics(timeout=120).topics)
    with pytest.raises(
        ConnectctlError, match=f"topic {copy.topic} no longer exists on the source cluster east"
    ):
        copy.run_here(offsets, tasks)
    create_topic(copy.bootstrap, copy.topic, 1, "delete")
    with pytest.raises(
        ConnectctlError, match=f"{copy.topic}-0 of east ends at 0, but the committed offset is 4"
    ):
        copy.run_here(offsets, tasks)
    assert len(copy.seen(copy.remote)[0]) == 5


def test_a_source_that_cannot_be_reached_or_has_nothing_is_one_line_before_anything_is_written(
    cluster: Sandbox, tmp_path: Path
) -> None:
    copy = Copy(cluster)
    copy.config["topics"] = "nothing-like-it"
    ran = copy.run(tmp_path, "--dry-run", idle="1s")
    assert (ran.code, "No topic to copy" in ran.err) == (2, True)
    copy.config["topics"] = copy.topic
    plan = copy.run(tmp_path, "--dry-run", idle="1s")
    assert (
        f"create the topic {copy.remote} with 2 partitions, as for {copy.topic} on the source "
        "cluster" in plan.out
    )
    copy.config["source.cluster.bootstrap.servers"] = "127.0.0.1:1"
    ran = copy.run(tmp_path, "--yes", timeout=3, idle="1s")
    assert (ran.code, json.loads(ran.err)["error"]["message"]) == (
        5,
        "Cannot read the source cluster east",
    )
    there = AdminClient({"bootstrap.servers": copy.bootstrap}).list_topics(timeout=120).topics
    assert [topic for topic in there if copy.name in topic] == [copy.topic]


@pytest.mark.usefixtures("without_spark")
def test_a_worker_and_a_run_take_turns_in_one_topic_and_every_record_is_there_once(
    cluster: Sandbox, tmp_path: Path
) -> None:
    copy = Copy(cluster)
    copy.config |= {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "target.cluster.bootstrap.servers": copy.bootstrap,
        "source.consumer.isolation.level": "read_committed",
        "replication.factor": "1",
        **dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES),
        "emit.offset-syncs.enabled": "false",
    }
    copy.nulls = False  # each record says where it belongs, for the audit
    copy.write(300, 200)
    with connector(cluster, copy.name, copy.config) as rest:
        eventually(
            lambda: (
                [o["offset"]["offset"] for o in rest.offsets(copy.name)] in ([299, 199], [199, 299])
            )
        )
        rest.call("PUT", f"/connectors/{copy.name}/pause")
        eventually(lambda: set(rest.state(copy.name)) == {"PAUSED"})
        copy.write(50, 70)
        ran = copy.run(tmp_path, "--take-over", "--yes", own=False, idle="2s")
        assert ran.code == 0, ran.err
        assert ran.json["records"] == 120
        # Its batches are small: each is one of those that are put together, and counted.
        assert sum(task["metrics"]["copy-batch-opened-total"] for task in ran.json["tasks"]) >= 12
        assert rest.state(copy.name)[0] == "PAUSED"
        copy.write(30, 20)
        rest.call("PUT", f"/connectors/{copy.name}/resume")
        eventually(copy.all_there)
        time.sleep(1)
        assert copy.all_there()
        places = {
            (o["partition"]["cluster"], o["partition"]["partition"])
            for o in rest.offsets(copy.name)
        }
        assert places == {("east", 0), ("east", 1)}
        eventually(
            lambda: sorted(o["offset"]["offset"] for o in rest.offsets(copy.name)) == [289, 379]
        )
        wish = ("--sequence", "$.seq", "--by", "partition", "--first", "0")
        audit = connectctl(
            "--context", f"sandbox-{cluster.spec.name}", "audit", copy.remote, *wish, "-o", "json"
        )
        assert (audit.code, audit.json["verdict"]) == (0, "exactly-once"), audit.out + audit.err


class Copied(Place):
    """A job that copies the topics of ``copy``, in a process of its own without Spark."""

    program = (localrun.__file__,)

    def __init__(self, cluster: Sandbox, directory: Path, copy: Copy):
        super().__init__(cluster, directory)
        self.copy, self.config = copy, copy.config

    def rows(self, topic: str, partitions: int) -> list[int]:
        """Return the number of records in each partition of a remote topic; none before it has
        ``partitions``.
        """
        found = (
            AdminClient({"bootstrap.servers": self.copy.bootstrap})
            .list_topics(timeout=30)
            .topics.get(topic)
        )
        there = found is not None and len(found.partitions) == partitions
        return [len(each) for each in self.copy.seen(topic)] if there else []


def test_topics_and_partitions_that_appear_while_it_runs_are_copied_from_their_beginning(
    cluster: Sandbox, tmp_path: Path
) -> None:
    copy = Copy(cluster, 1, {"refresh.topics.interval.seconds": "2"})
    later = f"{copy.name}-later"
    copy.config["topics"] = f"{copy.name}-(in|later)"
    place = Copied(cluster, tmp_path, copy)
    copy.write(5)
    with place.running() as run:
        eventually(lambda: place.rows(copy.remote, 1) == [5] or run.poll() is not None)
        create_topic(copy.bootstrap, later, 2, "delete")
        write(copy.bootstrap, later, ("a", "1"), ("b", "2"), partition=1)
        admin = AdminClient({"bootstrap.servers": copy.bootstrap})
        admin.create_partitions([NewPartitions(copy.topic, 3)])[copy.topic].result()
        copy.written += [0, 0]
        eventually(lambda: len(copy.seen(copy.topic)) == 3)
        copy.write(5, 5, 5)
        eventually(lambda: place.rows(copy.remote, 3) == [10, 5, 5] or run.poll() is not None)
        eventually(lambda: place.rows(f"east.{later}", 2) == [0, 2] or run.poll() is not None)
        eventually(lambda: _partitions(place) == 5 or run.poll() is not None)
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert json.loads(out)["records"] == 22
    assert f"{place.name} continues with 2 tasks: topics or partitions have changed" in err
    assert copy.all_there()
    assert len(place.standing().tasks) == 2


def _partitions(place: Copied) -> int:
    """Return the number of partitions that the tasks copy, by ``run status``."""
    found = [task["metrics"] or {} for task in place.status()["tasks"]]
    return int(sum(metrics.get("copy-partition-count", 0) for metrics in found))
