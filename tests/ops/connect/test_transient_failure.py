"""Which failures pass, by the innermost exception of a trace."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.transient_failure import transient_cause

KAFKA = "org.apache.kafka.common.errors."
CONNECT = "org.apache.kafka.connect.errors."


def trace(*causes: str) -> str:
    """A trace as Java prints it, the innermost cause last."""
    first, *others = causes
    return "\n".join(
        [first, "\tat a.B.c(B.java:1)", *(f"Caused by: {each}\n\tat x" for each in others)]
    )


@pytest.mark.parametrize(
    "causes",
    [
        (f"{KAFKA}TimeoutException: Timed out waiting for a node assignment.",),
        (f"{CONNECT}ConnectException: lost", f"{KAFKA}DisconnectException"),
        (f"{CONNECT}RetriableException: the service is busy",),
        (f"{CONNECT}ConnectException: x", "java.net.SocketTimeoutException: Read timed out"),
        (f"{CONNECT}ConnectException: x", f"{KAFKA}NotEnoughReplicasException: 1 of 2"),
        (f"{CONNECT}ConnectException: x", "java.sql.SQLTransientConnectionException: pool"),
        (f"{CONNECT}ConnectException: Failed to perform zombie fencing", "a.b.CException: d"),
        (f"{CONNECT}ConnectException: c", f"{KAFKA}ProducerFencedException: There is a newer one"),
    ],
)
def test_what_passes_is_transient(causes: tuple[str, ...]) -> None:
    assert transient_cause(trace(*causes))


@pytest.mark.parametrize(
    "causes",
    [
        (f"{CONNECT}ConnectException: no such table",),
        (f"{CONNECT}RetriableException: retrying", "java.sql.SQLSyntaxErrorException: no table"),
        (f"{KAFKA}TopicAuthorizationException: Not authorized to access topics: [a]",),
        (f"{KAFKA}TimeoutException: Topic a not present in metadata after 60000 ms.",),
        (f"{CONNECT}ConnectException: Tolerance exceeded", f"{CONNECT}DataException: not JSON"),
        ("java.lang.OutOfMemoryError: Java heap space",),
        ("com.example.TimeoutException: its own",),
    ],
)
def test_what_is_not_known_to_pass_is_not(causes: tuple[str, ...]) -> None:
    assert transient_cause(trace(*causes)) is None


def test_without_a_trace_nothing_is_known() -> None:
    assert transient_cause(None) is None
    assert transient_cause("") is None
