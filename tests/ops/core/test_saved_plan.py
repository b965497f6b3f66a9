"""A plan and a run are of one Kafka cluster and one group of workers."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Run, RunState
from connectctl.ops.core.saved_plan import check_same_cluster, check_where, stale


@pytest.mark.parametrize("here", [("other", "connect"), ("cluster", "other"), ("cluster", "")])
def test_what_is_of_another_cluster_or_group_is_refused(here: tuple[str, str]) -> None:
    run = Run("r", "upgrade", "cluster", "connect", (), RunState.FAILED, "", None, ())
    check_where(("cluster", "connect"), ("cluster", "connect"))
    check_same_cluster(run, "cluster", "connect")
    with pytest.raises(
        Refused, match="The plan is for the group connect on the Kafka cluster cluster"
    ) as refusal:
        check_where(("cluster", "connect"), here)
    assert refusal.value.code == "other-cluster"
    with pytest.raises(Refused, match="The run r is of the group connect"):
        check_same_cluster(run, *here)


def test_a_stale_plan_says_why_and_what_to_do() -> None:
    error = stale("its inputs have changed", "Make a new plan.")
    assert (error.code, error.next_step) == ("stale", "Make a new plan.")
    assert "its inputs have changed; nothing was done" in error.what
