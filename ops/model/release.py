"""Which release of Apache Kafka a worker runs, by the version that it tells."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_CONFLUENT = {7: 3, 8: 4}
"""Kafka's major number by that of Confluent's releases (``7.6.0-ccs`` is 3.6.0); the minor ones are the same."""


def release_of(version: str | None) -> tuple[int, int, int] | None:
    """``(major, minor, patch)`` of Apache Kafka, None for a version that does not tell."""
    found = _NUMBERS.match(version or "")
    if found is None:
        return None
    major, minor, patch = (int(part or 0) for part in found.groups())
    if str(version).endswith(("-ccs", "-ce")):
        major = _CONFLUENT.get(major, major)
    return major, minor, patch
