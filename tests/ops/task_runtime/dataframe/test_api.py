"""Before a DataFrame is written, every older task of the connector is fenced for certain, or
nothing is written.
"""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.task_runtime.dataframe import api
from connectctl.ops.task_runtime.dataframe.api import Target, fence_listed
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from fakes.coordinators import FakeCoordinators

TARGET = Target({}, "g", "c", "t", "o", ("source",), "n", patience=0.0)


class Coordinators(FakeCoordinators):
    def close(self) -> None:
        pass


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Coordinators:
    known = {
        id_: Transaction(id_, "CompleteCommit", 1, 4)
        for id_ in ("g-c-0", "g-c-1", "g-c-7", "g-c-x-0", "g-cc-0")
    }
    brokers = Coordinators(known)
    monkeypatch.setattr(api, "FENCING_PATIENCE", 5.0)
    return brokers


def epochs(brokers: Coordinators) -> dict[str, int]:
    return {id_.removeprefix("g-"): transaction.epoch for id_, transaction in brokers.known.items()}


def test_the_tasks_of_this_connector_are_fenced_however_many_there_were(
    brokers: Coordinators,
) -> None:
    fence_listed(TARGET, brokers)
    assert epochs(brokers) == {"c-0": 5, "c-1": 5, "c-7": 5, "c-x-0": 4, "cc-0": 4}


def test_one_that_is_just_committing_is_asked_again_until_its_epoch_has_moved(
    brokers: Coordinators,
) -> None:
    brokers.script["g-c-1"] = [Code.CONCURRENT_TRANSACTIONS] * 3
    fence_listed(TARGET, brokers)
    assert epochs(brokers)["c-1"] == 5


def test_one_that_cannot_be_fenced_leaves_nothing_written(brokers: Coordinators) -> None:
    brokers.script["g-c-1"] = [Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 50
    with pytest.raises(NotAuthorized, match="Write on TransactionalId g-c-1 is missing") as refused:
        fence_listed(TARGET, brokers)
    assert (
        refused.value.what
        == "Could not fence 1 of 3 transactional ids of older tasks of c; nothing was started"
    )


def test_one_that_is_not_fenced_in_time_may_be_in_another_attempt(
    brokers: Coordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "FENCING_PATIENCE", 0.05)
    brokers.script["g-c-1"] = [Code.CONCURRENT_TRANSACTIONS] * 50
    with pytest.raises(
        TimedOut, match="Could not fence 1 of 3 transactional ids of older tasks of c"
    ):
        fence_listed(TARGET, brokers)


def test_a_coordinator_that_does_not_tell_its_ids_may_have_older_tasks(
    brokers: Coordinators,
) -> None:
    brokers.problems[1] = Code.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(
        ConnectctlError, match="Cannot see all of the transactional ids of older tasks: broker 1"
    ):
        fence_listed(TARGET, brokers)


def test_a_single_column_makes_the_source_partition_as_a_list_of_one_does() -> None:
    def columns(partition: str | list[str]) -> FrameColumns:
        return Target({}, "g", "c", "t", "o", partition=partition, offset="id").columns

    assert columns("shop") == columns(["shop"])
    assert columns("shop").partition == ("shop",)
