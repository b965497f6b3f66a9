"""GROUP001 to GROUP004 on the generations of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from connectctl.ops.checks.history.records import ConfigRecord
from connectctl.ops.checks.rebalances import rules
from connectctl.ops.checks.rebalances.observe import GroupFacts, caused_by
from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR, TARGET
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check

NOW = 1_000_000.0
ALL = ("a:1", "b:1", "c:1")


def rounds(members: Iterable[Iterable[str]], pause: float = 10.0) -> tuple[GroupRound, ...]:
    """Generations with these workers, the first of which leads, each so many seconds after the one
    before.
    """
    given = [tuple(each) for each in members]
    return tuple(
        GroupRound(
            n,
            NOW - pause * (len(given) - n),
            each[0] if each else "",
            dict.fromkeys(each, 7),
            {f"{worker}-id": worker for worker in each},
        )
        for n, each in enumerate(given, 1)
    )


def found(every: tuple[GroupRound, ...], **more: Any) -> dict[str, Finding]:
    generations = tuple((each.at, each.generation) for each in every)
    facts = GroupFacts("g", len(ALL), NOW, every, generations, **more)
    return {finding.id: finding for finding in check(rules, facts, Goal.NOW)}


def test_a_rolling_restart_of_all_workers_is_no_storm() -> None:
    rolled: list[Iterable[str]] = [ALL]
    for worker in ALL:
        rest = [each for each in ALL if each != worker]
        rolled += [rest, [*rest, worker], [*rest, worker]]
    assert found(rounds(rolled)) == {}


def test_a_worker_that_flaps_is_named_as_the_cause_of_the_storm() -> None:
    every = found(rounds([ALL, ALL[:2]] * 10))
    assert every.keys() == {"GROUP001", "GROUP003"}
    assert "rebalanced 19 times within 3 minutes" in every["GROUP001"].message
    assert "c:1" in (every["GROUP001"].next_step or "")
    assert (every["GROUP003"].subject, "9 times" in every["GROUP003"].message) == ("c:1", True)


def test_the_first_time_that_a_worker_joins_is_no_return() -> None:
    assert "GROUP003" not in found(rounds([ALL[:2], *[ALL, ALL[:2]] * 3]))
    returned = found(rounds([ALL[:2], *[ALL, ALL[:2]] * 3, ALL]))["GROUP003"]
    assert "came back 3 times" in returned.message


def test_rebalances_that_changes_of_connectors_explain_are_no_storm() -> None:
    assert found(rounds([ALL] * 20), changes=10) == {}
    storm = found(rounds([ALL] * 20), changes=5)
    assert storm.keys() == {"GROUP001"}
    assert storm["GROUP001"].message.endswith("; changes of connectors explain 5.")
    # What a worker gives up for balance causes a second rebalance.
    assert found(rounds([ALL] * 44), changes=29) == {}


def test_a_deletion_explains_two_rebalances_and_a_configuration_one() -> None:
    def record(kind: str, at: float, raw: bytes | None = b"{}") -> ConfigRecord:
        return ConfigRecord(kind, "c", None, raw, at, 0)

    configs = [
        record(CONNECTOR, NOW - 700),
        record(CONNECTOR, NOW - 3),
        record(COMMIT, NOW - 2),
        record(TARGET, NOW - 1, None),
        record(CONNECTOR, NOW - 1, None),
    ]
    assert caused_by(configs, NOW - 600) == 4


def test_a_leader_that_moves_is_told() -> None:
    moving = rounds([ALL, ALL[::-1]] * 3)
    assert "changed 5 times" in found(moving)["GROUP002"].message
    assert found(moving[:4]) == {}


def record(offset: int, ago: float) -> ConfigRecord:
    return ConfigRecord(CONNECTOR, "orders", None, b"{}", NOW - ago, offset)


@pytest.mark.parametrize(
    ("records", "ids"),
    [
        ((record(7, 500.0),), {"GROUP004"}),
        ((record(6, 500.0),), set[str]()),
        ((record(7, 20.0),), set[str]()),
    ],
)
def test_a_worker_that_joined_without_old_records_is_behind(
    records: tuple[ConfigRecord, ...], ids: set[str]
) -> None:
    assert found(rounds([ALL[:1]]), configs=records).keys() == ids


def test_generations_of_statuses_are_enough_for_a_storm() -> None:
    facts = GroupFacts("g", 1, NOW, generations=((NOW - 60, 4), (NOW - 5, 40)))
    assert [finding.id for finding in check(rules, facts, Goal.NOW)] == ["GROUP001"]


@pytest.mark.parametrize(
    ("ago", "severity"), [(600.0, Severity.ERROR), (21.0, Severity.ERROR), (5.0, Severity.INFO)]
)
def test_a_herder_that_does_not_answer_is_told_and_may_be_starting_after_a_change(
    ago: float, severity: Severity
) -> None:
    told = found((), hung=(("a:1", "/health"),), configs=(record(7, ago),))["GROUP005"]
    assert (told.subject, told.severity) == ("a:1", severity)
    assert "not GET /health" in told.message
    newest = GroupRound(3, NOW - ago, "a:1", {"a:1": 7}, {})
    again = found((newest,), hung=(("a:1", "/health"),))
    assert again["GROUP005"].severity is severity
