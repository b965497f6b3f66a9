"""Whether transactions of source tasks end in time, with KIP-618's remedies: rules over ``transactions.observe``, pure.

A task that failed by a fenced producer, which Connect reports as an expired transaction, gives FENCE007
(``fenced_task_diagnosis``).
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.transactions.observe import BROKER_LIMIT_MS, TransactionFacts, TransactionPacing
from connectctl.ops.checks.types import Goal, downgrade_severity, enabling
from connectctl.ops.connect.fenced_task_diagnosis import explain
from connectctl.ops.connect.source_transactions import INTERVAL, TIMEOUT, Boundary
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule
from connectctl.ops.kafka.transactions import Transaction

NEAR = 0.75
"""The share of its time-out that an interval may take before the rest is short for sending what it gathered."""
LONG = 0.5
"""The share of its time-out for which a transaction may be open before it is reported."""
BLOCKING_MS = 300_000
"""A time-out that is too long to wait for when tasks start."""


@rule("TXN005", Severity.ERROR, when=enabling, each="connectors")
def interval_too_long(facts: TransactionFacts, each: TransactionPacing, goal: Goal) -> Case | None:
    """TXN005, an error where the interval alone is longer than the time-out."""
    if each.boundary is not Boundary.INTERVAL or each.interval_ms < each.timeout_ms * NEAR:
        return None
    sure = each.interval_configured and each.timeout_configured
    origin = "" if each.interval_configured else ", which is the default of the workers' offset.flush.interval.ms"
    longer = each.interval_ms > each.timeout_ms
    over = "more than" if longer else "as long as" if each.interval_ms == each.timeout_ms else "little less than"
    may = "" if longer else ", which may roll its transactions back"
    default = "" if each.timeout_configured else ", Kafka's default"
    message = (
        f"It commits every {_seconds(each.interval_ms)}{origin}; that is {over} its transaction time-out of "
        f"{_seconds(each.timeout_ms)}{default}{may}."
    )
    certain = longer and (sure or each.interval_configured)
    severity = downgrade_severity(Severity.ERROR, goal) if certain else Severity.WARNING
    hint = f"Set {INTERVAL}={max(1000, each.timeout_ms // 4)} on {each.name}"
    if each.interval_ms * 2 <= BROKER_LIMIT_MS:
        hint += f", or {TIMEOUT}={each.interval_ms * 2}"
    return Case(each.name, message, hint, severity=severity)


@rule("TXN006", Severity.WARNING, when=enabling, each="connectors")
def open_for_long(facts: TransactionFacts, each: TransactionPacing, goal: Goal) -> Iterator[Case]:
    """TXN006, for tasks whose transactions are open now; an interval that has not ended is not reported."""
    usual = each.interval_ms / 1000 if each.boundary is Boundary.INTERVAL else 0.0
    for task, known in sorted(each.tasks.items()):
        timeout = known.timeout_ms or each.timeout_ms
        seconds = known.seconds_open(facts.taken_at)
        if known.state != "Ongoing" or seconds is None or seconds <= max(timeout / 1000 * LONG, usual):
            continue
        message = f"Its transaction has been open for {seconds:.0f} s, and is aborted after {_seconds(timeout)}."
        yield Case(f"{each.name} task {task}", message, _remedy(facts, each, timeout))


@rule("TXN009", Severity.ERROR, when=enabling, each="connectors")
def silently_aborted(facts: TransactionFacts, each: TransactionPacing, goal: Goal) -> Iterator[Case]:
    """TXN009, for running tasks whose id was last seen aborted, where only a time-out or a tool can have done that."""
    if each.boundary is Boundary.CONNECTOR:
        return
    for task, known in sorted(each.tasks.items()):
        if known.state == "CompleteAbort" and task in each.running:
            message = (
                "Its status is RUNNING, but its transaction was aborted; records that it has sent since are not "
                "written, and its next commit will fail."
            )
            restart = f"connectctl connectors restart {each.name}"
            timeout = known.timeout_ms or each.timeout_ms
            yield Case(f"{each.name} task {task}", message, f"{_remedy(facts, each, timeout)}; then {restart}")


@rule("TXN007", Severity.ERROR, each="connectors")
def expired(facts: TransactionFacts, each: TransactionPacing, goal: Goal) -> Iterator[Case]:
    """TXN007, for tasks that have failed because their transaction expired, whatever the goal is."""
    for task, seen in each.failed:
        if isinstance(seen, Transaction) and seen.state == "CompleteAbort":
            timeout = seen.timeout_ms or each.timeout_ms
            message = f"Its transaction was open for longer than {_seconds(timeout)}, and its coordinator aborted it."
            hint = f"{_remedy(facts, each, timeout)}; then connectctl connectors restart {each.name} --only-failed"
            yield Case(f"{each.name} task {task.owner.task}", message, hint)


@Several
def fenced(facts: TransactionFacts, goal: Goal) -> Iterator[Finding]:
    """FENCE007, for tasks that Connect reports as expired, and that were fenced."""
    for each in facts.connectors:
        for task, seen in each.failed:
            if not (isinstance(seen, Transaction) and seen.state == "CompleteAbort") and (found := explain(task, seen)):
                yield found


@rule("TXN008", Severity.WARNING, when=enabling, each="connectors")
def blocks_others(facts: TransactionFacts, each: TransactionPacing, goal: Goal) -> Case | None:
    """TXN008, for a time-out that was made long, and other connectors on the same topic."""
    if not each.timeout_configured or each.timeout_ms < BLOCKING_MS:
        return None
    others = facts.by_store[each.store] - 1
    if others < 1:
        return None
    message = (
        f"Its transactions may be open for {_seconds(each.timeout_ms)} on {each.store[0]}, where "
        f"{others} other connector{'s have' if others > 1 else ' has'} offsets, too."
    )
    hint = f"connectctl offsets merge {each.name} --into dedicated --topic {each.name}-offsets --stop"
    return Case(each.name, message, hint)


def _remedy(facts: TransactionFacts, each: TransactionPacing, timeout_ms: int) -> str:
    """What to set: a longer time-out where brokers allow it, and what ends transactions earlier at this boundary."""
    found = []
    if timeout_ms < BROKER_LIMIT_MS:
        found.append(f"{TIMEOUT}={min(BROKER_LIMIT_MS, timeout_ms * 4)}")
    if each.boundary is Boundary.INTERVAL:
        found.append(f"{INTERVAL}={max(1000, min(each.interval_ms, timeout_ms) // 4)}")
    found.append("smaller batches of the connector" if each.boundary is Boundary.POLL else "transaction.boundary=poll")
    return f"Set {' or '.join(found)} on {each.name}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
