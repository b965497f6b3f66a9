"""RECORD001: records of internal topics that are ignored, because workers do not write such
records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.config import ignored_input
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord

UNREADABLE_RECORD = Rule("RECORD001", Severity.WARNING)
LONGEST_KEY = 200
"""The number of characters of a key that are quoted: a key may have a megabyte."""


def ignored(topic: str, record: ConsumerRecord, why: str) -> Finding:
    """Return the finding about an ignored record; the command prints it when it ends, if its output
    did not.

    The value is not quoted, because it may have secrets.
    """
    key = None if record.key is None else record.key[:LONGEST_KEY].decode(errors="backslashreplace")
    cut = "…" if record.key is not None and len(record.key) > LONGEST_KEY else ""
    key_text = "without a key" if key is None else f"of the key {key!r}{cut}"
    subject = f"{topic}-{record.partition}@{record.offset}"
    finding = UNREADABLE_RECORD.found(
        subject, f"A record {key_text} is ignored: {why[:LONGEST_KEY]}."
    )
    ignored_input.remember(finding.subject, finding)
    return finding
