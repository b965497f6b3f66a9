"""Releases of Kafka by the versions that workers report."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.release import CHANGES_OFFSETS, EXACTLY_ONCE, older, release_of


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("3.9.0", (3, 9, 0)),
        ("4.4.0-SNAPSHOT", (4, 4, 0)),
        ("7.2.0-ccs", (3, 2, 0)),
        ("7.3.1-ce", (3, 3, 1)),
        ("6.1.0-ccs", (2, 7, 0)),
        ("unknown", None),
        ("", None),
        (None, None),
    ],
)
def test_a_version_names_a_release_of_kafka(
    version: str | None, release: tuple[int, int, int] | None
) -> None:
    assert release_of(version) == release


@pytest.mark.parametrize(
    ("version", "without_topics", "without_rest"),
    [
        ("3.2.3", True, True),
        ("3.3.0", False, True),
        ("3.6.0", False, False),
        ("7.2.0-ccs", True, True),
        ("7.3.0-ccs", False, True),
        ("7.6.0-ccs", False, False),
        (None, False, False),
    ],
)
def test_what_a_release_lacks(
    version: str | None, without_topics: bool, without_rest: bool
) -> None:
    assert (older(version, EXACTLY_ONCE), older(version, CHANGES_OFFSETS)) == (
        without_topics,
        without_rest,
    )
