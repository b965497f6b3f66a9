"""One look reads a topic once, and never takes what an open transaction cut short for all there
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from connectctl.ops.connect import config_topic
from connectctl.ops.kafka.records import TopicImage, UnreadTail
from connectctl.ops.operations.cluster.observe import observe_cluster
from connectctl.ops.operations.cluster.read_once import read_once
from connectctl.ops.operations.connectors.observe import connector_listing
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.workers import FakeConnector, FakeWorkers

NAMES = ("config", "offsets", "status")
NOBODY: dict[str, str | None] = dict.fromkeys(NAMES)


class Reads(FakeKafka):
    """Notes each topic that is read whole, with ``+`` where all its records were asked for."""

    held = False

    def image(
        self,
        topics: Sequence[str],
        *,
        patience: float,
        superseded: bool = False,
        includes: Any = None,
    ) -> dict[str, TopicImage]:
        self.seen = [*getattr(self, "seen", []), *(t + "+" * superseded for t in topics)]
        found = super().image(topics, patience=patience, superseded=superseded, includes=includes)
        held = (UnreadTail(0, 1, 9),) if self.held else ()
        return {topic: replace(image, held_back=held) for topic, image in found.items()}


def kafka() -> Reads:
    config = records(
        ("connector-a", {"properties": {"connector.class": "x.y.Source"}}),
        ("task-a-0", {"properties": {"connector.class": "x.y.Source"}}),
        ("commit-a", {"tasks": 1}),
    )
    status = records(("status-connector-a", {"state": "RUNNING", "worker_id": "one:8083"}))
    return Reads(
        {"cfg": config, "sts": status, "ofs": records(('["a",{"f":1}]', {"p": 1}))},
        groups={"connect": connect_group(offset=3, one=[("a", -1), ("a", 0)])},
    )


def test_an_image_that_was_read_is_everybodys() -> None:
    reads = kafka()
    once = read_once(read_once(reads))
    first = once.image(["cfg"], patience=0)["cfg"]
    assert once.image(["cfg", "sts"], patience=9)["cfg"] is first
    assert reads.seen == ["cfg", "sts"]
    assert once.image(["none"], patience=0) == {}


def test_older_records_cost_one_more_reading_and_no_second_understanding() -> None:
    reads = kafka()
    once = read_once(reads)
    state = config_topic.state_of(once.image(["cfg"], patience=0)["cfg"])
    assert config_topic.state_of(once.image(["cfg"], patience=0, superseded=True)["cfg"]) is state
    assert config_topic.state_of(once.image(["cfg"], patience=0)["cfg"]) is state
    reads.records["cfg"] += records(("connector-b", {"properties": {}}))
    assert reads.seen == ["cfg", "cfg+"]


def test_what_open_transactions_held_back_is_read_again() -> None:
    reads = kafka()
    once = read_once(reads)
    reads.held = True
    assert once.image(["cfg"], patience=0)["cfg"].held_back
    reads.held = False
    assert not once.image(["cfg"], patience=0)["cfg"].held_back


def test_a_look_at_a_cluster_reads_its_config_topic_once() -> None:
    reads = kafka()
    view = observe_cluster(
        reads, FakeWorkers({"a": FakeConnector()}), reads.groups["connect"], NOBODY
    )
    assert [judged.connector.target_state for judged in view.connectors] == ["STARTED"]
    assert [topic for topic in reads.seen if topic.startswith("cfg")] == ["cfg+"]


def test_a_list_of_connectors_reads_their_config_topic_once() -> None:
    reads = kafka()
    seen = connector_listing(
        FakeWorkers({"a": FakeConnector()}), reads, reads.groups["connect"], NOBODY
    )
    assert [judged.connector.committed_tasks for judged in seen.connectors] == [1]
    assert [topic for topic in reads.seen if topic == "cfg"] == ["cfg"]
