"""``run --sweep``: which files are removed, and when nothing is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from connectctl.ops.connect.run_presence import Holder
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, Refused, TimedOut
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import (
    ArchiveLocation,
    OrphanFile,
    plan_sweep,
)
from fakes.kafkareads import FakeKafka
from fakes.orphans import GROUP, Place, manifest, name


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_files_that_the_manifest_does_not_name_are_removed(place: Place) -> None:
    assert place.sweeper.orphans() == (OrphanFile(place.orphan, 1),)
    assert place.remove(place.orphan) == "1 file of 1 bytes removed"
    assert place.there == {name(0, 4), name(5, 9)}
    assert place.sweeper.orphans() == ()


def test_a_young_file_one_behind_the_archives_end_and_those_of_others_are_kept(
    place: Place,
) -> None:
    place.put(name(1, 2, "c"), age=60)
    place.put(name(10, 12, "c"), "t/0/notes.txt")
    assert place.sweeper.names() == {place.orphan}


def test_members_of_the_group_and_a_live_run_are_named_and_nothing_is_removed(place: Place) -> None:
    place.groups.members[GROUP] = ["consumer-1"]
    with pytest.raises(Refused, match=r"members of the group connect-a: consumer-1 at 10\.0\.0\.1"):
        place.remove(place.orphan)
    place.groups.newer.add(GROUP)  # KIP-848: without names
    with pytest.raises(Refused, match="state Stable"):
        place.remove(place.orphan)
    place.groups.members.clear()
    place.kafka.runs["connect", "a"] = (Holder("c", "host-1", 42, 0.0),)
    with pytest.raises(Refused, match="its run: process 42 on host-1"):
        place.remove(place.orphan)
    assert place.orphan in place.there


def held_back(self: FakeKafka, topics: Iterable[str], **more: object) -> dict[str, TopicImage]:
    return {topic: TopicImage(topic, 0, (), {0: 3}, (UnreadTail(0, 1, 3),)) for topic in topics}


@pytest.mark.parametrize(
    "blind", ["group", "no manifest", "unread", "open transaction", "not a manifest"]
)
def test_nothing_is_removed_on_a_blind_look(
    place: Place, blind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raises: type[ConnectctlError] = ConnectctlError
    if blind == "group":
        place.groups.hidden.add(GROUP)
        raises = NotAuthorized
    elif blind == "no manifest":
        del place.kafka.records["a-archive"]
        raises = BadInput
    elif blind == "unread":
        place.kafka.forbidden.add("a-archive")
        raises = NotAuthorized
    elif blind == "open transaction":
        monkeypatch.setattr(FakeKafka, "image", held_back)
        raises = TimedOut
    else:
        place.kafka.records["a-archive"].append(ConsumerRecord(b"k", b"v", 0, 9))
    with pytest.raises(raises):
        place.remove(place.orphan)
    assert place.orphan in place.there


def test_the_directory_of_another_archive_is_refused(place: Place) -> None:
    (place.directory / name(0, 4)).unlink()
    with pytest.raises(Refused, match="1 of 2 files that a-archive names are not in"):
        place.sweeper.orphans()


def test_files_of_another_archive_in_the_same_directory_are_kept(place: Place) -> None:
    place.kafka.records["b-archive"] = [
        *manifest((0, 3), connector="b", unique="b"),
        ConsumerRecord(b"k", b"v", 0, 9),
    ]
    assert place.sweeper.orphans() == ()
    place.kafka.forbidden.add("b-archive")
    with pytest.raises(NotAuthorized):
        place.sweeper.orphans()
    # what somebody else calls an archive
    place.kafka.config["b-archive"] = {"cleanup.policy": "delete"}
    assert place.sweeper.names() == {place.orphan}


def test_what_is_committed_since_the_plan_was_made_is_kept(place: Place) -> None:
    place.put(name(6, 7, "c"))
    agreed = [each.name for each in place.sweeper.orphans()]
    place.kafka.records["a-archive"] = manifest((0, 4), (5, 9)) + manifest((10, 12), unique="c")
    place.put(name(10, 12, "c"))
    assert place.remove(*agreed, name(10, 12, "c"), name(0, 4)) == "2 files of 2 bytes removed"
    assert place.there == {name(0, 4), name(5, 9), name(10, 12, "c")}


def test_a_plan_says_how_many_files_and_bytes_or_that_there_are_none() -> None:
    location = ArchiveLocation("a", "/d", GROUP)
    plan = plan_sweep("k", "connect", location, [OrphanFile("x", 1000), OrphanFile("y", 500)])
    assert [step.describe() for step in plan.steps] == ["remove 2 files of 1,500 bytes from /d"]
    nothing = plan_sweep("k", "connect", location, [])
    assert (nothing.steps, nothing.noops[0].why) == (
        (),
        "/d has no file that can be removed by a-archive",
    )
