"""Findings about connectors and tasks.max (KIP-1004); ``rules`` says when they apply."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

REFUSED = Rule("TASK001", Severity.ERROR)
SET_FAILED = Rule("TASK002", Severity.ERROR)
DOOMED = Rule("TASK003", Severity.ERROR)
UPGRADE = Rule("TASK004", Severity.WARNING)
ALLOWED = Rule("TASK005", Severity.WARNING)
NEEDLESS = Rule("TASK006", Severity.INFO)
FEWER = Rule("TASK007", Severity.INFO)
INVALID = Rule("TASK008", Severity.ERROR)
RESUME = Rule("TASK009", Severity.WARNING)
