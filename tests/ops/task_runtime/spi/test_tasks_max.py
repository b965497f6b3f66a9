"""KIP-1004, one rule for each test."""

from __future__ import annotations

from connectctl.ops.task_runtime.spi.tasks_max import enforced, evaluate, too_many
from hypothesis import given
from hypothesis import strategies as st


def tasks(count: int) -> list[dict[str, str]]:
    return [{"n": str(n)} for n in range(count)]


def test_tasks_within_the_limit_run() -> None:
    verdict = evaluate("c", {"tasks.max": "3"}, tasks(3), ())
    assert (verdict.tasks, verdict.failed, verdict.warning) == (tasks(3), None, None)


def test_the_limit_is_one_where_none_is_given() -> None:
    assert evaluate("c", {}, tasks(2), ()).failed == too_many("c", 2, 1)


def test_a_connector_with_too_many_tasks_fails_and_none_is_started() -> None:
    verdict = evaluate("c", {"tasks.max": "2"}, tasks(3), ())
    assert (verdict.tasks, verdict.failed) == ((), too_many("c", 3, 2))


def test_the_explanation_is_kafkas() -> None:
    assert too_many("c", 3, 2).startswith(
        "The connector c has generated 3 tasks, which is greater than 2, the maximum number of "
        "tasks it is configured to create."
    )


def test_existing_tasks_go_on_while_new_ones_are_too_many() -> None:
    verdict = evaluate("c", {"tasks.max": "2"}, tasks(3), tasks(2))
    assert (verdict.tasks, verdict.failed, verdict.tasks_failed) == (
        tasks(2),
        too_many("c", 3, 2),
        None,
    )


def test_an_existing_set_that_is_too_large_fails_as_well() -> None:
    verdict = evaluate("c", {"tasks.max": "2"}, tasks(4), tasks(3))
    assert (verdict.tasks, verdict.failed, verdict.tasks_failed) == (
        (),
        too_many("c", 4, 2),
        too_many("c", 3, 2),
    )


def test_a_new_set_that_fits_takes_the_place_of_an_existing_one_that_did_not() -> None:
    verdict = evaluate("c", {"tasks.max": "2"}, tasks(2), tasks(3))
    assert (verdict.tasks, verdict.failed, verdict.tasks_failed) == (tasks(2), None, None)


def test_too_many_run_with_a_warning_where_enforcement_is_off() -> None:
    verdict = evaluate("c", {"tasks.max": "2", "tasks.max.enforce": " False "}, tasks(3), tasks(5))
    assert (verdict.tasks, verdict.failed) == (tasks(3), None)
    assert verdict.warning
    assert "will be disallowed in future releases" in verdict.warning


def test_an_existing_set_that_is_too_large_may_run_where_enforcement_is_off() -> None:
    verdict = evaluate("c", {"tasks.max": "2", "tasks.max.enforce": "false"}, tasks(5), tasks(5))
    assert (verdict.tasks, verdict.failed, verdict.tasks_failed) == (tasks(5), None, None)


def test_it_is_enforced_where_nothing_is_said() -> None:
    assert enforced({})
    assert evaluate("c", {"tasks.max": "2"}, tasks(3), ()).failed


def test_the_explanation_says_how_to_permit_it() -> None:
    assert "reconfiguring the connector with 'tasks.max.enforce' set to false" in too_many(
        "c", 3, 2
    )


@given(st.integers(1, 5), st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_more_than_the_limit_never_run_while_it_is_enforced(
    most: int, new: int, old: int, enforce: bool
) -> None:
    verdict = evaluate(
        "c",
        {"tasks.max": str(most), "tasks.max.enforce": str(enforce).lower()},
        tasks(new),
        tasks(old),
    )
    assert len(verdict.tasks) <= most or not enforce
    assert (verdict.failed is not None) is (enforce and new > most)
