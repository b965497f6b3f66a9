"""Settings that keep secrets out of what Spark writes and shows, and strangers out of its
connections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from connectctl.ops.config.masking import masked
from connectctl.ops.core.errors import BadInput

_NAMES = (
    r"passw|passphrase|passcode|kennwort|pwd|secret|token|credential|jaas|user[._-]?info|webhook|shared[._-]?access|"
    r"(api|access|account|private|shared|sas|master|encryption|signing|subscription)[._-]?key|"
    r"(^|[._-])(pass|pw|auth|pin|salt|sas|pat|psk|cookie|otp|community|hmac|creds?)$"
)
_FORMS = (
    r"://[^/\s@]*:[^\s@]*@|[?&](sig|signature|x-[a-z]+-(signature|credential|security-token)|key|code|auth|apikey)=|"
    r"PRIVATE KEY-----"
)
_IN_TEXT = r"(?i)(?<=://)[^/\s@]*:[^\s@]*(?=@)|(?<=(password|passwd|pwd|secret|token|apikey|key|auth|signature|sig)=)[^&;,\s\])}]+"
# Spark compares both the names and the values of settings with the first expression.
_REDACTED = {
    "spark.redaction.regex": f"(?i){_NAMES}|{_FORMS}",
    "spark.sql.redaction.options.regex": f"(?i){_NAMES}|{_FORMS}|url",
    "spark.redaction.string.regex": _IN_TEXT,
}
_MAKES_ITS_SECRET = re.compile(r"local(\[[^\]]*\])?|yarn|k8s://.*")
"""Masters for which Spark makes the secret of ``spark.authenticate`` itself; others must have been
given the same one.
"""
_OPTIONS = "JavaOptions"


def protected(master: str, conf: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that protect a session on ``master``; expressions in ``conf`` are added,
    not replaced.

    Raises ``BadInput`` for a secret among the options of a JVM, which everybody on its machine can
    read.
    """
    for name, value in conf.items():
        if name.endswith(_OPTIONS) and masked(str(value)) != str(value):
            raise BadInput(
                f"{name} contains a secret, which the command line of a process shows to "
                "everybody on its machine",
                next_step="Give it in the environment: JDK_JAVA_OPTIONS, for executors "
                "spark.executorEnv.JDK_JAVA_OPTIONS.",
                code="secret-in-options",
            )
    found = {
        name: f"(?:{conf[name]})|{variable}" if conf.get(name) else variable
        for name, variable in _REDACTED.items()
    }
    authenticate = "spark.authenticate"
    if authenticate not in conf and _MAKES_ITS_SECRET.fullmatch(master):
        found[authenticate] = "true"
    return found
