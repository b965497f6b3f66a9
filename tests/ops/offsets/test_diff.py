"""What two places say differently."""

from __future__ import annotations

from connectctl.ops.offsets.diff import Difference, differences, said_by
from fakes.offsettopics import histories, places, record
from hypothesis import given
from hypothesis import strategies as st

said = st.dictionaries(st.tuples(st.sampled_from("cd"), st.sampled_from("kl")), st.sampled_from(["1", "2"]))


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
    assert found == (Difference("c", "k", "1", "3"), Difference("c", "l", "2", None), Difference("d", "k", None, "4"))


@given(histories())
def test_a_tombstone_says_nothing(history: list[object]) -> None:
    (at,) = places(history)  # type: ignore[arg-type]
    assert None not in said_by("c", at).values()


def test_bytes_that_are_no_text_are_shown_all_the_same() -> None:
    (at,) = places([record(["c", {"t": "a"}], b"\xff")])
    assert said_by("c", at) == {("c", '["c",{"t":"a"}]'): "\\xff"}
