"""Lists of bootstrap servers, compared."""

from __future__ import annotations

import pytest
from connectctl.ops.kafka.bootstrap import same_to_connect, share_a_server


@pytest.mark.parametrize(
    ("one", "other", "same", "shared"),
    [
        ("b:2, a:1", "a:1,b:2", True, True),
        ("a:1,a:1", "a:1", True, True),
        ("a:1", "a:1,b:2", False, True),
        ("a:1,", "a:1", False, True),
        ("a:1,", ",b:2", False, False),
        ("", "a:1", False, False),
        ("", " ", True, False),
        ("A:1", "a:1", False, False),
    ],
)
def test_what_connect_takes_for_one_cluster_and_what_surely_is_one(
    one: str, other: str, same: bool, shared: bool
) -> None:
    assert (same_to_connect(one, other), share_a_server(one, other)) == (same, shared)
    assert (same_to_connect(other, one), share_a_server(other, one)) == (same, shared)
