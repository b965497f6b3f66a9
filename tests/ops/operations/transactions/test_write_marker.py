"""A hanging transaction is ended as its coordinator had decided, once it was looked at again;
nothing else is.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.clients.protocols import PrecedingLog
from connectctl.ops.core.errors import NotAuthorized, Refused
from connectctl.ops.core.plan import Outcome as Came
from connectctl.ops.core.plan import Plan, Result
from connectctl.ops.kafka.acls import Right
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import LogEntry
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import (
    Gap,
    Reason,
    describe_configs,
    describe_id,
    not_authorized,
    read_topic,
)
from connectctl.ops.operations.transactions.abort import EndContext
from connectctl.ops.operations.transactions.hanging import Hanging, search
from connectctl.ops.operations.transactions.outcome import DecidedOutcome, TransactionResult
from connectctl.ops.operations.transactions.write_marker import (
    plan_abort_hanging,
    plan_commit_hanging,
    warnings_of,
)
from fakes.coordinators import FakeCoordinators
from fakes.executing import performed
from fakes.transactionlog import FakeTransactionLog, log_of
from fakes.transactionlog import FakeTransactionLog as Log

SCHEMA = json.loads(
    (Path(__file__).parents[4] / "docs/schema/transactions-hanging.json").read_text()
)
AT = TopicPartition("connect-offsets", 7)
OPEN = PartitionProducer(9, 4, 0, 1_000, 40)
HANGS = Hanging(AT, OPEN, "g-orders-0", "no coordinator knows its producer id")
COMMIT, ABORT, UNKNOWN = (
    replace(HANGS, decision=DecidedOutcome(outcome, "as the log says"))
    for outcome in (TransactionResult.COMMIT, TransactionResult.ABORT, None)
)


@dataclass
class Stage:
    """Coordinators that forget nothing but what hangs."""

    calls: FakeCoordinators = field(
        default_factory=lambda: FakeCoordinators(partitions={AT: (OPEN,)})
    )

    def perform(self, plan: Plan, timeout: float = 1.0) -> Result:
        clock = iter(range(1000))
        context = EndContext(
            self.calls, timeout, now=lambda: float(next(clock)), sleep=lambda seconds: None
        )
        (result,) = performed(plan.steps, context)
        return result


def test_a_commit_that_was_decided_is_committed_by_a_marker_once() -> None:
    stage, plan = Stage(), plan_commit_hanging("c", COMMIT)
    assert (
        plan.steps[0].describe()
        == "commit the transaction of producer 9 that hangs on connect-offsets-7 since offset 40"
    )
    result = stage.perform(plan)
    assert (result.outcome, result.detail) == (
        Came.DONE,
        "committed; no transaction is open there any more",
    )
    assert stage.calls.marked == [(AT, 9, True)]
    assert stage.perform(plan).outcome is Came.ALREADY
    assert stage.calls.marked == [(AT, 9, True)]


def test_what_was_not_proven_to_be_a_commit_is_not_committed() -> None:
    with pytest.raises(Refused, match="because it is to be aborted: as the log says") as told:
        plan_commit_hanging("c", ABORT)
    assert (told.value.code, "connectctl transactions abort" in str(told.value)) == (
        "abort-decided",
        True,
    )
    with pytest.raises(
        Refused, match="because nothing proves that this was decided: as the log says"
    ) as told:
        plan_commit_hanging("c", UNKNOWN)
    assert told.value.code == "not-decided"


def test_a_commit_that_was_decided_is_aborted_by_force_alone() -> None:
    with pytest.raises(Refused, match="because committed records would be lost") as told:
        plan_abort_hanging("c", COMMIT)
    command = (
        "connectctl transactions commit --topic connect-offsets --partition 7 --start-offset 40"
    )
    assert (told.value.code, command in str(told.value.next_step)) == ("commit-decided", True)
    stage = Stage()
    assert stage.perform(plan_abort_hanging("c", COMMIT, force=True)).outcome is Came.DONE
    assert stage.calls.marked == [(AT, 9, False)]


@pytest.mark.parametrize("found", [ABORT, UNKNOWN])
def test_any_other_is_aborted(found: Hanging) -> None:
    stage = Stage()
    assert stage.perform(plan_abort_hanging("c", found)).outcome is Came.DONE
    assert stage.calls.marked == [(AT, 9, False)]


@pytest.mark.parametrize(
    ("now", "known", "why"),
    [
        (
            OPEN,
            Transaction(HANGS.id or "", "Ongoing", 9, 4, partitions=(AT,)),
            "its coordinator knows it now",
        ),
        (replace(OPEN, epoch=5), None, "it changed since the plan was made"),
        (replace(OPEN, last_timestamp=2_000), None, "it changed since the plan was made"),
    ],
)
def test_a_commit_is_not_written_where_it_is_not_the_same_any_more(
    now: PartitionProducer, known: Transaction | None, why: str
) -> None:
    stage = Stage()
    stage.calls.partitions[AT] = (now,)
    stage.calls.known = {known.id: known} if known else {}
    result = stage.perform(plan_commit_hanging("c", COMMIT))
    assert result.error is not None
    assert (result.error.code, stage.calls.marked) == ("changed", [])
    assert why in str(result.error)


def test_an_abort_is_written_also_where_records_still_come() -> None:
    stage = Stage()
    stage.calls.partitions[AT] = (replace(OPEN, last_timestamp=2_000),)
    plan = plan_abort_hanging("c", ABORT)
    assert stage.perform(plan).outcome is Came.DONE
    assert stage.calls.marked == [(AT, 9, False)]


@pytest.mark.parametrize("plan", [plan_commit_hanging("c", COMMIT), plan_abort_hanging("c", ABORT)])
@pytest.mark.parametrize(
    ("answers", "came", "code"),
    [
        ([Code.NOT_LEADER_OR_FOLLOWER, Code.NO_ANSWER], Came.DONE, None),
        ([Code.CLUSTER_AUTHORIZATION_FAILED], Came.FAILED, "not-authorized"),
        ([Code.INVALID_PRODUCER_EPOCH], Came.FAILED, "INVALID_PRODUCER_EPOCH"),
        ([Code.NOT_ENOUGH_REPLICAS] * 9, Came.FAILED, "NOT_ENOUGH_REPLICAS"),
    ],
)
def test_a_marker_is_asked_for_again_while_that_helps(
    plan: Plan, answers: list[Code], came: Came, code: str | None
) -> None:
    stage = Stage()
    stage.calls.marking = list(answers)
    result = stage.perform(plan, timeout=5.0)
    assert (result.outcome, result.error and result.error.code) == (came, code)
    assert len(stage.calls.marked) == (came is Came.DONE)


class Breaking(FakeCoordinators):
    """Coordinators that break at the ``fail_at``-th request for producers or for a marker."""

    fail_at = 0
    count = 0

    def _meet(self) -> None:
        self.count += 1
        if self.count == self.fail_at:
            raise NotAuthorized("broken here")

    def producers(self, places: Any) -> Any:
        self._meet()
        return super().producers(places)

    def mark(self, place: TopicPartition, producer: PartitionProducer, *, commit: bool) -> Code:
        self._meet()
        code = super().mark(place, producer, commit=commit)
        self._meet()
        return code


def test_broken_at_any_point_it_is_performed_again_and_marks_once() -> None:
    plan = plan_commit_hanging("c", COMMIT)
    whole = Breaking(partitions={AT: (OPEN,)})
    assert Stage(whole).perform(plan).outcome is Came.DONE
    assert whole.count > 3
    for point in range(1, whole.count + 1):
        broken = Breaking(partitions={AT: (OPEN,)})
        broken.fail_at = point
        assert Stage(broken).perform(plan).outcome is Came.FAILED
        assert Stage(broken).perform(plan).outcome in (Came.DONE, Came.ALREADY)
        assert broken.marked == [(AT, 9, True)]


def log() -> FakeTransactionLog:
    """A commit that was decided."""
    started = LogEntry(
        HANGS.id or "", 9, 4, 60_000, "Ongoing", frozenset({AT}), 1_000, 1_000, client_version=2
    )
    decided = replace(started, state="PrepareCommit", epoch=5, updated_ms=2_000)
    return log_of(
        started, decided, replace(decided, state="CompleteCommit", topic_partitions=frozenset())
    )


def found_with(log: Log, known: tuple[Transaction, ...] = ()) -> Hanging:
    calls = FakeCoordinators({t.id: t for t in known}, partitions={AT: (OPEN,)})
    found = search(calls, None, {AT.topic: "offsets"}, log)
    (finding,) = found.findings
    (hanging,) = found.found
    assert finding.next_step == hanging.command
    jsonschema.validate(hanging.as_json(5.0), SCHEMA["$defs"]["transaction"])
    return hanging


def test_what_hangs_is_listed_with_what_was_decided_and_with_the_command_for_it() -> None:
    known = Transaction(HANGS.id or "", "CompleteCommit", 9, 5)
    found = found_with(log(), (known,))
    assert (found.id, found.decision.outcome) == (HANGS.id, "commit")
    assert found.as_json(5.0)["decided"] == "commit"
    assert found.command.startswith("connectctl transactions commit ")
    assert found_with(log()).decision.outcome == "commit", (
        "also where nobody has the producer id any more"
    )


def test_what_is_not_known_is_aborted_and_says_why_it_is_not_known() -> None:
    unread = log()
    unread.forbidden = NotAuthorized("Not authorized", why="Topic authorization failed")
    found = found_with(unread)
    assert found.command.startswith("connectctl transactions abort ")
    data = found.as_json(5.0)
    assert data["decided"] is None
    assert data["decidedWhy"] == "__transaction_state cannot be read: Topic authorization failed"
    late = log()
    late.partitions[AT] = PrecedingLog(None, None, 0)
    assert found_with(late).decision.outcome is None


@pytest.mark.parametrize(
    "missing", [describe_configs(AT.topic), read_topic("__transaction_state")], ids=str
)
def test_a_commit_that_a_missing_right_keeps_from_being_proven_names_it(missing: Right) -> None:
    blind_log = log()
    blind_log.partitions[AT] = PrecedingLog(4, None, math.inf, missing)
    if missing.name != AT.topic:
        blind_log.forbidden = not_authorized("Not authorized to read the log", missing)
    found = found_with(blind_log)
    assert (found.decision.outcome, found.decision.right) == (None, missing)
    assert f"{missing} is missing" in found.decision.why
    with pytest.raises(NotAuthorized, match="nothing proves that this was decided") as told:
        plan_commit_hanging("cluster", found)
    assert told.value.right == missing


HIDDEN = (Gap("transactional ids", Reason.NOT_AUTHORIZED, describe_id()),)
ALIVE = LogEntry("hidden", 9, 4, 60_000, "Ongoing", frozenset({AT}), 1_000, 1_000)


def blind(*entries: LogEntry, readable: bool = True) -> tuple[FakeCoordinators, FakeTransactionLog]:
    """Coordinators of ids that may not be seen, and their log."""
    log = log_of(*entries)
    log.forbidden = (
        None
        if readable
        else NotAuthorized("no", why="Read on Topic __transaction_state is missing")
    )
    return FakeCoordinators(partitions={AT: (OPEN,)}, gaps=HIDDEN), log


def test_without_sight_of_all_ids_and_of_the_log_nothing_is_proven_to_hang() -> None:
    calls, log = blind(ALIVE, readable=False)
    for seen in (search(calls, None, {}, log), search(calls, None, {})):
        assert (seen.found, [each.proven for each in seen.unproven]) == ((), [False])
        assert {"TXN010", "SIGHT001"} <= {finding.id for finding in seen.findings}
        assert [str(gap.right) for gap in seen.gaps] == [
            "Read on Topic __transaction_state",
            "Describe on TransactionalId *",
        ]


def test_what_is_not_proven_to_hang_is_ended_by_force_alone() -> None:
    calls, log = blind(readable=False)
    seen = search(calls, None, {}, log)
    (found,) = seen.unproven
    with pytest.raises(Refused, match="Read on Topic __transaction_state is missing") as told:
        plan_abort_hanging("c", found, gaps=seen.gaps)
    assert "--force overrides it" in str(told.value)
    with pytest.raises(Refused, match="not committed, because it is not proven to hang"):
        plan_commit_hanging("c", found, gaps=seen.gaps)
    stage = Stage(calls)
    assert (
        stage.perform(plan_abort_hanging("c", found, force=True, gaps=seen.gaps)).outcome
        is Came.DONE
    )


def test_the_log_proves_what_hangs_and_what_lives_without_sight_of_the_ids() -> None:
    calls, alive = blind(ALIVE)
    assert (search(calls, None, {}, alive).found, search(calls, None, {}, alive).unproven) == (
        (),
        (),
    )
    ending = replace(ALIVE, state="PrepareCommit")
    assert search(calls, None, {}, blind(ending)[1]).found == ()
    for ended in ((replace(ALIVE, state="CompleteCommit", topic_partitions=frozenset()),), ()):
        (found,) = search(calls, None, {}, blind(*ended)[1]).found
        assert found.proven
    replaced = search(calls, None, {}, blind(replace(ending, next_producer_id=77))[1])
    assert (replaced.found, len(replaced.unproven)) == ((), 1)


def test_a_plan_is_not_performed_once_the_log_cannot_be_read_any_more() -> None:
    calls, log = blind()
    (found,) = search(calls, None, {}, log).found
    result = Stage(calls).perform(plan_abort_hanging("c", found, gaps=()))
    assert (result.outcome, calls.marked) == (Came.FAILED, [])


def test_nothing_is_read_where_nothing_hangs() -> None:
    unread = log()
    calm = FakeCoordinators(partitions={AT: (replace(OPEN, start_offset=None),)})
    assert search(calm, None, {}, unread).found == ()
    assert unread.asked == []


def test_what_its_coordinator_is_still_to_decide_does_not_hang_although_it_has_not_loaded_it_yet() -> (
    None
):
    loading = FakeCoordinators(partitions={AT: (OPEN,)})
    begun = LogEntry(HANGS.id or "", 9, 4, 60_000, "Ongoing", frozenset({AT}), 1_000, 1_000)
    assert len(search(loading, None, {AT.topic: "offsets"}).found) == 1, (
        "without the log that cannot be told"
    )
    found = search(loading, None, {AT.topic: "offsets"}, log_of(begun))
    assert (found.found, found.findings) == ((), ())


def test_an_abort_warns_of_what_is_not_proven_and_of_a_decision_that_is_not_known() -> None:
    assert list(warnings_of(ABORT)) == []
    (lost,) = warnings_of(UNKNOWN)
    assert lost.endswith("The decided outcome is unknown: as the log says.")
    (unproven,) = warnings_of(replace(ABORT, proven=False))
    assert unproven.startswith("Not proven to hang")
