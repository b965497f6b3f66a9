"""Offsets of Kafka's own connectors beside ``PATCH …/offsets`` of a real worker, and what a mirror
makes of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer
from connectctl.ops.connect.offset_rules import validator_of
from fakes.offsetcases import CASES, CONFIGS, SOURCE, Case
from live.offsetchanges import changed, ctl, live
from live.real import connector, create_topic, eventually, workers, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
REFUSED = 4
FAILED = 500
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def name_of(kind: str) -> str:
    return f"rules-{kind.rpartition('.')[2].lower()}"


def config_of(cluster: Sandbox, kind: str) -> dict[str, str]:
    """The configuration of a connector of ``kind`` between this cluster and itself."""
    brokers = cluster.bootstrap_servers
    own = {name: brokers for name in CONFIGS[kind] if name.endswith("bootstrap.servers")}
    return {"tasks.max": "1", **CONFIGS[kind], **own}


@pytest.fixture(scope="module")
def stopped(cluster: Sandbox) -> Iterator[None]:
    """A stopped connector of each of Kafka's classes."""
    with ExitStack() as stack:
        for kind in CONFIGS:
            stack.enter_context(
                connector(cluster, name_of(kind), config_of(cluster, kind), "STOPPED")
            )
        yield


def patched(cluster: Sandbox, kind: str, partition: Any, offset: Any) -> int:
    """The status of a worker's answer."""
    body = {"offsets": [{"partition": partition, "offset": offset}]}
    return workers(cluster).call("PATCH", f"/connectors/{name_of(kind)}/offsets", body).status_code


def test_a_worker_accepts_what_is_accepted_and_refuses_what_is_refused(
    cluster: Sandbox, stopped: None
) -> None:
    """Only a source partition that no task asks for is refused although a worker accepts it."""
    answers = {
        case.name: patched(cluster, case.kind, case.partition, case.offset) for case in CASES
    }
    assert answers == {case.name: 200 if case.worker else FAILED for case in CASES}
    for case in CASES:
        accepts = validator_of(CONFIGS[case.kind], ()).problem(case.partition, case.offset) is None
        assert accepts == (case.says is None), case.name
        assert case.worker or not accepts, case.name


def offsets(case: Case) -> str:
    return json.dumps({"offsets": [{"partition": case.partition, "offset": case.offset}]})


def test_set_refuses_for_a_stopped_mirror_what_its_workers_refuse(
    cluster: Sandbox, stopped: None
) -> None:
    name, case = name_of(SOURCE), CASES[0]
    before = live(cluster, cluster.topics["offsets"], name)
    args = ("offsets", "set", name, "-f", "-", "--yes")
    said = ctl(cluster, *args, code=REFUSED, stdin=offsets(case)).err
    assert (
        'partition is the string "0", and the connector requires an integer from 0 to 2147483647'
        in said
    )
    assert live(cluster, cluster.topics["offsets"], name) == before
    ctl(cluster, *args, "--force", stdin=offsets(case))
    assert len(live(cluster, cluster.topics["offsets"], name)) == len(before) + 1


def test_a_mirror_resumes_where_it_was_set_and_copies_nothing_twice(cluster: Sandbox) -> None:
    """The public report: five records, a start at 3; a partition that is a string made the mirror
    start at 0.
    """
    topic, name = (
        create_topic(cluster.bootstrap_servers, "rules-orders", 1, "delete"),
        "rules-mirror",
    )
    write(cluster.bootstrap_servers, topic, *((b"k", b"%d" % n) for n in range(5)))
    config = config_of(cluster, SOURCE) | {
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "key.converter": BYTES,
        "value.converter": BYTES,
    }
    partition = {"cluster": "live", "topic": topic, "partition": 0}
    with connector(cluster, name, config, "STOPPED") as rest:
        text = json.dumps(
            {"offsets": [{"partition": partition | {"partition": "0"}, "offset": {"offset": 2}}]}
        )
        ctl(cluster, "offsets", "set", name, "-f", "-", "--yes", code=REFUSED, stdin=text)
        changed(cluster, "set", name, "-f", "-", stdin=text.replace('"0"', "0"))
        rest.call("PUT", f"/connectors/{name}/resume")
        assert eventually(lambda: copies(cluster, f"live.{topic}")) == [b"3", b"4"]


def copies(cluster: Sandbox, topic: str) -> list[bytes | None]:
    """The values of a topic, once the last record is there."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "rules-copies",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        if topic not in consumer.list_topics(timeout=120).topics:
            return []
        consumer.subscribe([topic])
        found: list[bytes | None] = []
        while (message := consumer.poll(15)) is not None:
            found += [] if message.error() else [message.value()]
            if found[-1:] == [b"4"]:
                return found
        return []
    finally:
        consumer.close()
