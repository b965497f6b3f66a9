"""Producers that are fenced, transactions that are not ended, and others that only last."""

from __future__ import annotations

from live.illnesses.bed import RUNNING, Bed, Where, situation
from live.rawproducer import RawProducers
from live.real import create_topic, eventually

INTERVAL = {"transaction__boundary": "interval"}
TIMEOUT = "producer__override__transaction__timeout__ms"
SLOW = "100000"
FAILED = ("FAIL001", "FAIL002")
"""A task that was fenced and one whose transaction expired fail of one cause, and may be planted side
by side.
"""


@situation(
    "A task's producer was fenced by another one, and Connect reports an expired transaction",
    "FENCE007",
    "its producer was fenced",
    also=FAILED,
)
def a_task_was_fenced(bed: Bed) -> None:
    bed.numbers()
    bed.states(*RUNNING)
    eventually(lambda: bed.rest.offsets(bed.name))  # so that no round of the leader fenced it
    bed.producer()
    bed.states("RUNNING", "FAILED")


@situation(
    "A zombie writes with a task's transactional id",
    "FENCE012",
    "where no task of this connector writes",
)
def a_zombie_has_a_tasks_id(bed: Bed) -> None:
    bed.source("one\n")
    bed.states(*RUNNING)
    eventually(lambda: bed.rest.offsets(bed.name))
    bed.topic(name=f"{bed.name}-elsewhere")
    bed.open_transaction(f"{bed.name}-elsewhere")


@situation(
    "A round of fencing takes longer than the leader waits for it",
    "FENCE008",
    "fencing",
    also=["FAIL001"],
)
def fencing_is_too_slow(bed: Bed) -> None:
    slow = {"retry__backoff__ms": SLOW, "retry__backoff__max__ms": SLOW}
    overrides = {f"admin__override__{key}": value for key, value in slow.items()}
    bed.numbers(tasks__max="4", **overrides)
    bed.runs(4)
    bed.configure(tasks__max="3")


@situation(
    "The next round of fencing will take too long", "FENCE010", "Its next round of fencing takes"
)
def fencing_will_be_slow(bed: Bed) -> None:
    slow = {"retry__backoff__ms": SLOW, "retry__backoff__max__ms": SLOW}
    bed.numbers(tasks__max="4", **{f"admin__override__{key}": value for key, value in slow.items()})
    bed.runs(4)


@situation(
    "A source collects records for longer than its transactions may last",
    "TXN005",
    "more than its transaction time-out",
)
def an_interval_is_too_long(bed: Bed) -> None:
    bed.source(**INTERVAL, transaction__boundary__interval__ms="600000", **{TIMEOUT: "60000"})
    bed.states(*RUNNING)


@situation(
    "A task is RUNNING, and its transaction expired",
    "TXN009",
    "its transaction was aborted",
    also=["TXN005"],
)
def a_transaction_expired(bed: Bed) -> None:
    interval = {"transaction__boundary__interval__ms": "600000"}
    bed.source("one\n", **INTERVAL, **interval, **{TIMEOUT: "1000"})
    bed.states(*RUNNING)
    gets_a_line_after_each_commit(bed)


@situation(
    "A task failed because its transaction had expired",
    "TXN007",
    "its coordinator aborted it",
    also=["TXN005", "TXN009", *FAILED],
)
def a_task_fails_of_an_expired_transaction(bed: Bed) -> None:
    interval = {"transaction__boundary__interval__ms": "30000"}
    bed.source("one\n", **INTERVAL, **interval, **{TIMEOUT: "1000"})
    gets_a_line_after_each_commit(bed)


def gets_a_line_after_each_commit(bed: Bed) -> None:
    """Have a line in the source's file that it has not committed: a task that a rebalance stops in
    time commits what it read, and has nothing to write.
    """
    file = bed.directory / "in.txt"

    def has_an_unread_line() -> None:
        if any(
            each["offset"]["position"] == file.stat().st_size for each in bed.rest.offsets(bed.name)
        ):
            with file.open("a") as lines:
                lines.write("one\n")

    bed.repeated.append(has_an_unread_line)


@situation(
    "A transaction of somebody else has been open for minutes on the offsets topic of a connector",
    "TXN004",
    "has a transaction open for",
    also=["UNSEEN001"],
)
def a_transaction_stays_open(bed: Bed) -> None:
    bed.open_transaction(stopped_with_its_own_offsets_topic(bed), f"{bed.name}-somebody")


@situation(
    "A transaction hangs on the offsets topic of a connector: no coordinator will end it",
    "TXN001",
    "hanging transaction",
    where=Where.WORKERS,
    also=["UNSEEN001"],
)
def a_transaction_hangs(bed: Bed) -> None:
    own = stopped_with_its_own_offsets_topic(bed)
    raw = RawProducers(bed.cluster.bootstrap_servers)
    try:
        raw.init([f"{bed.name}-ghost"])
        raw.write_behind(f"{bed.name}-ghost", own, key=b"[]")
    finally:
        raw.close()


def stopped_with_its_own_offsets_topic(bed: Bed) -> str:
    """Create a stopped source with an offsets topic of its own, and return the topic."""
    own = create_topic(bed.cluster.bootstrap_servers, f"{bed.name}-offsets", 1)
    bed.source(state="STOPPED", offsets__storage__topic=own)
    bed.states("STOPPED")
    return own


@situation("A transaction has been open for seconds, and will be committed in a minute")
def a_long_transaction(bed: Bed) -> None:
    interval = {"transaction__boundary__interval__ms": "60000"}
    bed.source("one\n", **INTERVAL, **interval, **{TIMEOUT: "600000"})
    bed.states(*RUNNING)


@situation("A source has one task less than before, and its round of fencing is over")
def a_round_of_fencing_is_over(bed: Bed) -> None:
    quick = {f"admin__override__retry__backoff{key}__ms": "10" for key in ("", "__max")}
    bed.numbers(tasks__max="3", **quick)
    bed.runs(3)
    bed.configure(tasks__max="2")
    bed.runs(2)
