"""A backup of many connectors reads each topic once, and goes through it as often as one of few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from connectctl.ops.edges.contract import HeldBack, Record, TopicImage
from connectctl.ops.errors import BadInput, ConnectctlError
from connectctl.ops.model.partitioning import java_partition
from connectctl.ops.offsets import dump
from connectctl.ops.offsets.assemble import assemble
from connectctl.ops.offsets.backup import everything
from connectctl.ops.offsets.decide import by_connector, place
from connectctl.ops.offsets.observe import Sources
from connectctl.ops.offsets.saved import backup_lines
from connectctl.ops.offsets.snapshot import ReadTopic, Workers
from connectctl.ops.offsets.snapshot import Wish as Look
from fakes.counted import Counted
from fakes.kafkareads import FakeKafka, records

CLASS = {"connector.class": "x.Source"}


class Kafka(FakeKafka):
    """Counts readings, and how often the records of the global topic are gone through."""

    held = False

    def image(self, topics: Sequence[str], *, patience: float, superseded: bool = False) -> dict[str, TopicImage]:
        self.asked = [*getattr(self, "asked", []), *topics]
        found = super().image(topics, patience=patience, superseded=superseded)
        found = {topic: replace(image, latest=Counted(image.latest)) for topic, image in found.items()}
        if self.held:
            found["ofs"] = replace(found["ofs"], held_back=(HeldBack(0, 1, 9),))
        self.images = found
        return found


def world(count: int, **more: dict[str, str]) -> tuple[Kafka, Sources]:
    configs = [(f"connector-c{n}", {"properties": CLASS}) for n in range(count)]
    configs += [(f"connector-{name}", {"properties": config}) for name, config in more.items()]
    offsets = [(f'["c{n}",{{"t":{m}}}]', {"at": m}) for n in range(count) for m in range(3)]
    kafka = Kafka({"cfg": records(*configs), "ofs": records(*offsets, ("odd", {}), ('["gone",{}]', {"at": 1}))})
    return kafka, Sources(kafka, "b:1", "cfg", "ofs", lambda b, o: kafka, Workers, 1.0)


def test_many_connectors_are_saved_from_one_reading_of_their_topic() -> None:
    kafka, sources = world(100, snk={"connector.class": "x.Sink"}, idle=CLASS)
    found = everything(sources, ())
    assert sorted(found) == sorted([*(f"c{n}" for n in range(100)), "gone", "idle"])
    assert sum(len(list(backup_lines(places))) for places in found.values()) == 301
    latest = kafka.images["ofs"].latest
    assert isinstance(latest, Counted)
    assert (kafka.asked, latest.passes) == (["cfg", "ofs"], 1)


def test_each_connector_gets_what_it_would_get_alone() -> None:
    kafka, _ = world(5)
    topic = ReadTopic(kafka.image(["ofs"], patience=0)["ofs"], "global")
    known = by_connector(topic)
    for name in ("c0", "c4", "gone", "nobody"):
        assert place(topic, name, known=known) == place(topic, name)


@pytest.mark.parametrize("name", ["snk", "c77"])
def test_a_sink_and_a_name_that_nobody_knows_are_bad_input(name: str) -> None:
    _, sources = world(2, snk={"connector.class": "x.Sink"})
    with pytest.raises(BadInput):
        everything(sources, ("c0", name))


@pytest.mark.parametrize("names", [(), ("c0",), ("c0", "c1")])
def test_what_an_open_transaction_hides_is_saved_by_nobody(names: tuple[str, ...]) -> None:
    kafka, sources = world(2)
    kafka.held = True
    with pytest.raises(ConnectctlError, match="seen whole"):
        everything(sources, names)


def test_a_dump_that_goes_by_partitions_shows_how_many_there_were_and_nothing_odd() -> None:
    keys = [f'["orders",{{"t":{n}}}]'.encode() for n in range(15_000)]
    by_partition = sorted((java_partition(key, 5), key) for key in keys)
    saved = [Record(key, b'{"at":1}', partition, n) for n, (partition, key) in enumerate(by_partition)]
    look = Look()
    snapshot = dump.snapshot({"ofs": saved}, "dump", None, look)
    assert snapshot.global_topic is not None
    assert len(snapshot.global_topic.image.end_offsets) == 5
    assert assemble(snapshot, look).findings == ()
