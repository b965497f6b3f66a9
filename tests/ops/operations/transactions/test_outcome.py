"""How a hanging transaction was decided, from the transaction log and the markers in its
partition.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from connectctl.ops.clients.protocols import PrecedingLog
from connectctl.ops.core.errors import NotAuthorized, Unreachable
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT, Marker
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import LogEntry
from connectctl.ops.kafka.transactions import PartitionProducer
from connectctl.ops.operations.transactions.outcome import DecidedOutcome, history
from connectctl.ops.operations.transactions.outcome_lookup import decisions, since
from fakes.transactionlog import FakeTransactionLog, key_of, log_of

AT, ELSEWHERE = TopicPartition("orders", 0), TopicPartition("offsets", 3)
BOTH = frozenset({AT, ELSEWHERE})
ID, PID = "g-orders-0", 9


def open_(epoch: int) -> PartitionProducer:
    return PartitionProducer(PID, epoch, 0, 1_000, 40)


def entry(
    state: str,
    epoch: int,
    at: int,
    started: int = -1,
    places: frozenset[TopicPartition] = BOTH,
    v: int = 0,
) -> LogEntry:
    places = frozenset() if state in ("Empty", "CompleteCommit", "CompleteAbort") else places
    return LogEntry(ID, PID, epoch, 60_000, state, places, at, started, client_version=v)


def transaction(
    how: str, epoch: int, at: int, places: frozenset[TopicPartition] = BOTH, v: int = 0
) -> list[LogEntry]:
    """The entries of a transaction that is begun at ``at`` and decided 100 ms later."""
    end = epoch + 1 if v == 2 else epoch
    return [
        entry("Ongoing", epoch, at, at, places, v),
        entry(f"Prepare{how}", end, at + 100, at, places, v),
        entry(f"Complete{how}", end, at + 110, at, places, v),
    ]


def marker(epoch: int, at: int, outcome: int = COMMIT) -> Marker:
    return Marker(39, PID, epoch, at, outcome, 0)


BORN = [entry("Empty", 0, 0)]
ONCE = [*BORN, *transaction("Commit", 0, 1_000)]
TWICE = [*ONCE, *transaction("Commit", 0, 2_000)]
OTHERWISE = [*BORN, *transaction("Abort", 0, 1_000), *transaction("Commit", 0, 2_000)]
NEW = [*BORN, *transaction("Commit", 0, 1_000, v=2), *transaction("Commit", 1, 2_000, v=2)]
FENCED = [
    *BORN,
    entry("Ongoing", 0, 1_000, 1_000),
    entry("PrepareAbort", 1, 9_000, 1_000),
    entry("Empty", 2, 9_100),
]

KNOWN: dict[str, tuple[list[LogEntry], int, Marker | None, str]] = {
    "a commit of which the partition has no marker": (ONCE, 0, None, "commit"),
    "an abort of which the partition has no marker": (
        [*BORN, *transaction("Abort", 0, 1_000)],
        0,
        None,
        "abort",
    ),
    "the marker before is that of the transaction before": (TWICE, 0, marker(0, 1_105), "commit"),
    "what came after the commit marker": (ONCE, 0, marker(0, 1_105), "abort"),
    "what came after the commit marker of the last of several": (
        TWICE,
        0,
        marker(0, 2_105),
        "abort",
    ),
    "what came after a marker that an operator wrote": (ONCE, 0, marker(0, 90_000, ABORT), "abort"),
    "two commits without a marker": (TWICE, 0, None, "commit"),
    "another transaction of the epoch that had not the partition": (
        [*ONCE, *transaction("Abort", 0, 2_000, frozenset({ELSEWHERE}))],
        0,
        None,
        "commit",
    ),
    "a transaction that is going on elsewhere": (
        [*ONCE, entry("Ongoing", 0, 2_000, 2_000, frozenset({ELSEWHERE}))],
        0,
        None,
        "commit",
    ),
    "an abort that fenced": (FENCED, 0, None, "abort"),
    "an abort that fenced, after a commit that was carried out": (
        [*ONCE, entry("Ongoing", 0, 2_000, 2_000), entry("PrepareAbort", 1, 9_000, 2_000)],
        0,
        marker(0, 1_105),
        "abort",
    ),
    "a commit after which the producer was initialised again": (
        [*ONCE, entry("Empty", 1, 5_000)],
        0,
        None,
        "commit",
    ),
    "nothing but an initialised producer": (BORN, 0, None, "abort"),
    "version 2: its own epoch's commit": (NEW, 1, marker(1, 1_105), "commit"),
    "version 2: whatever the clocks say": (NEW, 1, marker(1, 2_050), "commit"),
    "version 2: a later transaction has another epoch": (NEW, 0, None, "commit"),
    "version 2: what came after its own marker": (NEW, 1, marker(2, 2_105), "abort"),
    "version 2: what came after a marker by hand": (NEW, 1, marker(1, 90_000), "abort"),
    "version 2: older transactions need not be known": (NEW[4:], 1, None, "commit"),
    "version 2: the decision alone": (NEW[5:], 1, None, "commit"),
    "version 2: an older transaction of which only the end is known": (NEW[3:], 1, None, "commit"),
}
UNKNOWN: dict[str, tuple[list[LogEntry], int, Marker | None, str]] = {
    "compaction left the end alone": (ONCE[-1:], 0, None, "compaction has removed"),
    "compaction left the end alone, version 2": (NEW[-1:], 1, None, "compaction has removed"),
    "only a transaction of a newer epoch is known": (
        NEW[4:],
        0,
        None,
        "does not reach back far enough",
    ),
    "an older transaction of the same epoch may be open with it": (
        TWICE[3:],
        0,
        None,
        "compaction has removed",
    ),
    "the log begins with a decision of version 1": (
        TWICE[4:],
        0,
        None,
        "does not reach back far enough",
    ),
    "it is going on": ([*BORN, entry("Ongoing", 0, 1_000, 1_000)], 0, None, "has not decided yet"),
    "it is going on again": (
        [*ONCE, entry("Ongoing", 0, 2_000, 2_000)],
        0,
        None,
        "has not decided yet",
    ),
    "two that were decided differently": (OTHERWISE, 0, None, "were decided differently"),
    "a marker in the midst of it": (ONCE, 0, marker(0, 1_050), "too close in time"),
    "a marker at a time that clocks do not tell": (
        [*BORN, entry("Ongoing", 0, 1_000, 1_000), entry("PrepareCommit", 0, 1_004, 1_000)],
        0,
        marker(0, 1_005),
        "too close in time",
    ),
    "a marker before it at a time that clocks do not tell": (
        [*BORN, entry("Ongoing", 0, 1_000, 1_000), entry("PrepareCommit", 0, 1_004, 1_000)],
        0,
        marker(0, 999),
        "too close in time",
    ),
    "an abort of which no more is known, and an older epoch": (
        [entry("PrepareAbort", 5, 9_000, 8_000, v=2)],
        3,
        None,
        "does not reach back",
    ),
    "nothing is known at all": ([], 0, None, "has nothing of its producer id"),
}


def decided(
    past: list[LogEntry],
    epoch: int,
    found: Marker | None,
    *,
    first: int | None = None,
    since_ms: float = -math.inf,
) -> DecidedOutcome:
    log = log_of(*past)
    log.partitions[AT] = PrecedingLog(epoch if first is None else first, found, since_ms)
    (decision,) = decisions(log, [(AT, open_(epoch), ID)])
    return decision


@pytest.mark.parametrize("name", KNOWN)
def test_a_decision_is_known_from(name: str) -> None:
    past, epoch, found, outcome = KNOWN[name]
    assert decided(past, epoch, found).outcome == outcome


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_decision_is_not_known_where(name: str) -> None:
    past, epoch, found, why = UNKNOWN[name]
    said = decided(past, epoch, found)
    assert said.outcome is None
    assert why in said.why


def test_a_partition_that_cannot_be_looked_through_may_have_the_marker() -> None:
    assert (
        decided(ONCE, 0, None, since_ms=math.inf).why
        == "the partition cannot be searched for an earlier marker"
    )
    assert decided(ONCE, 0, marker(0, 1_105), since_ms=math.inf).outcome == "abort"
    assert decided(TWICE, 0, None, since_ms=1_500).outcome is None, (
        "the first of them may have had its marker"
    )


def test_records_of_two_epochs_that_are_open_together_are_decided_where_both_were() -> None:
    assert decided(NEW, 1, None, first=0).outcome == "commit"
    lost = [*BORN, *transaction("Abort", 0, 1_000, v=2), *transaction("Commit", 1, 2_000, v=2)]
    assert (
        decided(lost, 1, None, first=0).why
        == "several transactions are open as one, and were decided differently"
    )
    late = [*BORN, *transaction("Commit", 0, 1_000, frozenset({ELSEWHERE}), v=2), *NEW[4:]]
    assert decided(late, 1, None, first=0).why == "records of another epoch are open with it"


def test_a_batch_that_retention_took_says_nothing() -> None:
    log = log_of(*ONCE)
    log.partitions[AT] = PrecedingLog(None, None, -math.inf)
    assert decisions(log, [(AT, open_(0), ID)])[0].why == "its first batch is missing"


def test_what_cannot_be_read_is_the_reason() -> None:
    asked = [(AT, open_(0), ID)]
    log = log_of(*ONCE)
    log.forbidden = NotAuthorized("no", why="no Read")
    assert decisions(log, asked) == [
        DecidedOutcome(None, "__transaction_state cannot be read: no Read", log_read=False)
    ]
    log.forbidden, log.unseen = None, Unreachable("no leader")
    assert decisions(log, asked) == [DecidedOutcome(None, "orders-0 cannot be read: no leader")]


def test_records_that_are_not_known_are_a_reason_where_they_may_be_of_the_id() -> None:
    log = log_of(*ONCE)
    log.written += [(key_of("other"), b"\x00\x07...")] * 3
    assert decisions(log, [(AT, open_(0), ID)])[0].outcome == "commit"
    assert decisions(log, [(AT, open_(0), None)])[0].why.endswith(
        "a value has the unknown version 7"
    )
    log.written.append((key_of(ID), b"\x00\x07..."))
    assert decisions(log, [(AT, open_(0), ID)])[0].outcome is None


def test_only_the_coordinators_partition_is_read_where_all_ids_are_known() -> None:
    log = FakeTransactionLog()
    decisions(log, [(AT, open_(0), ID), (ELSEWHERE, open_(0), ID)])
    decisions(log, [(AT, open_(0), ID), (ELSEWHERE, open_(0), None)])
    assert log.asked == [(ID,), None]


def test_the_partition_is_looked_through_from_the_transaction_before_on() -> None:
    three = [*TWICE, *transaction("Commit", 0, 3_000, frozenset({ELSEWHERE}))]
    assert since(history(three, PID), AT, open_(0)) == 1_000 - 60_000
    assert since(history(BORN, PID), AT, open_(0)) is None


def test_another_producer_id_of_the_same_transactional_id_is_another_history() -> None:
    after = [*NEW, replace(entry("Empty", 0, 9_000), producer_id=PID + 1)]
    assert decided(after, 1, None).outcome == "commit"
