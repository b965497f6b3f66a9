"""A backup of many connectors reads each topic once, and goes through it as often as one of few."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.operations.offsets import topic_dump
from connectctl.ops.operations.offsets.backup import backup_of, states_by_connector
from connectctl.ops.operations.offsets.dump_lines import lines_of
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, ReadTopic, WorkerFacts
from connectctl.ops.operations.offsets.topic_dump import backup_lines
from connectctl.ops.operations.offsets.topic_state import by_connector, topic_state
from fakes.counted import Counted
from fakes.kafkareads import FakeKafka, records

CLASS = {"connector.class": "x.Source"}


class Kafka(FakeKafka):
    """Counts readings, and how often the records of the global topic are gone through."""

    held = False

    def image(
        self,
        topics: Sequence[str],
        *,
        patience: float,
        superseded: bool = False,
        includes: Any = None,
    ) -> dict[str, TopicImage]:
        self.asked = [*getattr(self, "asked", []), *topics]
        found = super().image(topics, patience=patience, superseded=superseded, includes=includes)
        found = {
            topic: replace(image, latest=Counted(image.latest)) for topic, image in found.items()
        }
        if self.held:
            found["ofs"] = replace(found["ofs"], held_back=(UnreadTail(0, 1, 9),))
        self.images = found
        return found


def world(count: int, **more: dict[str, str]) -> tuple[Kafka, Sources]:
    configs = [(f"connector-c{n}", {"properties": CLASS}) for n in range(count)]
    configs += [(f"connector-{name}", {"properties": config}) for name, config in more.items()]
    offsets = [(f'["c{n}",{{"t":{m}}}]', {"at": m}) for n in range(count) for m in range(3)]
    kafka = Kafka(
        {
            "cfg": records(*configs),
            "ofs": records(*offsets, ("odd", {}), ('["gone",{}]', {"at": 1})),
        }
    )
    return kafka, Sources(kafka, "b:1", "cfg", "ofs", lambda b, o: kafka, WorkerFacts, 1.0)


def test_many_connectors_are_saved_from_one_reading_of_their_topic() -> None:
    kafka, sources = world(100, snk={"connector.class": "x.Sink"}, idle=CLASS)
    found = states_by_connector(sources, observe(sources, OffsetsQuery(())), ())
    assert sorted(found) == sorted([*(f"c{n}" for n in range(100)), "gone", "idle"])
    assert sum(len(list(backup_lines(places))) for places in found.values()) == 301
    latest = kafka.images["ofs"].latest
    assert isinstance(latest, Counted)
    assert (kafka.asked, latest.passes) == (["cfg", "ofs"], 1)


@pytest.mark.parametrize("names", [("c0",), ("gone", "c1", "snk", "own"), ("idle",)])
def test_a_backup_of_some_connectors_has_their_lines_of_the_backup_of_all(
    names: tuple[str, ...],
) -> None:
    kafka, sources = world(
        3,
        snk={"connector.class": "x.Sink"},
        idle=CLASS,
        own=CLASS | {"offsets.storage.topic": "own"},
    )
    keys = [
        f'["{name}",{{"t":{n}}}]'
        for name in ("own", "c1", "snk", "a\\u0062")
        for n in ("1", '"é"', "1.5", "{}")
    ]
    kafka.records["own"] = records(*[(key, {"at": 1}) for key in keys], ("[1]", {}))
    kafka.records["ofs"] += (
        *records(*[(key, {"at": 2}) for key in keys]),
        ConsumerRecord(b"\xff", None, 0, 99),
    )
    kafka.records["ofs"] += (
        ConsumerRecord(b'["c1",null]', b"\xff", 0, 100, 5),
        ConsumerRecord(b'["c1",{}]', None, 1, 0),
    )
    kafka.partitions["ofs"] = 2
    _, every, _ = backup_of(sources, ())
    found, some, sinks = backup_of(sources, names)
    assert sorted(some) == sorted(
        line for line in every if json.loads(json.loads(line)["key"])[0] in {*names} - {"snk"}
    )
    assert (found, [sink.name for sink in sinks]) == (
        {*names} - {"snk"},
        ["snk"] * ("snk" in names),
    )


def test_a_backup_is_json() -> None:
    odd = [
        ConsumerRecord(b"\xff", '\u2028\x7f\\"é'.encode(), 3, 4, 5),
        ConsumerRecord(None, None, 0, 0),
    ]
    found = [json.loads(line) for line in lines_of(odd, 'a"b', "b:1")]
    where = {"topic": 'a"b', "bootstrapServers": "b:1"}
    assert found == [
        where
        | {
            "partition": 3,
            "offset": 4,
            "timestamp": 5,
            "keyBase64": "/w==",
            "value": '\u2028\x7f\\"é',
        },
        where | {"partition": 0, "offset": 0, "timestamp": None, "key": None, "value": None},
    ]


def test_each_connector_gets_what_it_would_get_alone() -> None:
    kafka, _ = world(5)
    topic = ReadTopic(kafka.image(["ofs"], patience=0)["ofs"], "global")
    known = by_connector(topic)
    for name in ("c0", "c4", "gone", "nobody"):
        assert topic_state(topic, name, known=known) == topic_state(topic, name)


@pytest.mark.parametrize("name", ["snk", "c77"])
def test_a_sink_and_a_name_that_nobody_knows_are_bad_input(name: str) -> None:
    _, sources = world(2, snk={"connector.class": "x.Sink"})
    with pytest.raises(BadInput):
        states_by_connector(sources, observe(sources, OffsetsQuery(("c0", name))), ("c0", name))


@pytest.mark.parametrize("names", [(), ("c0",), ("c0", "c1")])
def test_what_an_open_transaction_hides_is_saved_by_nobody(names: tuple[str, ...]) -> None:
    kafka, sources = world(2)
    kafka.held = True
    with pytest.raises(
        ConnectctlError, match="Could not read all offsets: an open transaction blocks reading"
    ):
        states_by_connector(sources, observe(sources, OffsetsQuery(names)), names)


def test_a_dump_that_goes_by_partitions_shows_how_many_there_were_and_nothing_odd() -> None:
    keys = [f'["orders",{{"t":{n}}}]'.encode() for n in range(15_000)]
    by_partition = sorted((java_partition(key, 5), key) for key in keys)
    saved = [
        ConsumerRecord(key, b'{"at":1}', partition, n)
        for n, (partition, key) in enumerate(by_partition)
    ]
    look = OffsetsQuery()
    snapshot = topic_dump.snapshot({"ofs": saved}, "dump", None, look)
    assert snapshot.global_topic is not None
    assert len(snapshot.global_topic.image.end_offsets) == 5
    assert assemble(snapshot, look).findings == ()
