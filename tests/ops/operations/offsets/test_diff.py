"""What two places say differently."""

from __future__ import annotations

from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
from connectctl.ops.connect.offset_store import Kind, Store
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.diff import (
    Difference,
    differences,
    effective_values,
    live_values,
    without_equal_values,
)
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot
from fakes.offsettopics import UNREADABLE, VALUES, histories, places, record, topic
from hypothesis import given
from hypothesis import strategies as st

said = st.dictionaries(
    st.tuples(st.sampled_from("cd"), st.sampled_from("kl")), st.sampled_from(["1", "2"])
)


@given(said)
def test_what_is_the_same_does_not_differ(one: dict[tuple[str, str], str | None]) -> None:
    assert differences(one, one) == ()


@given(said, said)
def test_the_differences_are_all_that_has_to_change(
    left: dict[tuple[str, str], str | None], right: dict[tuple[str, str], str | None]
) -> None:
    patched = left | {(d.connector, d.key): d.right for d in differences(left, right)}
    assert {k: v for k, v in patched.items() if v is not None} == right


def test_both_values_are_told_and_none_for_nothing() -> None:
    found = differences({("c", "k"): "1", ("c", "l"): "2"}, {("c", "k"): "3", ("d", "k"): "4"})
    assert found == (
        Difference("c", "k", "1", "3"),
        Difference("c", "l", "2", None),
        Difference("d", "k", None, "4"),
    )


@given(histories())
def test_a_tombstone_says_nothing(history: list[object]) -> None:
    (at,) = places(history)  # type: ignore[arg-type]
    assert None not in live_values("c", at).values()


def test_bytes_that_are_no_text_are_shown_all_the_same() -> None:
    (at,) = places([record(["c", {"t": "a"}], b"\xff")])
    assert live_values("c", at) == {("c", '["c",{"t":"a"}]'): "\\xff"}


def snapshot(
    global_: list[ConsumerRecord], dedicated: list[ConsumerRecord] | None
) -> OffsetsSnapshot:
    config = {"connector.class": "RedditSource"} | (
        {} if dedicated is None else {"offsets.storage.topic": "own"}
    )
    configs = ConfigState({"c": ConfiguredConnector("c", config)})
    own = {} if dedicated is None else {"c": topic("own", "dedicated", *dedicated)}
    stores = {} if dedicated is None else {"c": Store(Kind.SEPARATE, "own")}
    return OffsetsSnapshot(topic("global", "global", *global_), own, configs, stores=stores)


def effective(of: OffsetsSnapshot) -> dict[tuple[str, str], str | None]:
    return effective_values(assemble(of, OffsetsQuery()))


topics = histories(VALUES + UNREADABLE)


@given(
    topics,
    st.none() | topics,
    topics,
    st.none() | topics,
    st.sampled_from([None, "global", "dedicated"]),
)
def test_what_is_the_same_can_be_left_out_before_anything_is_understood(
    one: list[ConsumerRecord],
    own: list[ConsumerRecord] | None,
    other: list[ConsumerRecord],
    others_own: list[ConsumerRecord] | None,
    same: str | None,
) -> None:
    here = snapshot(one, own)
    there = snapshot(one if same == "global" else other, own if same == "dedicated" else others_own)
    left, right = without_equal_values(here, there)
    assert differences(effective(left), effective(right)) == differences(
        effective(here), effective(there)
    )


def test_of_two_equal_sides_nothing_is_left() -> None:
    here = snapshot([record(["c", {"t": "a"}], {"o": 1})], [record(["c", {"t": "b"}], {"o": 2})])
    for side in without_equal_values(here, here):
        assert side.global_topic is not None
        assert (side.global_topic.image.latest, side.dedicated["c"].image.latest) == ((), ())


def test_a_connector_that_is_known_by_its_offsets_only_stays_known() -> None:
    here = snapshot([record(["gone", {"t": "a"}], {"o": 1})], None)
    left, _ = without_equal_values(here, here, ("gone",))
    assert [connector.name for connector in assemble(left, OffsetsQuery(("gone",))).connectors] == [
        "gone"
    ]
