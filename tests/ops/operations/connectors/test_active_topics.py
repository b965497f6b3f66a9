"""The topics that connectors write to: asked of workers for a few, read once for many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.operations.connectors.tracked_topics import FEW, MOST, active_topics

MANY = [f"c{n}" for n in range(FEW + 1)]
RECORDED = {"c0": frozenset({"t"}), "gone": frozenset({"u"})}


@dataclass
class Workers:
    error: ConnectctlError | None = None
    asked: list[str] = field(default_factory=list)
    urls: tuple[str, ...] = ("http://one:8083",)

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        name = path.split("/")[2]
        return {name: {"topics": [f"of-{name}"]}}

    def send(self, *args: Any, **named: Any) -> Any:
        raise AssertionError("nothing is changed")


def test_a_few_connectors_are_asked_about_one_by_one() -> None:
    workers = Workers()
    found, unseen = active_topics(workers, MANY[:FEW], RECORDED)
    assert found["c0"] == {"of-c0"}
    assert (len(found), unseen, len(workers.asked)) == (FEW, (), FEW)


@pytest.mark.parametrize(
    "error", [None, Unreachable("late"), ConnectctlError("gone", code="not-found")]
)
def test_of_many_the_status_topic_tells_with_one_request(error: ConnectctlError | None) -> None:
    workers = Workers(error)
    found, unseen = active_topics(workers, MANY, RECORDED)
    assert found["c0"] == {"t"}
    assert found["c1"] == frozenset()
    assert set(found) == set(MANY)
    assert (unseen, len(workers.asked)) == ((), 1)


def test_workers_that_keep_no_track_are_believed_and_their_connectors_counted() -> None:
    workers = Workers(NotAuthorized("403", why="Topic tracking is disabled."))
    found, (unseen,) = active_topics(workers, [f"c{n}" for n in range(500)], RECORDED)
    assert (found, len(workers.asked)) == ({}, 1)
    assert unseen.what.endswith(f"c{FEW - 1} and {500 - FEW} more")
    assert (
        unseen.why
        == "Topics are not tracked: topic.tracking.enable is off: Topic tracking is disabled"
    )
    assert "topic.tracking.enable=true" in str(unseen.next_step)


def test_the_advice_is_the_one_of_the_fault() -> None:
    _, (unseen,) = active_topics(
        Workers(Unreachable("gone", why="refused", next_step="Start it.")), ["c"]
    )
    assert (unseen.why, unseen.next_step) == ("gone: refused", "Start it.")


def test_without_the_status_topic_only_so_many_are_asked_about_and_the_others_are_told() -> None:
    workers = Workers()
    found, (unseen,) = active_topics(workers, [f"c{n}" for n in range(MOST + 2)])
    assert (len(found), len(workers.asked)) == (MOST, MOST)
    assert (unseen.what, unseen.next_step) == (
        f"the active topics of c{MOST}, c{MOST + 1}",
        "Name connectors.",
    )
