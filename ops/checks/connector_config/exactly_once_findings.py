"""The rules for a source connector's exactly-once properties: EOS001 to EOS016 (KIP-618)."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

NOT_ENABLED = Rule("EOS001", Severity.ERROR)
UNSUPPORTED = Rule("EOS002", Severity.ERROR)
SAYS_NOTHING = Rule("EOS003", Severity.ERROR)
FAILS_WHEN_ASKED = Rule("EOS004", Severity.ERROR)
NO_GUARANTEE = Rule("EOS005", Severity.WARNING)
BAD_SUPPORT = Rule("EOS006", Severity.ERROR)
BAD_BOUNDARY = Rule("EOS007", Severity.ERROR)
NO_BOUNDARIES = Rule("EOS008", Severity.ERROR)
BAD_INTERVAL = Rule("EOS009", Severity.ERROR)
IDLE_INTERVAL = Rule("EOS010", Severity.INFO)
LONG_INTERVAL = Rule("EOS011", Severity.ERROR)
WORKERS_INTERVAL = Rule("EOS012", Severity.WARNING)
NO_EFFECT = Rule("EOS013", Severity.INFO)
WORKERS_PROPERTY = Rule("EOS014", Severity.WARNING)
DISAGREE = Rule("EOS015", Severity.ERROR)
RUNS_PROPERTY = Rule("EOS016", Severity.INFO)
