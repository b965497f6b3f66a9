"""TXN005 to TXN009, with KIP-618's remedies: rules over ``transactions.observe``. Pure.

A task that failed because its producer was fenced, which Connect reports as an expired transaction,
is FENCE007 (``fenced_task_diagnosis``).
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.transactions.observe import (
    BROKER_LIMIT,
    TransactionFacts,
    TransactionPacing,
)
from connectctl.ops.connect.fenced_task_diagnosis import explain, has_expired
from connectctl.ops.connect.goal import Goal, downgrade_severity, enabling
from connectctl.ops.connect.source_transactions import (
    INTERVAL,
    TIMEOUT,
    Boundary,
    IntervalRisk,
    interval_risk,
)
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule

LONG = 0.5
"""The share of its time-out for which a transaction may be open before it is reported."""
_UNKNOWN_LIMIT = f" (if the brokers' {BROKER_LIMIT} allows it, which is unknown)"
BLOCKING_MS = 300_000
"""A time-out that blocks starting tasks for too long."""


@rule("TXN005", Severity.ERROR, when=enabling, each="connectors")
def interval_too_long(
    facts: TransactionFacts, pacing: TransactionPacing, goal: Goal
) -> Case | None:
    """Return TXN005; it is an error if the interval alone exceeds the time-out."""
    interval, timeout = pacing.interval_ms, pacing.timeout_ms
    open_too_long = interval_risk(interval, timeout)
    if pacing.boundary is not Boundary.INTERVAL or open_too_long is IntervalRisk.NONE:
        return None
    both_configured = pacing.interval_configured and pacing.timeout_configured
    origin = (
        ""
        if pacing.interval_configured
        else ", which is the default of the workers' offset.flush.interval.ms"
    )
    longer = open_too_long is IntervalRisk.CERTAIN
    comparison = "as long as" if interval == timeout else "little less than"
    comparison = "more than" if longer else comparison
    risk = "" if longer else ", which may roll its transactions back"
    default = "" if pacing.timeout_configured else ", Kafka's default"
    message = (
        f"It commits every {_seconds(interval)}{origin}; that is {comparison} its "
        f"transaction time-out of {_seconds(timeout)}{default}{risk}."
    )
    certain = longer and (both_configured or pacing.interval_configured)
    severity = downgrade_severity(Severity.ERROR, goal) if certain else Severity.WARNING
    hint = f"Set {INTERVAL}={max(1000, timeout // 4)} on {pacing.name}"
    longer_timeout = interval * 2
    if pacing.broker_limit_ms is None:
        hint += f", or {TIMEOUT}={longer_timeout}{_UNKNOWN_LIMIT}"
    elif longer_timeout <= pacing.broker_limit_ms:
        hint += f", or {TIMEOUT}={longer_timeout}"
    return Case(pacing.name, message, hint, severity=severity)


@rule("TXN006", Severity.WARNING, when=enabling, each="connectors")
def open_for_long(facts: TransactionFacts, pacing: TransactionPacing, goal: Goal) -> Iterator[Case]:
    """Yield TXN006 for tasks with a long open transaction; an interval that has not ended is not
    reported.
    """
    usual = pacing.interval_ms / 1000 if pacing.boundary is Boundary.INTERVAL else 0.0
    for task, known in sorted(pacing.tasks.items()):
        timeout = known.timeout_ms or pacing.timeout_ms
        seconds = known.seconds_open(facts.taken_at)
        if (
            known.state != "Ongoing"
            or seconds is None
            or seconds <= max(timeout / 1000 * LONG, usual)
        ):
            continue
        message = (
            f"Its transaction has been open for {seconds:.0f} s, and is aborted after "
            f"{_seconds(timeout)}."
        )
        subject, since = f"{pacing.name} task {task}", known.open_since
        yield Case(subject, message, _remedy(pacing, timeout), since=since)


@rule("TXN009", Severity.ERROR, when=enabling, each="connectors")
def silently_aborted(
    facts: TransactionFacts, pacing: TransactionPacing, goal: Goal
) -> Iterator[Case]:
    """Yield TXN009 for running tasks whose transaction is aborted: only a time-out or a tool can
    have done this.
    """
    if pacing.boundary is Boundary.CONNECTOR:
        return
    for task, known in sorted(pacing.tasks.items()):
        if known.state == "CompleteAbort" and task in pacing.running:
            message = (
                "Its status is RUNNING, but its transaction was aborted; records that it has sent "
                "since are not written, and its next commit will fail."
            )
            restart = f"connectctl connectors restart {pacing.name}"
            timeout = known.timeout_ms or pacing.timeout_ms
            yield Case(
                f"{pacing.name} task {task}",
                message,
                f"{_remedy(pacing, timeout)}; then {restart}",
            )


@rule("TXN007", Severity.ERROR, each="connectors")
def expired(facts: TransactionFacts, pacing: TransactionPacing, goal: Goal) -> Iterator[Case]:
    """Yield TXN007 for tasks that have failed because their transaction expired, under any goal."""
    for task, answer in pacing.failed:
        if has_expired(answer):
            timeout = answer.timeout_ms or pacing.timeout_ms
            message = (
                f"Its transaction was open for longer than {_seconds(timeout)}, and its "
                "coordinator aborted it."
            )
            hint = (
                f"{_remedy(pacing, timeout)}; then connectctl connectors restart "
                f"{pacing.name} --only-failed"
            )
            subject = f"{pacing.name} task {task.owner.task}"
            yield Case(subject, message, hint, since=task.failed_at)


@Several
def fenced(facts: TransactionFacts, goal: Goal) -> Iterator[Finding]:
    """Yield FENCE007 for tasks that Connect reports as expired and that were fenced."""
    for pacing in facts.connectors:
        for task, answer in pacing.failed:
            if not has_expired(answer) and (found := explain(task, answer)):
                yield found


@rule("TXN008", Severity.WARNING, when=enabling, each="connectors")
def blocks_others(facts: TransactionFacts, pacing: TransactionPacing, goal: Goal) -> Case | None:
    """Return TXN008 for a long configured time-out if other connectors use the same topic."""
    if not pacing.timeout_configured or pacing.timeout_ms < BLOCKING_MS:
        return None
    others = facts.by_store[pacing.store] - 1
    if others < 1:
        return None
    message = (
        f"Its transactions may be open for {_seconds(pacing.timeout_ms)} on {pacing.store[0]}, "
        f"where {others} other connector{'s have' if others > 1 else ' has'} offsets, too."
    )
    hint = (
        f"connectctl offsets merge {pacing.name} --into dedicated --topic "
        f"{pacing.name}-offsets --stop"
    )
    return Case(pacing.name, message, hint)


def _remedy(pacing: TransactionPacing, timeout_ms: int) -> str:
    """Return the next step: a longer time-out if brokers allow it, and a setting that ends
    transactions earlier.
    """
    found = []
    if pacing.broker_limit_ms is None:
        found.append(f"{TIMEOUT}={timeout_ms * 4}{_UNKNOWN_LIMIT}")
    elif timeout_ms < pacing.broker_limit_ms:
        found.append(f"{TIMEOUT}={min(pacing.broker_limit_ms, timeout_ms * 4)}")
    if pacing.boundary is Boundary.INTERVAL:
        found.append(f"{INTERVAL}={max(1000, min(pacing.interval_ms, timeout_ms) // 4)}")
    found.append(
        "smaller batches of the connector"
        if pacing.boundary is Boundary.POLL
        else "transaction.boundary=poll"
    )
    return f"Set {' or '.join(found)} on {pacing.name}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
