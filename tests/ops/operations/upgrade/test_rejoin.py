"""What is said of a worker that does not rejoin while the group cannot be described."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.operations.upgrade import rejoin
from connectctl.ops.operations.upgrade.run_state import RESTARTED, WorkerProgress

WORKER = "w1:8083"


def time_out(*looks: Mapping[str, str] | None) -> str:
    """Why the wait timed out; each look gives the members, or None where they cannot be described;
    the last one stays.
    """
    time, left = [0.0], list(looks)

    def members() -> dict[str, str]:
        found = left.pop(0) if len(left) > 1 else left[0]
        if found is None:
            raise ConnectctlError("brokers do not respond")
        return dict(found)

    context: Any = SimpleNamespace(
        notes=SimpleNamespace(workers={WORKER: WorkerProgress("preparing", RESTARTED, "m1")}),
        patience=SimpleNamespace(by_hand=9.0, timeout=2.0),
        now=lambda: time[0],
        sleep=lambda seconds: time.__setitem__(0, time[0] + seconds),
        progress=lambda line: None,
        members=members,
    )
    with pytest.raises(TimedOut) as e:
        rejoin.wait_for(context, WORKER, "preparing", by_hand=False)
    return str(e.value.why)


def test_a_group_that_was_never_described_has_no_list_of_members() -> None:
    assert time_out(None) == "cannot describe the worker group: brokers do not respond"


def test_the_members_that_were_described_last_are_named() -> None:
    assert time_out({"w3:8083": "b", "w2:8083": "a"}, None).endswith(
        "; current members: w2:8083, w3:8083"
    )


def test_a_group_that_was_described_as_empty_has_none() -> None:
    assert time_out({}).endswith("; current members: none")
