"""Where partitions begin and end: what is no answer is asked for again, and never taken for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from connectctl.ops.clients import connection_errors
from connectctl.ops.clients.librdkafka import partition_offsets
from connectctl.ops.clients.librdkafka.partition_offsets import (
    end_offsets,
    offsets_at,
    read_extents,
)
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    TimedOut,
    Unreachable,
)
from connectctl.ops.kafka.topics import KnownEnds, OffsetRange
from fakes.admin import Answer, FakeAdmin, FakeKafka

WHOLE = {"t": {0: 5, 1: 5}}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once, and look up no address: there is no machine of this name."""
    monkeypatch.setattr(connection_errors, "first_cause", lambda addresses, context: None)
    monkeypatch.setattr(partition_offsets, "PAUSE", 0.0)


NO_OFFSETS: dict[str, Answer | None] = {
    "an offset that librdkafka was not given": -1001,
    "an offset that is unknown": -1,
    "the place of a stored offset": -1000,
    "a partition without an answer": None,
    "an answer that is cut off": RuntimeError(
        "Results length 1 is different from future-list length 2"
    ),
    "a leader that has just died": "_TRANSPORT",
    "a request that took too long": "_TIMED_OUT",
    "a partition without a leader": "LEADER_NOT_AVAILABLE",
    "a broker that leads no more": "NOT_LEADER_FOR_PARTITION",
    "a leader that has not caught up": "OFFSET_NOT_AVAILABLE",
    "an epoch of before a restart": "FENCED_LEADER_EPOCH",
    "a partition that a broker does not know yet": "UNKNOWN_TOPIC_OR_PART",
}


@pytest.mark.parametrize("answer", NO_OFFSETS.values(), ids=NO_OFFSETS)
def test_what_is_no_offset_is_asked_for_again(answer: Answer | None) -> None:
    kafka = FakeKafka(
        FakeAdmin(offsets=lambda asked, place: answer if asked < 4 and place.partition == 1 else 5)
    )
    assert end_offsets(kafka, ["t"]) == WHOLE
    assert (kafka.fake.listed, kafka.renewed) == (4, 3)


@pytest.mark.parametrize("answer", NO_OFFSETS.values(), ids=NO_OFFSETS)
def test_what_stays_no_offset_is_an_error_that_names_the_partition(answer: Answer | None) -> None:
    kafka = FakeKafka(
        FakeAdmin(offsets=lambda asked, place: answer if place.partition == 1 else 5), timeout=0.02
    )
    with pytest.raises(TimedOut, match="The end of t-1 could not be determined"):
        end_offsets(kafka, ["t"])


NO_METADATA: dict[str, Sequence[int] | str] = {
    "no partitions": [],
    "a partition is missing in the middle": [0, 2],
    "the first partition is missing": [1],
    "the topic has no leaders yet": "LEADER_NOT_AVAILABLE",
    "the broker has just gone": "_TRANSPORT",
    "the answer took too long": "_TIMED_OUT",
    "the broker does not know it yet": "UNKNOWN_TOPIC_OR_PART",
}


@pytest.mark.parametrize("known", NO_METADATA.values(), ids=NO_METADATA)
def test_half_an_answer_about_a_topic_is_none(known: Sequence[int] | str) -> None:
    kafka = FakeKafka(FakeAdmin(lambda asked, topic: known if asked < 3 else [0, 1]))
    assert end_offsets(kafka, ["t"]) == WHOLE
    assert kafka.fake.described == 3


@pytest.mark.parametrize("known", [[], [0, 2], "LEADER_NOT_AVAILABLE"])
def test_half_an_answer_that_stays_is_an_error_that_names_the_topic(
    known: Sequence[int] | str,
) -> None:
    with pytest.raises(TimedOut, match="The partitions of t could not be determined"):
        end_offsets(FakeKafka(FakeAdmin(lambda asked, topic: known), timeout=0.02), ["t"])


def test_nobody_who_answers_is_told_as_such() -> None:
    with pytest.raises(Unreachable, match="Kafka at h:1 does not answer"):
        end_offsets(FakeKafka(FakeAdmin(lambda asked, topic: "_TRANSPORT"), timeout=0.02), ["t"])


def test_a_topic_does_not_lose_partitions() -> None:
    counts = iter([3, 2, 2, 3])
    kafka = FakeKafka(FakeAdmin(lambda asked, topic: range(next(counts))))
    assert kafka.partitions("t") == [0, 1, 2]
    assert sorted(end_offsets(kafka, ["t"])["t"]) == [0, 1, 2]
    kafka = FakeKafka(FakeAdmin(lambda asked, topic: range(3 if asked == 1 else 2)), timeout=0.02)
    assert kafka.partitions("t") == [0, 1, 2]
    with pytest.raises(TimedOut, match="metadata has 2 partitions of it, and had 3 before"):
        end_offsets(kafka, ["t"])


def test_one_that_was_made_anew_may_have_fewer() -> None:
    kafka = FakeKafka(
        FakeAdmin(
            lambda asked, topic: range(3 if asked == 1 else 2), ids=lambda asked: f"id-{asked}"
        )
    )
    assert kafka.partitions("t") == [0, 1, 2]
    assert end_offsets(kafka, ["t"]) == WHOLE


def test_one_that_stays_unknown_is_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_offsets, "NEW_TOPIC", 0.01)
    with pytest.raises(BadInput, match=r"Topic not found: t \(Kafka at h:1\)"):
        end_offsets(FakeKafka(FakeAdmin(lambda asked, topic: "UNKNOWN_TOPIC_OR_PART")), ["t"])


def test_what_waiting_does_not_mend_is_an_error_at_once() -> None:
    admin = FakeAdmin(lambda asked, topic: "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(NotAuthorized):
        end_offsets(FakeKafka(admin), ["t"])
    admin = FakeAdmin(offsets=lambda asked, place: "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(NotAuthorized):
        end_offsets(FakeKafka(admin), ["t"])


# ---------------------------------------------------------------- an end below what was seen before


def test_an_end_below_what_was_read_is_asked_for_again() -> None:
    kafka = FakeKafka(
        FakeAdmin(offsets=lambda asked, place: 3 if asked < 4 and place.partition == 1 else 5)
    )
    assert end_offsets(kafka, ["t"], {"t": KnownEnds("id-1", (5, 4))}) == WHOLE
    assert kafka.fake.listed == 4


def test_an_end_that_stays_below_is_no_end() -> None:
    kafka = FakeKafka(FakeAdmin(offsets=lambda asked, place: 3), timeout=0.02)
    with pytest.raises(
        TimedOut, match="t-1 could not be determined: it ends at 3 and was read up to 4"
    ):
        end_offsets(kafka, ["t"], {"t": KnownEnds("id-1", (3, 4))})


def test_an_end_below_the_beginning_is_no_end() -> None:
    kafka = FakeKafka(FakeAdmin(offsets=lambda asked, place: 0, begins=2), timeout=0.02)
    with pytest.raises(TimedOut, match="t-0 could not be determined: it ends at 0 and begins at 2"):
        end_offsets(kafka, ["t"])


def test_a_partition_that_was_read_and_is_not_there_is_no_end() -> None:
    answers: dict[int, Any] = {0: 5, 1: 5, 2: "UNKNOWN_TOPIC_OR_PART"}
    kafka = FakeKafka(
        FakeAdmin(offsets=lambda asked, place: answers[place.partition]), timeout=0.02
    )
    with pytest.raises(TimedOut, match="The end of t-2 could not be determined"):
        end_offsets(kafka, ["t"], {"t": KnownEnds("id-1", (5, 5, 1))})


def test_a_topic_made_anew_is_named_as_such_at_once() -> None:
    with pytest.raises(
        ConnectctlError, match="The topic t was deleted and created again while it was in use"
    ) as raised:
        end_offsets(FakeKafka(FakeAdmin()), ["t"], {"t": KnownEnds("id-0", (9, 9))})
    assert (raised.value.code, type(raised.value)) == ("topic-recreated", ConnectctlError)


def test_brokers_without_topic_ids_are_believed_by_their_ends() -> None:
    kafka = FakeKafka(FakeAdmin(ids=lambda asked: None))
    assert end_offsets(kafka, ["t"], {"t": KnownEnds("id-0", (5, 5))}) == WHOLE


def test_what_is_known_of_a_topic_only_grows() -> None:
    assert KnownEnds("a", (3, 1)).further(KnownEnds("a", (2, 4, 1))) == KnownEnds("a", (3, 4, 1))
    assert KnownEnds().further(KnownEnds("a", (2,))) == KnownEnds("a", (2,))
    assert KnownEnds("a", (9,)).further(KnownEnds("b", (1,))) == KnownEnds("b", (1,)), (
        "another topic of that name"
    )


# ------------------------------------------------------------------------------- the other readings


def test_an_extent_is_whole_or_an_error() -> None:
    kafka = FakeKafka(FakeAdmin(offsets=lambda asked, place: -1001 if asked % 2 else 7, begins=2))
    assert read_extents(kafka, ["t"]) == {"t": {0: OffsetRange(2, 7, 7), 1: OffsetRange(2, 7, 7)}}
    with pytest.raises(TimedOut, match="The end of t-0 could not be determined"):
        read_extents(FakeKafka(FakeAdmin(offsets=lambda asked, place: -1001), timeout=0.02), ["t"])


def test_no_record_so_late_is_an_answer_and_no_offset_is_none() -> None:
    def answer(asked: int, place: Any) -> int:
        if asked > 2:
            return 5
        return -1 if place.partition else (-1001 if asked == 1 else 3)

    assert offsets_at(FakeKafka(FakeAdmin(offsets=answer)), ["t"], 1_000) == {"t": {0: 3, 1: 5}}


def test_attempts_are_shorter_than_all_the_time_there_is() -> None:
    kafka = FakeKafka(
        FakeAdmin(offsets=lambda asked, place: -1001 if asked < 4 else 5), timeout=60.0
    )
    assert end_offsets(kafka, ["t"]) == WHOLE
    assert kafka.fake.waits == [2.0, 2.0, 2.0, 4.0, 8.0, 16.0]
