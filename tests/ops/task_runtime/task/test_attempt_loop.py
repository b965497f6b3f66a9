"""The kernel against handles that fail where they are told to: whatever happens, what is committed
is each record once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TaskStats, TransactionBatch
from connectctl.ops.task_runtime.task.commit_history import CommitHistory
from connectctl.ops.task_runtime.task.progress import TaskProgress
from connectctl.ops.task_runtime.task.transactional_producer import Fenced, UnknownOutcome
from fakes.numberskernel import FakeHandle, FakeStore, Log, Numbers, kernel

EVERYTHING = [str(n).encode() for n in range(9)]
POINTS = range(1, 26)
ERRORS = {
    "doubt": lambda: UnknownOutcome("a request timed out"),
    "time-out": lambda: TimedOut("in the way"),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("commit_anyway", [False, True])
@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("point", POINTS)
def test_a_doubt_at_any_point_neither_loses_nor_repeats_a_record(
    point: int, kind: str, commit_anyway: bool, strict: bool
) -> None:
    log = Log(fail={point: ERRORS[kind]}, commit_anyway=commit_anyway)
    ended = kernel(log, strict=strict).run(Numbers(8))
    assert (ended.reason, log.committed, log.offset) == (EndReason.ENDED, EVERYTHING, b"8")


@pytest.mark.parametrize("point", POINTS)
def test_whoever_kills_it_at_any_point_the_next_one_goes_on(point: int) -> None:
    log = Log(fail={point: lambda: KeyboardInterrupt("kill")}, commit_anyway=point % 2 == 0)  # type: ignore[return-value,dict-item]
    try:
        kernel(log).run(Numbers(8))
    except KeyboardInterrupt:
        log.fail = {}
        kernel(log).run(Numbers(8))
    assert (log.committed, log.offset) == (EVERYTHING, b"8")


@pytest.mark.parametrize("point", POINTS)
def test_fenced_at_any_point_it_ends_and_never_initialises_again(point: int) -> None:
    log = Log(fail={point: lambda: Fenced("a newer one")})
    ended = kernel(log).run(Numbers(8))
    if log.fail:
        assert ended.reason is EndReason.ENDED
    else:
        assert ended.reason is EndReason.FENCED
        assert log.trace.count("initialise") == 1
    assert log.committed == EVERYTHING[: len(log.committed)]


def test_every_initialisation_is_followed_by_a_reading_before_anything_is_sent() -> None:
    log = Log(fail={6: lambda: UnknownOutcome("lost"), 14: lambda: UnknownOutcome("lost again")})
    kernel(log).run(Numbers(8))
    steps = [what for what in log.trace if what in ("initialise", "read", "begin")]
    after = [steps[n + 1] for n, what in enumerate(steps) if what == "initialise"]
    assert after == ["read"] * 3


def test_strict_takes_a_new_epoch_for_every_transaction() -> None:
    log = Log()
    ended = kernel(log, strict=True).run(Numbers(8))
    assert (log.epoch, ended.stats.transactions) == (6, 5)
    assert ended.stats.instances == 6


def test_strict_keeps_a_producer_whose_transactions_have_an_epoch_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeHandle, "bumps_epoch", True)
    ended = kernel(Log(), strict=True).run(Numbers(8))
    assert (ended.stats.transactions, ended.stats.instances) == (5, 1)


def test_an_aborted_step_leaves_its_offsets_and_none_of_its_records() -> None:
    class Aborting(Numbers):
        def batch(self) -> TransactionBatch | None:
            step = super().batch()
            return (
                None
                if step is None
                else TransactionBatch(
                    step.records, offsets=step.offsets, abort=step.records[0].value == b"2"
                )
            )

    log = Log()
    ended = kernel(log).run(Aborting(8))
    assert log.committed == [n for n in EVERYTHING if n not in (b"2", b"3")]
    assert (log.offset, ended.stats.aborted, ended.stats.records) == (b"8", 1, 7)


def test_a_newer_generation_ends_it_before_it_reads_or_sends() -> None:
    for answers in ([None, "newer"], ["newer"]):
        log, told = Log(), iter(answers)
        ended = kernel(log, stale_because=lambda told=told: next(told)).run(Numbers(8))
        assert (ended.reason, ended.detail, log.committed) == (EndReason.STALE, "newer", [])
        assert "read" not in log.trace


@pytest.mark.parametrize("kind", [ConnectctlError, NotAuthorized])
def test_what_only_a_person_can_mend_is_raised_and_its_transaction_aborted(
    kind: type[ConnectctlError],
) -> None:
    log = Log(fail={4: lambda: kind("the record is too large")})
    with pytest.raises(kind, match="too large"):
        kernel(log).run(Numbers(8))
    assert log.committed == []
    assert log.trace[-2:] == ["abort", "drop"]


def test_doubts_that_do_not_end_are_given_up_with_what_was_last_said() -> None:
    log = Log(fail={n: lambda: UnknownOutcome("no answer") for n in range(1, 10_000)})
    with pytest.raises(TimedOut, match="no answer"):
        kernel(log, patience=0.05, sleep=lambda seconds: time.sleep(0.01)).run(Numbers(8))


def test_a_stop_ends_it_between_two_transactions() -> None:
    log = Log()
    supply = Numbers(8)
    ended = kernel(log, stopped=lambda: supply.confirmed >= 4).run(supply)
    assert (ended.reason, log.committed) == (EndReason.STOPPED, EVERYTHING[:4])


class TestATransactionThatWasOpenForLongerThanItsTimeOut:
    """Another producer of the id, or its coordinator: which of the two is looked at, and not
    guessed.
    """

    @pytest.fixture(autouse=True)
    def _overdue(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FakeHandle, "overdue", True)

    def test_is_sent_again_by_a_new_instance_where_its_coordinator_aborted_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FakeHandle, "whose", True)
        log = Log(fail={6: lambda: Fenced("the epoch is old")})
        ended = kernel(log).run(Numbers(8))
        assert (ended.reason, log.committed, ended.stats.instances) == (
            EndReason.ENDED,
            EVERYTHING,
            2,
        )
        assert "longer than transaction.timeout.ms of 60 s" in ended.stats.doubts[0]

    def test_is_told_with_what_can_be_done_when_that_happens_again_and_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FakeHandle, "whose", True)
        monkeypatch.setattr(
            FakeHandle, "commit", lambda self, patience: _raise(Fenced("the epoch is old"))
        )
        log, clock = Log(), [0.0]
        more: Any = {"stats": TaskStats(progress=TaskProgress(now=lambda: sum(clock)))}
        with pytest.raises(
            ConnectctlError, match=r"transaction\.timeout\.ms of 60 s\. Make it longer"
        ) as caught:
            kernel(
                log, remedies="Make it longer.", sleep=lambda seconds: clock.append(20), **more
            ).run(Numbers(8))
        assert (caught.value.code, log.trace.count("initialise")) == ("transaction-timeout", 3)

    def test_is_sent_again_as_often_as_it_takes_while_brokers_may_be_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FakeHandle, "whose", True)
        real, slow = FakeHandle.commit, [Fenced("the epoch is old")] * 10
        monkeypatch.setattr(
            FakeHandle,
            "commit",
            lambda self, patience: _raise(slow.pop()) if slow else real(self, patience),
        )
        log = Log()
        ended = kernel(log).run(Numbers(8))
        assert (ended.reason, log.committed, ended.stats.instances) == (
            EndReason.ENDED,
            EVERYTHING,
            11,
        )

    def test_ends_the_task_as_fenced_where_another_producer_has_its_id(self) -> None:
        log = Log(fail={6: lambda: Fenced("the epoch is old")})
        ended = kernel(log).run(Numbers(8))
        assert (ended.reason, ended.detail) == (EndReason.FENCED, "the epoch is old")

    def test_ends_the_task_with_both_possibilities_where_the_coordinator_does_not_tell(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FakeHandle, "whose", None)
        ended = kernel(Log(fail={6: lambda: Fenced("the epoch is old")})).run(Numbers(8))
        assert ended.reason is EndReason.FENCED
        assert "producer.override.transaction.timeout.ms" in str(ended.detail)


def _raise(error: Exception) -> None:
    raise error


class Forgets(CommitHistory):
    """Holds nothing against a reading."""

    def check(self, store: Any) -> None:
        pass


class TestMutants:
    """Kernels that are wrong on purpose, to show that these tests can fail."""

    def test_offsets_that_are_read_only_once_repeat_records(self) -> None:
        class ReadOnce(FakeStore):
            def refresh(self, patience: float) -> None:
                if self._value is None and self._log.offset is None:
                    super().refresh(patience)

        log = Log(fail={11: lambda: UnknownOutcome("lost")}, commit_anyway=True)
        kernel(log, store=ReadOnce(log), history=Forgets()).run(Numbers(8))
        assert log.committed != EVERYTHING
        # The whole kernel does not begin there.
        log = Log(fail={11: lambda: UnknownOutcome("lost")}, commit_anyway=True)
        with pytest.raises(TimedOut, match=r"\(committed by this task\) was found nowhere"):
            kernel(log, store=ReadOnce(log), patience=0.0).run(Numbers(8))
        assert len(set(log.committed)) == len(log.committed)

    def test_offsets_outside_the_transaction_repeat_records(self) -> None:
        class Outside(FakeHandle):
            def send_offsets(self, topic: str, offsets: Any) -> None:
                self._log.count("offsets")

        log = Log(fail={6: lambda: UnknownOutcome("lost")}, commit_anyway=True)
        kernel(log, open_producer=lambda: Outside(log), history=Forgets()).run(Numbers(8))
        assert log.committed != EVERYTHING


def test_nothing_is_written_to_a_topic_in_which_an_older_transaction_of_the_task_was_left_open() -> (
    None
):
    asked: list[list[str]] = []

    def leftover(topics: Sequence[str]) -> str | None:
        asked.append(list(topics))
        if asked.count(["t"]) < 3 and list(topics) == ["t"]:
            log.trace.append("open")
            return "an older one is open"
        return None

    log = Log(leftover=leftover)
    ended = kernel(log).run(Numbers(9))
    assert (ended.reason, log.committed) == (EndReason.ENDED, [str(n).encode() for n in range(10)])
    assert ended.stats.doubts == ["an older one is open"] * 2
    assert log.trace.index("begin") > len(log.trace) - 1 - log.trace[::-1].index("open")
    assert asked == [["offsets"], ["t"]] * 3, (
        "each topic is looked at once, and again after a doubt"
    )
