"""Findings about workers as a group (KIP-618, KIP-507); ``rules`` says when they apply."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

TOO_OLD = Rule("WORKER001", Severity.ERROR)
COMPATIBLE = Rule("WORKER002", Severity.WARNING)
EAGER = Rule("WORKER003", Severity.WARNING)
LEADER_BEHIND = Rule("WORKER004", Severity.ERROR)
UNPREPARED = Rule("WORKER005", Severity.INFO)
UNPROVEN = Rule("WORKER006", Severity.INFO)
NO_ID = Rule("WORKER007", Severity.ERROR)
LEADER_OPEN = Rule("WORKER008", Severity.WARNING)
ID_ELSEWHERE = Rule("WORKER009", Severity.ERROR)
OTHER_WRITER = Rule("WORKER010", Severity.WARNING)
OUTSIDE = Rule("WORKER011", Severity.WARNING)
LISTS_DIFFER = Rule("WORKER012", Severity.ERROR)
SHARED_CONFIG = Rule("WORKER013", Severity.ERROR)
SHARED_STATUS = Rule("WORKER014", Severity.WARNING)
