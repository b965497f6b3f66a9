"""Which Kafka versions a sandbox takes, and what it knows of them."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.jars.versions import LATEST, NEWEST, TRIED, parse_version


@pytest.mark.parametrize("text", TRIED)
def test_versions_that_were_tried_are_taken(text: str) -> None:
    assert str(parse_version(text)) == text


@pytest.mark.parametrize(
    ("text", "version"),
    [("3.9", "3.9.2"), ("4.3", "4.3.1"), ("4.4", "4.4.0"), ("3.2", "3.2.3"), ("3.7.0", "3.7.0")],
)
def test_a_line_stands_for_its_tried_release(text: str, version: str) -> None:
    assert str(parse_version(text)) == version


@pytest.mark.parametrize(
    "text", ["", "4", "latest", "3.1.2", "2.8.2", "4.3.1-rc0", "v4.3.1", "3.4", "../4.3.1"]
)
def test_other_words_are_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(BadInput, match=r"Use X\.Y\.Z of at least 3\.2\.0") as refused:
        parse_version(text)
    assert refused.value.code == "unknown-kafka-version"


@pytest.mark.parametrize(
    ("text", "exactly_once", "service_load", "test_plugins", "log4j2", "broker"),
    [
        ("3.2.3", False, False, False, False, LATEST),
        ("3.3.0", True, False, False, False, LATEST),
        ("3.5.2", True, False, False, False, LATEST),
        ("3.6.2", True, True, False, False, LATEST),
        ("3.9.2", True, True, False, False, LATEST),
        ("4.0.2", True, True, True, True, "4.0.2"),
        (LATEST, True, True, True, True, LATEST),
        (NEWEST, True, True, True, True, NEWEST),
    ],
)
def test_what_differs_between_versions(
    text: str, exactly_once: bool, service_load: bool, test_plugins: bool, log4j2: bool, broker: str
) -> None:
    version = parse_version(text)
    assert version.has_exactly_once_source is exactly_once
    assert version.has_service_load is service_load
    assert version.has_test_plugins is test_plugins
    assert version.logs_with_log4j2 is log4j2
    assert str(version.broker) == broker
