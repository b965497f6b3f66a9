"""What is waited out and what ends a run at once, for how long, and what a person hears of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NeverAnswered,
    NotAuthorized,
    NotTrusted,
    Refused,
    TimedOut,
    UnknownHost,
    Unreachable,
)
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.task.retries import RetryPolicy, default_seconds

AWAY = Unreachable(
    "Kafka at a:1 does not answer", why="Connection refused", next_step="Check bootstrap_servers."
)


@dataclass
class Watch:
    """A clock that only sleeping moves; ``failures`` are what the work raises, one after the
    other.
    """

    failures: list[ConnectctlError] = field(default_factory=list)
    time: float = 0.0
    lines: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def patience(self, seconds: float) -> RetryPolicy:
        return RetryPolicy(seconds, self.lines.append, now=lambda: self.time, sleep=self.sleep)

    def work(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "done"


@pytest.mark.parametrize("error", [AWAY, TimedOut("The end of t is out of reach")])
def test_what_passes_is_waited_out_and_told_once(error: ConnectctlError) -> None:
    watch = Watch([error] * 7)
    assert watch.patience(60)("read the offsets", watch.work) == "done"
    began, over = watch.lines
    assert began.startswith(
        "waiting: could not read the offsets; retrying for up to 60 s (--patience): "
    )
    assert began.endswith(error.what if error.why is None else f"{error.what}: {error.why}")
    assert over == f"continuing after {watch.time:.0f} s: could read the offsets"


@pytest.mark.parametrize(
    "error",
    [
        NotAuthorized("This principal may not"),
        NotTrusted("The certificate is not trusted"),
        UnknownHost("DNS has no address of broker"),
        BadInput("There is no such topic"),
        Refused("Another run leads the group"),
        ConnectctlError("Failed"),
    ],
)
def test_what_only_a_person_can_mend_ends_it_at_once_and_in_silence(error: ConnectctlError) -> None:
    watch = Watch([error])
    with pytest.raises(type(error)) as raised:
        watch.patience(60)("read the offsets", watch.work)
    assert (raised.value, watch.time, watch.lines) == (error, 0, [])


def test_a_cluster_that_has_not_answered_yet_is_waited_for_by_those_who_say_so_and_the_others_are_told_how() -> (
    None
):
    new = NeverAnswered(
        "Kafka at a:1 does not answer",
        why="Connection refused",
        next_step="Check bootstrap_servers.",
    )
    watch = Watch([new] * 3)
    assert watch.patience(60)("reach Kafka", watch.work) == "done"
    watch = Watch([new] * 3)
    with pytest.raises(NeverAnswered) as raised:
        replace(watch.patience(60), wait_for_first_contact=False)("reach Kafka", watch.work)
    assert str(raised.value) == (
        "Kafka at a:1 does not answer: Connection refused. Check bootstrap_servers. A run without "
        "an end waits for it; any other run with --patience SECONDS."
    )
    assert (watch.time, watch.lines) == (0, [])


def test_the_last_error_says_for_how_long_it_was_tried_again() -> None:
    watch = Watch([AWAY] * 1000)
    with pytest.raises(Unreachable) as raised:
        watch.patience(60)("read the offsets", watch.work)
    assert str(raised.value) == (
        "Kafka at a:1 does not answer: Connection refused; retried for 60 s. Check "
        "bootstrap_servers."
    )
    assert raised.value.code == "unreachable"
    assert len(watch.lines) == 1


def test_without_patience_nothing_is_repeated_or_told() -> None:
    watch = Watch([AWAY])
    with pytest.raises(Unreachable) as raised:
        watch.patience(0)("read the offsets", watch.work)
    assert (raised.value, watch.lines) == (AWAY, [])


def test_nothing_is_repeated_once_the_run_is_to_end() -> None:
    watch = Watch([AWAY] * 1000)
    patience = replace(watch.patience(60), stopping=lambda: watch.time >= 3)
    with pytest.raises(Unreachable):
        patience("read the offsets", watch.work)
    assert watch.time == pytest.approx(3, abs=0.3)


def test_each_interruption_has_the_whole_time() -> None:
    watch = Watch()
    patience = watch.patience(2)
    for _ in range(3):
        watch.failures = [AWAY] * 2
        assert patience("read the offsets", watch.work) == "done"
    assert len(watch.lines) == 6


def test_a_run_without_an_end_has_more_patience_than_one_with_one() -> None:
    assert default_seconds(Until()) == 300
    assert {
        default_seconds(each) for each in (Until(idle=5), Until(records=1), Until(duration=9))
    } == {120}
