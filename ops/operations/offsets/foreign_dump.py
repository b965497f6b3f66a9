"""Outputs of other tools that print records of an offsets topic, by their form. Pure."""

from __future__ import annotations

import re

CALL = "kcat -C -J -e -t TOPIC -b HOST:PORT"
_KEY = r'\["(?:[^"\\]|\\.)*",\s*(?:\{.*\}|null)\s*\]'
_FORMS = (
    (
        re.compile(rf"(?:\w+:\S+\t)*{_KEY}\t"),
        "it is the output of kafka-console-consumer, without the bytes, partitions and tombstones",
    ),
    (
        re.compile(rf"[^\d{{\[].*{_KEY}|% Reached end of topic"),
        "it is the output of kcat without -J, such as kcat -f",
    ),
    (
        re.compile(rf"{_KEY}\s*$"),
        "it has keys alone, as kcat -K or kafka-console-consumer prints them",
    ),
)
_RECORD = re.compile(r'\{.*"(?:payload|valueBase64|keyBase64|key)"\s*:')
NO_KEYS = "it has values without keys, as kafka-console-consumer prints them without print.key=true"


def foreign_form(line: str) -> str | None:
    """Return the tool that printed ``line``, in a sentence; None if the form is not known."""
    return next((why for pattern, why in _FORMS if pattern.match(line.strip("\r\n"))), None)


def is_record(line: str) -> bool:
    """Return whether ``line`` is a record of an offsets topic, as ``kcat -J`` and backups have
    it.
    """
    return _RECORD.match(line) is not None
