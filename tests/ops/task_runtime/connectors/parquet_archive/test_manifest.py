"""What the manifest's records say, and what they may not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive import manifest
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import (
    ArchivedFile,
    ends_of,
    files_of,
    read_manifest,
)

FILE = ArchivedFile("t", 0, 5, 9, 4, 1234, "t/0/5-9-x.parquet")


def stored(*files: ArchivedFile) -> list[ConsumerRecord]:
    made = [each.record("a-archive") for each in files]
    return [ConsumerRecord(each.key, each.value, 0, n) for n, each in enumerate(made)]


def test_a_record_says_where_a_file_is_and_what_it_has() -> None:
    record = FILE.record("a-archive")
    assert record.key == b'{"topic":"t","partition":0,"first":5}'
    assert record.value == b'{"file":"t/0/5-9-x.parquet","first":5,"last":9,"rows":4,"bytes":1234}'


def test_files_come_in_the_order_of_their_offsets() -> None:
    later, other = replace(FILE, first=10, last=10), replace(FILE, topic="s", first=0)
    gone = ConsumerRecord(b"k", None, 0, 9)
    assert files_of([*stored(later, FILE, other), gone]) == (other, FILE, later)
    assert ends_of([later, FILE, other]) == {TopicPartition("t", 0): 11, TopicPartition("s", 0): 10}


def test_two_files_with_the_same_offsets_are_refused() -> None:
    with pytest.raises(
        ConnectctlError, match=r"offsets of t-0 twice: t/0/5-9-x\.parquet and y overlap"
    ):
        files_of(stored(FILE, replace(FILE, first=9, last=12, name="y")))


@pytest.mark.parametrize("value", [b"{", b"[]", b'{"file": "x"}', b"7"])
def test_a_record_of_something_else_is_named(value: bytes) -> None:
    with pytest.raises(
        ConnectctlError, match="Record 0:3 of the manifest topic does not describe a file"
    ):
        files_of([ConsumerRecord(b'{"topic":"t","partition":0,"first":5}', value, 0, 3)])


@dataclass
class Manifests:
    """A cluster whose only topic is ``image``'s, in place of ``Kafka``."""

    image_: TopicImage

    def image(self, topics: Sequence[str], *, patience: float) -> dict[str, TopicImage]:
        return {self.image_.topic: self.image_} if self.image_.topic in topics else {}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Manifests:
    made = Manifests(TopicImage("a-archive", 1, stored(FILE), {0: 1}))
    monkeypatch.setattr(manifest, "Kafka", lambda client, timeout: made)
    return made


def test_a_manifest_is_read_to_its_end_or_not_at_all(cluster: Manifests) -> None:
    assert read_manifest({}, "a-archive") == (FILE,)
    cluster.image_ = replace(cluster.image_, held_back=(UnreadTail(0, 1, 3),))
    with pytest.raises(TimedOut, match=r"Could not read a-archive to its end \(open transaction\)"):
        read_manifest({}, "a-archive")


@pytest.mark.usefixtures("cluster")
def test_an_archive_that_is_not_there_is_not_an_empty_one() -> None:
    with pytest.raises(BadInput, match="The manifest topic b-archive does not exist"):
        read_manifest({}, "b-archive")
