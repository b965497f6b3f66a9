"""Placeholders are filled in as words for the shell; every other brace is the shell's own."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from connectctl.ops.config.template import (
    OF_PROPERTY,
    OF_WORKER,
    filled,
    filled_for_shell,
    names_in,
    problem_with,
)
from connectctl.ops.core.errors import BadInput
from hypothesis import given
from hypothesis import strategies as st

KNOWN = (*OF_WORKER, *OF_PROPERTY)


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("ssh {host} set {property}={value}", {"host", "property", "value"}),
        ("echo ${HOME} {host}", {"host"}),
        ("awk '{print $1}'", set()),
        ("docker ps --format '{{.Names}}{{end}}'", set()),
        ("docker ps --format '{{host}}'", set()),
        ("mv a.{old,new} {}", set()),
        ("kubectl -o jsonpath='{.status}'", set()),
    ],
)
def test_a_placeholder_is_one_word_in_single_braces(template: str, names: set[str]) -> None:
    assert names_in(template) == names
    assert filled(template, dict.fromkeys(KNOWN, "X")).count("X") == len(names)


def test_an_unknown_placeholder_is_told_with_those_that_are_known() -> None:
    assert problem_with("ssh {hots}", OF_WORKER) == (
        "unknown placeholder {hots}; did you mean {host}? known are {worker}, {host}, {port}, {url}"
    )
    assert problem_with("ssh {zz}", ("host",)) == "unknown placeholder {zz}; known are {host}"


def test_a_template_that_lacks_what_it_needs_or_is_empty_is_told() -> None:
    assert problem_with("ssh {host} set {property}", KNOWN, OF_PROPERTY) == "it lacks {value}"
    assert problem_with(" ", KNOWN) == "it is empty"
    assert problem_with("ssh {host} set {property} {value}", KNOWN, OF_PROPERTY) is None


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(
        str.strip
    )
)
def test_a_value_is_one_word_for_the_shell_whatever_it_is(value: str) -> None:
    assert shlex.split(
        filled_for_shell("set {property} {value}", {"property": "p", "value": value})
    ) == [
        "set",
        "p",
        value,
    ]


@pytest.mark.parametrize("value", ["a b", "$(touch gone)", "';exit 3;'", "\\", "*", "-n", "a\nb"])
def test_the_shell_itself_gets_the_value(value: str) -> None:
    line = filled_for_shell("printf %s {value}", {"value": value})
    assert (
        subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True).stdout
        == value
    )


@pytest.mark.parametrize(
    "template", ['ssh h "set {value}"', "ssh h 'set {value}'", "echo \\' '{value}'"]
)
def test_a_value_that_would_end_the_quotes_around_it_is_refused(template: str) -> None:
    with pytest.raises(BadInput, match=r"Remove the quotes around \{value\}"):
        filled_for_shell(template, {"value": "a b"})
    assert "enabled" in filled_for_shell(template, {"value": "enabled"})


def test_quotes_that_are_closed_again_do_not_matter() -> None:
    assert filled_for_shell("echo 'it' \\' {value}", {"value": "a b"}) == "echo 'it' \\' 'a b'"
