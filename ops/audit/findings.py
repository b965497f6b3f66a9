"""Findings of an audit; ``verdict`` says when they apply."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

DUPLICATES = Rule("AUDIT001", Severity.ERROR)
GAPS = Rule("AUDIT002", Severity.ERROR)
REORDERED = Rule("AUDIT003", Severity.ERROR)
BEYOND = Rule("AUDIT004", Severity.ERROR)
LOST = Rule("AUDIT005", Severity.ERROR)
TORN = Rule("AUDIT006", Severity.ERROR)
UNCLEAR = Rule("AUDIT007", Severity.WARNING)
DISAGREE = Rule("AUDIT008", Severity.ERROR)
MISSING_BATCHES = Rule("AUDIT009", Severity.ERROR)
STALE_BATCH = Rule("AUDIT010", Severity.ERROR)
OPEN = Rule("AUDIT011", Severity.INFO)
UNREAD = Rule("AUDIT012", Severity.WARNING)
NO_SEQUENCE = Rule("AUDIT013", Severity.WARNING)
UNNUMBERED = Rule("AUDIT014", Severity.WARNING)
NOT_COMPARED = Rule("AUDIT015", Severity.WARNING)
NO_SPARK = Rule("AUDIT016", Severity.WARNING)
PLAIN = Rule("AUDIT017", Severity.INFO)
REMOVED = Rule("AUDIT018", Severity.INFO)
LINES = Rule("AUDIT019", Severity.ERROR)
NOTHING = Rule("AUDIT020", Severity.ERROR)
IN_OUTPUT_TWICE = Rule("AUDIT021", Severity.ERROR)
NOT_IN_OUTPUT = Rule("AUDIT022", Severity.ERROR)
AHEAD_OF_GROUP = Rule("AUDIT023", Severity.ERROR)
GROUP_UNKNOWN = Rule("AUDIT024", Severity.WARNING)
NOTHING_COMMITTED = Rule("AUDIT025", Severity.WARNING)
UNMATCHED = Rule("AUDIT026", Severity.WARNING)
NOT_YET = Rule("AUDIT027", Severity.INFO)
