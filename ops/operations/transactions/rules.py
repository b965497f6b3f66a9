"""The findings of commands on transactions; each has its section in ``docs/findings``."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

BLOCKING_TRANSACTION = Rule("TXN001", Severity.ERROR)
UNREAD = Rule("TXN002", Severity.WARNING)
NO_VERDICT = Rule("TXN003", Severity.ERROR)
OPEN_FOR_LONG = Rule("TXN004", Severity.WARNING)
NOT_PROVEN = Rule("TXN010", Severity.WARNING)
