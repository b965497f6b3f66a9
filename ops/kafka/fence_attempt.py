"""The fencing of one transactional id: the next action after each response and each description.
Pure.

InitProducerId may be repeated only where that can help, and only a few times: every request that
the coordinator accepts uses up an epoch, and brokers have been left with ids that could no longer
be fenced (KAFKA-9666). After a response that is not final, the id is therefore described
(DescribeTransactions) before the request is repeated, and it is not repeated while the coordinator
ends the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.acls import Right
from connectctl.ops.kafka.error_handling import (
    FENCE,
    LOOKUP,
    Code,
    ErrorAction,
    ErrorVerdict,
    error_of,
    verdict,
)
from connectctl.ops.kafka.transactions import ABORTING, ENDING, Transaction

MOST_EPOCHS = 6
"""The maximum number of requests for one id that may have used up an epoch, of 32,767."""


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    """A coordinator's answer to InitProducerId; ``lookup`` where already FindCoordinator failed."""

    code: Code
    producer_id: int = -1
    epoch: int = -1
    lookup: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an id is not fenced: a stable ``code`` for scripts, and a ``message`` with the reason and
    the next step.

    ``right`` is the missing one, if brokers refuse the request.
    """

    code: str
    message: str
    right: Right | None = None

    def error(
        self, what: str, next_step: str | None = None, code: str | None = None
    ) -> ConnectctlError:
        """Return the error of a change that needs the fence; ``what`` is a sentence without its
        full stop.
        """
        return error_of(what, self.right, self.message, next_step, code or self.code)


NO_ANSWER = Problem("failed", "no answer came")


@dataclass(frozen=True, slots=True)
class FenceAttempt:
    """The fencing of an id that is not completed. ``seen`` is the coordinator's last known state,
    or None.

    ``epochs`` counts requests that may have cost an epoch. With ``doubt`` the last one may have
    been performed; with ``aborting`` an open transaction is being aborted; ``last`` is the meaning
    of the last response.
    """

    seen: Transaction | None
    epochs: int = 0
    doubt: bool = False
    aborting: bool = False
    last: ErrorVerdict | None = None
    code: Code = Code.NONE


@dataclass(frozen=True, slots=True)
class Fenced:
    """The id is fenced: its owner, and whether an open transaction was aborted for it."""

    producer_id: int
    epoch: int
    aborted: bool


def after_answer(
    attempt: FenceAttempt, answer: InitProducerIdResponse, id: str = ""
) -> FenceAttempt | Fenced | Problem:
    """Return the state of ``id`` after a response to InitProducerId, or to the search for its
    coordinator.
    """
    meaning = verdict(LOOKUP if answer.lookup else FENCE, answer.code, id)
    if meaning.move is ErrorAction.DONE:
        return Fenced(answer.producer_id, answer.epoch, attempt.aborting)
    if meaning.move is ErrorAction.FAIL:
        return problem(answer.code, meaning)
    doubt = meaning.move is ErrorAction.UNKNOWN_OUTCOME
    was_open = attempt.seen is not None and attempt.seen.state == "Ongoing"
    costs = doubt or (
        answer.code is Code.CONCURRENT_TRANSACTIONS and (was_open or attempt.seen is None)
    )
    return replace(
        attempt, epochs=attempt.epochs + costs, doubt=doubt, last=meaning, code=answer.code
    )


def after_describe(
    attempt: FenceAttempt, found: Transaction | Code
) -> tuple[bool, FenceAttempt | Fenced | Problem]:
    """Return whether to repeat InitProducerId now, and the state of the id after its description.
    An id that may not be described is fenced without it.
    """
    if isinstance(found, Code):
        return _ask(attempt)
    if (
        attempt.doubt
        and found.state == "Empty"
        and (attempt.seen is None or attempt.seen.who != found.who)
    ):
        # Only InitProducerId leads to Empty, and the id has another owner than before: ours, or one
        # that came later.
        return False, Fenced(found.producer_id, found.epoch, attempt.aborting)
    was = attempt.seen.state if attempt.seen else None
    aborting = attempt.aborting or (
        found.state in ABORTING and was not in ("CompleteAbort", "PrepareAbort")
    )
    attempt = replace(attempt, seen=found, aborting=aborting)
    return (False, attempt) if found.state in ENDING else _ask(attempt)


def _ask(attempt: FenceAttempt) -> tuple[bool, FenceAttempt | Problem]:
    if attempt.epochs < MOST_EPOCHS:
        return True, attempt
    reason = attempt.last.meaning if attempt.last else "it is not fenced"
    message = (
        f"Stopped after {attempt.epochs} requests that may each have used up an epoch: {reason}."
    )
    return False, Problem(
        "epoch-guard", f"{message} Check the coordinator before fencing it again."
    )


def problem(code: Code, said: ErrorVerdict) -> Problem:
    """Return why an id is not fenced."""
    meaning = (
        f"Not authorized: {said.meaning}"
        if said.right
        else f"{said.meaning[:1].upper()}{said.meaning[1:]}"
    )
    return Problem(code.name, f"{meaning}. {said.advice or ''}".rstrip(), said.right)


def out_of_time(attempt: FenceAttempt, seconds: float) -> Problem:
    """Return the problem of an id that is not fenced when the time is over."""
    last = attempt.last or ErrorVerdict(ErrorAction.RETRY, "no answer came")
    advice = f" {last.advice}" if last.advice else " Try a longer --timeout."
    return Problem(
        "timed-out",
        f"Not fenced within {seconds:g} s: {last.meaning} ({attempt.code.name}).{advice}",
    )
