"""Keys that stand twice in one object."""

from __future__ import annotations

import pytest
from connectctl.ops.config.yaml_text import repeated


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1,\n "b": 2,\n "a": 3}', "the key 'a' is in line 1, and in line 3 again"),
        ('[{"x": {"a": 1, "a": 1}}]', "the key 'a' is twice in line 1"),
        ("a:\n  b: 1\n  b: 2\n", "the key 'b' is in line 2, and in line 3 again"),
        ("a: 1\n'a': 2\n", "the key 'a' is in line 1, and in line 2 again"),
        ('{"a": {"b": 1}, "c": {"b": 1}}', None),
        ('[{"a": 1}, {"a": 1}]', None),
        ("1: x\n'1': y\n", None),
        ("", None),
        ("{", None),
    ],
)
def test_the_first_is_told_with_both_lines(text: str, told: str | None) -> None:
    assert repeated(text) == told
