"""The release of Apache Kafka that a worker runs, by the version that it reports."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_CONFLUENT = {5: (2, 0), 6: (2, 6), 7: (3, 0), 8: (4, 0)}
"""Kafka's release of the first minor release of each Confluent major: ``7.6.0-ccs`` is 3.6.0,
``6.1.0-ccs`` is 2.7.0.
"""

EXACTLY_ONCE = (3, 3, 0)
"""The first release with exactly-once source support and dedicated offsets topics (KIP-618)."""
CHANGES_OFFSETS = (3, 6, 0)
"""The first release whose REST API changes and resets offsets (KIP-875)."""

INITIAL_STATE = (3, 7, 0)
"""The first release that creates a connector STOPPED or PAUSED (KIP-980)."""


def release_of(version: str | None) -> tuple[int, int, int] | None:
    """Return ``(major, minor, patch)`` of Apache Kafka, None for a version without numbers."""
    found = _NUMBERS.match(version or "")
    if found is None:
        return None
    major, minor, patch = (int(part or 0) for part in found.groups())
    if str(version).endswith(("-ccs", "-ce")):
        major, first = _CONFLUENT.get(major, (major, 0))
        minor += first
    return major, minor, patch


def older(version: str | None, first: tuple[int, int, int]) -> bool:
    """Return whether ``version`` is older than the release ``first``; False if the release is
    unknown.
    """
    release = release_of(version)
    return release is not None and release < first
