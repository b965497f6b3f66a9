"""Whether a part failed of something that passes, by the exceptions in its stack trace. Pure.

The innermost exception decides: connectors wrap any failure in an exception of their own. Kafka's
clients mark errors that a second try may not meet as ``RetriableException``; the subclasses here
concern brokers and connections. A trace of another cause is not transient, which includes unknown
ones.
"""

from __future__ import annotations

import re

from connectctl.ops.connect.fenced_task_diagnosis import may_be_fenced, round_missed

_EXCEPTION = re.compile(r"(?:Caused by: )?((?:[\w$]+\.)+[\w$]*(?:Exception|Error))(?:: (.*))?")
_KAFKA = frozenset(
    {
        *("RetriableException", "TimeoutException", "DisconnectException"),
        *("NetworkException", "BrokerNotAvailableException", "LeaderNotAvailableException"),
        *("NotLeaderOrFollowerException", "CoordinatorNotAvailableException"),
        *("CoordinatorLoadInProgressException", "NotCoordinatorException"),
        *("NotControllerException", "NotEnoughReplicasException"),
        *("NotEnoughReplicasAfterAppendException", "ConcurrentTransactionsException"),
        *("RebalanceInProgressException", "KafkaStorageException"),
        *("UnstableOffsetCommitException", "ThrottlingQuotaExceededException"),
    }
)
_OTHERS = frozenset(
    {
        "org.apache.kafka.connect.errors.RetriableException",
        "java.net.ConnectException",
        "java.net.NoRouteToHostException",
        "java.net.SocketException",
        "java.net.SocketTimeoutException",
        "java.net.http.HttpTimeoutException",
        "java.nio.channels.ClosedChannelException",
        "java.sql.SQLRecoverableException",
        "java.sql.SQLTransientConnectionException",
        "java.sql.SQLTransientException",
        "java.util.concurrent.TimeoutException",
    }
)
_LASTING = ("not present in metadata",)
"""Messages of such exceptions about what does not pass: a topic that does not exist."""


def transient_cause(trace: str | None) -> str | None:
    """Return why the failure with this stack trace is transient, in a few words; None if nothing
    shows that it is.
    """
    if trace is None:
        return None
    if round_missed(trace):
        return "a round of zombie fencing did not end in time"
    found = [match for line in trace.splitlines() if (match := _EXCEPTION.match(line.strip()))]
    innermost = found[-1] if found else None
    if innermost is not None and _passes(innermost[1], innermost[2] or ""):
        return str(innermost[1].rpartition(".")[2])
    return "its producer was fenced" if may_be_fenced(trace) else None


def _passes(name: str, message: str) -> bool:
    if any(text in message for text in _LASTING):
        return False
    package, _, short = name.rpartition(".")
    return name in _OTHERS or (package == "org.apache.kafka.common.errors" and short in _KAFKA)
