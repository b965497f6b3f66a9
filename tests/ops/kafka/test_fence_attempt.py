"""One id on its way: when InitProducerId is sent again, and when it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import (
    MOST_EPOCHS,
    FenceAttempt,
    Fenced,
    InitProducerIdResponse,
    Problem,
    after_answer,
    after_describe,
    out_of_time,
)
from connectctl.ops.kafka.transactions import STATES, Transaction, task_timeout
from hypothesis import given
from hypothesis import strategies as st

EMPTY = Transaction("a", "Empty", 7, 3, 60_000)
ONGOING = replace(EMPTY, state="Ongoing")


def test_a_good_answer_ends_it() -> None:
    assert after_answer(FenceAttempt(EMPTY), InitProducerIdResponse(Code.NONE, 7, 4)) == Fenced(
        7, 4, False
    )


def test_an_open_transaction_that_was_seen_being_aborted_counts_as_aborted() -> None:
    chase = after_answer(
        FenceAttempt(ONGOING), InitProducerIdResponse(Code.CONCURRENT_TRANSACTIONS)
    )
    assert isinstance(chase, FenceAttempt)
    ask, chase_ = after_describe(chase, replace(EMPTY, state="PrepareAbort", epoch=4))
    assert (ask, isinstance(chase_, FenceAttempt)) == (False, True), (
        "while it is being aborted, asking helps nobody"
    )
    assert isinstance(chase_, FenceAttempt)
    ask, chase_ = after_describe(chase_, replace(EMPTY, state="CompleteAbort", epoch=4))
    assert ask
    assert isinstance(chase_, FenceAttempt)
    assert after_answer(chase_, InitProducerIdResponse(Code.NONE, 7, 5)) == Fenced(7, 5, True)


def test_a_transaction_that_was_being_committed_is_not_aborted() -> None:
    chase = after_answer(
        FenceAttempt(replace(EMPTY, state="PrepareCommit")),
        InitProducerIdResponse(Code.CONCURRENT_TRANSACTIONS),
    )
    assert isinstance(chase, FenceAttempt)
    assert chase.epochs == 0, "the coordinator refused, and used no epoch"
    ask, chase_ = after_describe(chase, replace(EMPTY, state="CompleteCommit"))
    assert ask
    assert isinstance(chase_, FenceAttempt)
    assert after_answer(chase_, InitProducerIdResponse(Code.NONE, 7, 5)) == Fenced(7, 5, False)


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_nothing_is_sent_while_the_coordinator_is_at_work(state: str) -> None:
    ask, _ = after_describe(FenceAttempt(EMPTY, doubt=True, epochs=1), replace(EMPTY, state=state))
    assert not ask


def test_a_lost_answer_is_looked_at_and_not_asked_again_where_it_was_performed() -> None:
    chase = after_answer(FenceAttempt(EMPTY), InitProducerIdResponse(Code.NO_ANSWER))
    assert isinstance(chase, FenceAttempt)
    assert chase.doubt
    assert after_describe(chase, replace(EMPTY, epoch=4)) == (False, Fenced(7, 4, False))


def test_a_lost_answer_is_asked_again_where_it_was_not_performed() -> None:
    chase = after_answer(FenceAttempt(EMPTY), InitProducerIdResponse(Code.NO_ANSWER))
    assert isinstance(chase, FenceAttempt)
    assert after_describe(chase, EMPTY)[0]


def test_an_epoch_that_moved_by_a_commit_is_no_fence() -> None:
    chase = after_answer(
        FenceAttempt(replace(EMPTY, state="CompleteCommit")), InitProducerIdResponse(Code.NO_ANSWER)
    )
    assert isinstance(chase, FenceAttempt)
    ask, after = after_describe(chase, replace(EMPTY, state="CompleteCommit", epoch=4))
    assert ask, "with transaction version 2 a commit moves the epoch"
    assert isinstance(after, FenceAttempt)


@pytest.mark.parametrize(
    "code",
    [
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Code.INVALID_TRANSACTION_TIMEOUT,
        Code.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_will_not_get_better_is_given_up_with_a_hint(code: Code) -> None:
    problem = after_answer(FenceAttempt(EMPTY), InitProducerIdResponse(code))
    assert isinstance(problem, Problem)
    assert problem.code == code.name
    assert problem.message.count(".") >= 2


def test_the_epochs_of_an_id_are_never_used_up() -> None:
    chase = FenceAttempt(EMPTY)
    for sent in range(1, 100):
        after = after_answer(chase, InitProducerIdResponse(Code.COORDINATOR_NOT_AVAILABLE))
        assert isinstance(after, FenceAttempt)
        ask, next_ = after_describe(after, Code.NO_ANSWER)
        if not ask:
            assert isinstance(next_, Problem)
            assert (sent, next_.code) == (MOST_EPOCHS, "epoch-guard")
            return
        assert isinstance(next_, FenceAttempt)
        chase = next_
    pytest.fail("it would have gone on for ever")


STATE = st.builds(
    Transaction,
    st.just("a"),
    st.sampled_from(STATES),
    st.integers(0, 3),
    st.integers(0, 32_767),
    st.just(60_000),
)


@given(
    st.lists(st.tuples(st.sampled_from(Code), st.one_of(st.sampled_from(Code), STATE)), max_size=60)
)
def test_whatever_brokers_answer_at_most_so_many_epochs_are_spent(
    story: list[tuple[Code, Transaction | Code]],
) -> None:
    chase, sent_in_doubt = FenceAttempt(EMPTY), 0
    for code, seen in story:
        after = after_answer(chase, InitProducerIdResponse(code, 7, 4))
        if not isinstance(after, FenceAttempt):
            return
        sent_in_doubt += after.doubt
        assert sent_in_doubt <= MOST_EPOCHS
        ask, then = after_describe(after, seen)
        while not ask and isinstance(then, FenceAttempt):
            ask, then = after_describe(then, EMPTY)
        if not isinstance(then, FenceAttempt):
            return
        chase = then


def test_out_of_time_says_what_was_answered_last() -> None:
    chase = after_answer(
        FenceAttempt(ONGOING), InitProducerIdResponse(Code.CONCURRENT_TRANSACTIONS)
    )
    assert isinstance(chase, FenceAttempt)
    problem = out_of_time(chase, 30)
    assert problem.code == "timed-out"
    assert "CONCURRENT_TRANSACTIONS" in problem.message


def test_an_id_keeps_its_own_transaction_timeout_unless_an_old_tool_left_one_millisecond() -> None:
    assert task_timeout(EMPTY) == 60_000
    assert task_timeout(replace(EMPTY, timeout_ms=1)) == 30_000
    assert task_timeout(None) == 30_000
