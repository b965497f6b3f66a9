"""Facts that a connector's configuration alone tells: source or sink, and which values are references."""

from __future__ import annotations

import re
from collections.abc import Mapping

REFERENCE = re.compile(r"\$\{[^}:]*:[^}]*\}")
"""A value that workers look up (``ConfigTransformer``): ``${provider:key}``. Without a colon it is literal text."""
_SOURCES = ("io.debezium.connector.", "org.apache.kafka.connect.mirror.Mirror")
_NOT_SOURCES = ("io.debezium.connector.jdbc.",)


def has_reference(value: str) -> bool:
    """Return whether workers replace a part of ``value``, so that only they know the whole of it."""
    return REFERENCE.search(value) is not None


def kind_of(config: Mapping[str, str | None]) -> str | None:
    """Return ``source`` or ``sink`` by the name of the class, else by the properties; None where neither tells."""
    full = (config.get("connector.class") or "").strip()
    short = full.rsplit(".", 1)[-1]
    marks = [kind for kind in ("source", "sink") if kind.capitalize() in short]
    if len(marks) == 1:  # before topics, which are also those that a MirrorSourceConnector reads elsewhere
        return marks[0]
    if full.startswith(_SOURCES) and not full.startswith(_NOT_SOURCES):
        return "source"
    if any(name in short for name in ("MirrorHeartbeat", "MirrorCheckpoint")):
        return "source"
    sink = "topics" in config or "topics.regex" in config
    return "sink" if sink and "offsets.storage.topic" not in config else None
