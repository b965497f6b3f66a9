"""Producers that are fenced, transactions that are not ended, and others that only last."""

from __future__ import annotations

from live.illnesses.bed import RUNNING, Bed, situation
from live.real import eventually

INTERVAL = {"transaction__boundary": "interval"}
TIMEOUT = "producer__override__transaction__timeout__ms"
SLOW = "100000"


@situation(
    "A task's producer was fenced by another one, and Connect reports an expired transaction",
    "FENCE007",
    "its producer was fenced",
    also=["FAIL001"],
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
    file = bed.directory / "in.txt"

    def has_an_unread_line() -> None:
        """A task that a rebalance stops in time commits what it read, and has nothing to write."""
        if any(
            each["offset"]["position"] == file.stat().st_size for each in bed.rest.offsets(bed.name)
        ):
            with file.open("a") as lines:
                lines.write("one\n")

    bed.repeated.append(has_an_unread_line)


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
