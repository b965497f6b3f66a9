"""What a stream remembers is told from source partitions, and shown to people without its bulk."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.stream_source_partitions import abridged, is_stream_state


@pytest.mark.parametrize(
    ("partition", "ours"),
    [
        (None, False),
        ({}, False),
        ({"shop": "a"}, False),
        ({"connectctl.stream": "q", "task": 0}, True),
    ],
)
def test_one_member_tells_it_apart(partition: dict[str, object] | None, ours: bool) -> None:
    assert is_stream_state(partition) is ours


def test_hashes_are_left_out_where_they_are_many_and_nothing_else_is() -> None:
    assert abridged({"turn": 1, "hashes": "A" * 2000}) == {
        "turn": 1,
        "hashes": "AAAAAAAA… (whole with -o json)",
    }
    for as_it_is in (
        {"turn": 1, "hashes": "AAAA"},
        {"position": 7},
        {"turn": 1, "hashes": "A" * 2000, "more": 1},
    ):
        assert abridged(as_it_is) == as_it_is
