"""The rules for what every connector's configuration has: CONFIG001 to CONFIG015."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

NO_CLASS = Rule("CONFIG001", Severity.ERROR)
BAD_NAME = Rule("CONFIG002", Severity.ERROR)
UNREACHABLE_NAME = Rule("CONFIG003", Severity.WARNING)
BAD_TASKS_MAX = Rule("CONFIG004", Severity.ERROR)
ALLOWED_TOO_MANY = Rule("CONFIG005", Severity.WARNING)
BAD_VALUE = Rule("CONFIG006", Severity.ERROR)
NULL = Rule("CONFIG007", Severity.ERROR)
NO_TOPICS = Rule("CONFIG008", Severity.ERROR)
OWN_DEAD_LETTERS = Rule("CONFIG009", Severity.ERROR)
IDLE_DEAD_LETTERS = Rule("CONFIG010", Severity.WARNING)
WORKERS_GROUP = Rule("CONFIG011", Severity.ERROR)
NOT_DEFINED = Rule("CONFIG012", Severity.ERROR)
NO_PREDICATE = Rule("CONFIG013", Severity.ERROR)
NOT_LISTED = Rule("CONFIG014", Severity.WARNING)
TOPIC_CREATION = Rule("CONFIG015", Severity.ERROR)
