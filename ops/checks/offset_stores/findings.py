"""Findings about the offset stores of connectors; ``rules`` says when they apply."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

LOSES_ITS_PLACE = Rule("STORE001", Severity.ERROR)
STALE = Rule("STORE002", Severity.ERROR)
CANNOT_BE_CREATED = Rule("STORE003", Severity.ERROR)
WILL_BE_CREATED = Rule("STORE004", Severity.INFO)
TWO_SPELLINGS = Rule("STORE005", Severity.WARNING)
INTERNAL_TOPIC = Rule("STORE006", Severity.ERROR)
CLIENTS_APART = Rule("STORE007", Severity.ERROR)
OWN_TARGET = Rule("STORE008", Severity.ERROR)
IMPLICIT = Rule("STORE009", Severity.INFO)
LEFT_BEHIND = Rule("STORE010", Severity.WARNING)
SHARED = Rule("STORE011", Severity.INFO)
RESET_FAILS = Rule("STORE012", Severity.INFO)
