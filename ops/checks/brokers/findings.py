"""Findings about brokers; ``rules`` says when they apply."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

TOO_OLD = Rule("BROKER001", Severity.ERROR)
MIXED = Rule("BROKER002", Severity.WARNING)
UNVERIFIED = Rule("BROKER003", Severity.WARNING)
OLD_PROTOCOL = Rule("BROKER004", Severity.WARNING)
CANNOT_BE_CREATED = Rule("BROKER005", Severity.ERROR)
NO_LEADER = Rule("BROKER006", Severity.ERROR)
TOO_FEW_IN_SYNC = Rule("BROKER007", Severity.ERROR)
BEHIND = Rule("BROKER008", Severity.WARNING)
ONE_COPY = Rule("BROKER009", Severity.WARNING)
ACKNOWLEDGED_ALONE = Rule("BROKER010", Severity.WARNING)
UNCLEAN = Rule("BROKER011", Severity.WARNING)
STOPS_WITH_ONE = Rule("BROKER012", Severity.WARNING)
TIMEOUT_REFUSED = Rule("BROKER013", Severity.ERROR)
LEADER_REFUSED = Rule("BROKER014", Severity.ERROR)
FENCING_REFUSED = Rule("BROKER015", Severity.ERROR)
IDS_EXPIRE = Rule("BROKER016", Severity.WARNING)
SLOW_TO_ABORT = Rule("BROKER017", Severity.WARNING)
SESSION_REFUSED = Rule("BROKER018", Severity.ERROR)
