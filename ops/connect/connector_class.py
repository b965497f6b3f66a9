"""Facts that follow from a connector's configuration alone: source or sink, target topics, and
values that are references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

REFERENCE = re.compile(r"\$\{[^}:]*:[^}]*\}")
"""A value that workers resolve (``ConfigTransformer``): ``${provider:key}``. Without a colon it is
literal text.
"""
_SOURCES = ("io.debezium.connector.", "org.apache.kafka.connect.mirror.Mirror")
_NOT_SOURCES = ("io.debezium.connector.jdbc.",)
_NO_TARGETS = (
    "offsets.storage.",
    "errors.",
    "transforms.",
    "predicates.",
    "producer.",
    "consumer.",
    "admin.",
)


def has_reference(value: str) -> bool:
    """Return whether workers replace a part of ``value``, so that only they know its final form."""
    return REFERENCE.search(value) is not None


def kind_of(config: Mapping[str, str | None]) -> str | None:
    """Return ``source`` or ``sink`` by the class name, else by the properties; None if neither
    determines it.
    """
    full = (config.get("connector.class") or "").strip()
    short = full.rsplit(".", 1)[-1]
    marks = [kind for kind in ("source", "sink") if kind.capitalize() in short]
    # before ``topics``, which a MirrorSourceConnector has for the topics of its source cluster
    if len(marks) == 1:
        return marks[0]
    if full.startswith(_SOURCES) and not full.startswith(_NOT_SOURCES):
        return "source"
    if any(name in short for name in ("MirrorHeartbeat", "MirrorCheckpoint")):
        return "source"
    sink = "topics" in config or "topics.regex" in config
    return "sink" if sink and "offsets.storage.topic" not in config else None


def configured_topics(config: Mapping[str, str]) -> frozenset[str]:
    """Return the target topics that a source connector's configuration names, by the names of
    properties.
    """
    found: set[str] = set()
    for name, value in config.items():
        if name.rsplit(".", 1)[-1] in ("topic", "topics") and not name.startswith(_NO_TARGETS):
            found |= {part.strip() for part in value.split(",") if part.strip()}
    return frozenset(found)
