"""Whether transactions end in time: tables, and looks at coordinators made for tests."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.transactions import rules
from connectctl.ops.checks.transactions.observe import TransactionFacts, TransactionPacing, observe
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.source_transactions import INTERVAL, TIMEOUT, Boundary
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.transactions import Transaction
from fakes.brokers import FakeBrokers
from fakes.check_context import check_context
from fakes.coordinators import FakeCoordinators
from fakes.counted import Counted

HERE = "a:9092,b:9092"
NOW = 1_000.0
BY_INTERVAL = {"transaction.boundary": "Interval"}
EXPIRED = (
    "The task c-0 was unable to finish writing records to Kafka before its producer "
    "transaction expired. It may"
)


def sources(
    config: dict[str, str],
    *known: Transaction,
    status: Status | None = None,
    more: tuple[Connector, ...] = (),
    **settings: Any,
) -> CheckContext:
    calls = FakeCoordinators({transaction.id: transaction for transaction in known})
    mine = Connector("c", None, {0: status or Status("RUNNING")}, config)
    where: dict[str, Any] = {"bootstrap": HERE, "internal": {"offsets": "offsets"}}
    return check_context(mine, *more, transactions=calls, **where, **settings)


def look(config: dict[str, str], *known: Transaction, **more: Any) -> TransactionFacts:
    return observe(sources(config, *known, **more), NOW)


def open_for(seconds: float, timeout_ms: int = 60_000, state: str = "Ongoing") -> Transaction:
    return Transaction("g-c-0", state, 1, 0, timeout_ms, int((NOW - seconds) * 1000), (), 1)


def one(found: TransactionFacts, goal: Goal = Goal.NOW) -> Finding | None:
    findings = list(check(rules, found, goal))
    assert len(findings) < 2, findings
    return findings[0] if findings else None


@pytest.mark.parametrize(
    ("config", "flush_ms", "severity"),
    [
        ({}, None, None),
        # the boundary is poll, and nobody looks at the interval
        ({INTERVAL: "600000"}, None, None),
        (BY_INTERVAL, None, "warning"),  # both defaults are 60 s, and the workers' may be another
        (BY_INTERVAL, 1_000, None),
        (BY_INTERVAL, 60_000, "warning"),  # coordinators look every 10 s: it may be rolled back
        (BY_INTERVAL, 60_001, "error"),
        (BY_INTERVAL | {INTERVAL: "10000"}, None, None),
        (BY_INTERVAL | {INTERVAL: "45000"}, None, "warning"),
        (BY_INTERVAL | {INTERVAL: "60000"}, None, "warning"),
        (BY_INTERVAL | {INTERVAL: "60001"}, None, "error"),
        (BY_INTERVAL | {INTERVAL: "60000", TIMEOUT: "300000"}, None, None),
        (BY_INTERVAL | {INTERVAL: "10000", TIMEOUT: "5000"}, None, "error"),
        ({"transaction.boundary": "connector", INTERVAL: "600000"}, None, None),
        ({"transaction.boundary": "never", INTERVAL: "600000"}, None, None),
    ],
)
def test_an_interval_is_held_against_the_time_out(
    config: dict[str, str], flush_ms: int | None, severity: str | None
) -> None:
    finding = one(
        look(config, told={"offset.flush.interval.ms": str(flush_ms)} if flush_ms else {})
    )
    assert (finding.severity if finding else None) == severity
    if finding:
        assert (finding.id, finding.subject) == ("TXN005", "c")
        assert finding.next_step is not None
        assert finding.next_step.startswith(f"Set {INTERVAL}=")
        assert ("may roll its transactions back" in finding.message) is (severity == "warning")


def test_the_remedy_is_within_what_brokers_allow() -> None:
    config = BY_INTERVAL | {INTERVAL: "500000"}
    finding = one(look(config))
    assert finding is not None
    assert finding.next_step == f"Set {INTERVAL}=15000 on c"


@pytest.mark.parametrize(
    ("brokers", "config", "hint"),
    [
        ({1: "100000", 2: "900000"}, {}, f"Set {TIMEOUT}=100000 or smaller"),
        ({1: "60000"}, {}, "Set smaller batches"),
        ({1: "3600000"}, {}, f"Set {TIMEOUT}=240000 or smaller"),
        ({1: "900000", 2: None}, {}, f"Set {TIMEOUT}=240000 (if the brokers' "),
        ({}, {}, f"Set {TIMEOUT}=240000 (if the brokers' "),
    ],
)
def test_a_longer_time_out_is_within_what_the_brokers_report(
    brokers: dict[int, str | None], config: dict[str, str], hint: str
) -> None:
    name = "transaction.max.timeout.ms"
    reported: dict[int, dict[str, str] | ConnectctlError] = {
        id_: {name: limit} if limit else {} for id_, limit in brokers.items()
    }
    finding = one(look(config, open_for(31), brokers=FakeBrokers(told=reported)))
    assert finding is not None
    assert (finding.next_step or "").startswith(hint)


def test_brokers_that_do_not_answer_have_an_unknown_limit() -> None:
    down = FakeBrokers(down=Unreachable("no broker answers"))
    found = look(BY_INTERVAL | {INTERVAL: "90000"}, brokers=down)
    finding = one(found)
    assert finding is not None
    assert finding.next_step is not None
    assert f"{TIMEOUT}=180000 (if the brokers' transaction.max.timeout.ms" in finding.next_step
    assert found.unseen == (), "the area of the brokers reports it"


@pytest.mark.parametrize(
    ("enabled", "goal", "severity"),
    [
        (True, Goal.NOW, "error"),
        (False, Goal.NOW, None),
        (None, Goal.NOW, None),
        (False, Goal.PREPARING, "warning"),
        (False, Goal.ENABLED, "error"),
        (True, Goal.DOWNGRADE, None),
    ],
)
def test_boundaries_matter_only_with_exactly_once(
    enabled: bool | None, goal: Goal, severity: str | None
) -> None:
    finding = one(look(BY_INTERVAL | {INTERVAL: "90000"}, enabled=enabled), goal)
    assert (finding.severity if finding else None) == severity


def test_the_time_out_is_the_coordinators_where_the_configuration_says_none() -> None:
    (paced,) = look({}, open_for(1, timeout_ms=5_000)).connectors
    assert (paced.timeout_ms, paced.timeout_configured, paced.boundary) == (
        5_000,
        True,
        Boundary.POLL,
    )
    (fenced,) = look({}, open_for(1, timeout_ms=30_000, state="Empty")).connectors
    assert (fenced.timeout_ms, fenced.timeout_configured) == (60_000, False), (
        "that is the time-out of who fenced it"
    )
    (told,) = look({TIMEOUT: "7000"}, open_for(1, timeout_ms=5_000)).connectors
    assert told.timeout_ms == 7_000


@pytest.mark.parametrize(
    ("config", "seconds", "timeout_ms", "hint"),
    [
        ({}, 10, 60_000, None),
        ({}, 31, 60_000, f"Set {TIMEOUT}=240000 or smaller batches of the connector on c"),
        ({}, 500, 900_000, "Set smaller batches of the connector on c"),
        (
            {"transaction.boundary": "connector"},
            40,
            60_000,
            f"Set {TIMEOUT}=240000 or transaction.boundary=poll on c",
        ),
        (BY_INTERVAL | {INTERVAL: "40000"}, 35, 60_000, None),
        (
            BY_INTERVAL | {INTERVAL: "40000"},
            45,
            60_000,
            f"Set {TIMEOUT}=240000 or {INTERVAL}=10000",
        ),
    ],
)
def test_a_transaction_that_is_open_for_long_is_told_with_remedies(
    config: dict[str, str], seconds: float, timeout_ms: int, hint: str | None
) -> None:
    finding = one(look(config, open_for(seconds, timeout_ms)))
    if hint is None:
        assert finding is None
        return
    assert finding is not None
    assert (finding.id, finding.severity, finding.subject) == ("TXN006", "warning", "c task 0")
    assert f"has been open for {seconds:.0f} s" in finding.message
    assert finding.since == pytest.approx(NOW - seconds, abs=0.01)
    assert (finding.next_step or "").startswith(hint)


def test_a_task_whose_transaction_really_expired_is_told_from_one_that_was_fenced() -> None:
    failed = Status("FAILED", "w", EXPIRED)
    written = {"status-task-c-0": NOW - 90}
    finding = one(look({}, open_for(0, state="CompleteAbort"), status=failed, written=written))
    assert finding is not None
    assert (finding.id, finding.severity, finding.subject) == ("TXN007", "error", "c task 0")
    assert "connectctl connectors restart c --only-failed" in (finding.next_step or "")
    fenced = one(look({}, open_for(0, state="Empty"), status=failed, written=written))
    assert fenced is not None
    assert fenced.id == "FENCE007"
    assert "its producer was fenced" in fenced.message
    assert finding.since == fenced.since == NOW - 90


@pytest.mark.parametrize(
    ("config", "state", "status", "told"),
    [
        ({}, "CompleteAbort", "RUNNING", True),
        (BY_INTERVAL | {INTERVAL: "1000"}, "CompleteAbort", "RUNNING", True),
        ({"transaction.boundary": "connector"}, "CompleteAbort", "RUNNING", False),
        ({}, "CompleteCommit", "RUNNING", False),
        ({}, "Empty", "RUNNING", False),
        ({}, "CompleteAbort", "PAUSED", False),
    ],
)
def test_a_running_task_whose_transaction_was_aborted_writes_nothing(
    config: dict[str, str], state: str, status: str, told: bool
) -> None:
    finding = one(look(config, open_for(5, state=state), status=Status(status)))
    assert (finding.id if finding else None) == ("TXN009" if told else None)
    if finding:
        assert (finding.severity, finding.subject) == ("error", "c task 0")
        assert (finding.next_step or "").endswith("then connectctl connectors restart c")


def test_what_has_failed_is_told_for_every_wish() -> None:
    found = look(
        {}, open_for(0, state="CompleteAbort"), status=Status("FAILED", "w", EXPIRED), enabled=False
    )
    assert all(one(found, goal) for goal in Goal)


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        ({TIMEOUT: "600000"}, {}, True),
        ({TIMEOUT: "600000"}, {"offsets.storage.topic": "own"}, False),
        (
            {TIMEOUT: "600000", "offsets.storage.topic": "own"},
            {"offsets.storage.topic": "own"},
            True,
        ),
        ({TIMEOUT: "600000"}, {"producer.override.bootstrap.servers": "b:9092, a:9092"}, True),
        ({TIMEOUT: "60000"}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_long_time_out_on_a_shared_topic_blocks_the_neighbours(
    mine: dict[str, str], theirs: dict[str, str], told: bool
) -> None:
    other = Connector("d", None, {0: Status("RUNNING")}, theirs)
    finding = one(look(mine, more=(other,)))
    assert (finding.id if finding else None) == ("TXN008" if told else None)
    if finding:
        assert "may be open for 600 s" in finding.message
        assert "1 other connector has offsets" in finding.message


def test_transactions_on_another_cluster_are_no_silent_pass() -> None:
    found = look({"producer.override.bootstrap.servers": "far:9092"})
    (unseen,) = found.unseen
    assert unseen.what == "the transactions of c"
    assert look({"producer.override.bootstrap.servers": "far:9092"}, enabled=False).unseen == ()


def test_connectors_are_not_held_against_each_other_one_by_one() -> None:
    connectors = Counted(
        TransactionPacing(f"c{n}", Boundary.POLL, 1, True, 600_000, True, store=("offsets", HERE))
        for n in range(100)
    )
    findings = list(check(rules, TransactionFacts(connectors, True, NOW), Goal.NOW))
    assert {f.message.partition("where ")[2] for f in findings} == {
        "99 other connectors have offsets, too."
    }
    assert len(findings) == 100
    assert connectors.passes < 10, "once for each rule, and not for each connector"
