"""``topics`` and ``topics.regex``, as Connect has them."""

from __future__ import annotations

import pytest
from connectctl.ops.task_runtime.spi.subscription import input_problems, input_topics, subscription


def test_topics_are_named_once_and_in_their_order() -> None:
    assert input_topics({"topics": " b, a ,,b"}) == ("b", "a")
    assert input_topics({}) == ()


def test_a_pattern_is_for_the_whole_name() -> None:
    named = subscription("c", {"topics": "a,b"})
    assert (named.patterns, str(named)) == (("a", "b"), "a, b")
    pattern = subscription("c", {"topics.regex": " in|out "})
    assert (pattern.patterns, str(pattern)) == (("^(in|out)$",), "topics that match in|out")
    assert pattern.consumer.group == "connect-c"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "Must configure one of topics or topics.regex"),
        ({"topics": " , "}, "Must configure one of topics or topics.regex"),
        ({"topics": "a", "topics.regex": "b"}, "Must configure only one of topics or topics.regex"),
        ({"topics.regex": "("}, "Invalid regular expression ( of topics.regex"),
    ],
)
def test_what_is_wrong_is_said_in_connects_words(config: dict[str, str], problem: str) -> None:
    (found,) = input_problems(config)
    assert problem in found


@pytest.mark.parametrize("config", [{"topics": "a"}, {"topics.regex": "a.*"}])
def test_one_of_them_is_right(config: dict[str, str]) -> None:
    assert list(input_problems(config)) == []
