"""The rules for client overrides and for a connector's offsets topic: CONFIG020 to CONFIG028."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

IGNORED = Rule("CONFIG020", Severity.WARNING)
BREAKS = Rule("CONFIG021", Severity.ERROR)
NEVER_STARTS = Rule("CONFIG022", Severity.ERROR)
ID_WITHOUT_IDEMPOTENCE = Rule("CONFIG023", Severity.ERROR)
BAD_OVERRIDE = Rule("CONFIG024", Severity.ERROR)
NOT_ALLOWED = Rule("CONFIG025", Severity.ERROR)
NOT_ALLOWED_LATER = Rule("CONFIG028", Severity.ERROR)
BAD_OFFSETS_TOPIC = Rule("CONFIG026", Severity.ERROR)
BAD_TARGET = Rule("CONFIG027", Severity.ERROR)
