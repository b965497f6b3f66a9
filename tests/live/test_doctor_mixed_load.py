"""``doctor`` every few seconds on a cluster that works, while people change it: not one alarm.

``CONNECTCTL_TEST_MINUTES=8 pytest -m campaign -s tests/live/test_doctor_mixed_load.py`` takes eight
minutes, and an hour without the variable.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from draws import drawn_by
from live.mixedload import MixedLoad
from live.real import connectctl, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.campaign]
ALARMS = ("error", "warning")
NOT_SEEN = ("UNSEEN001", "CLUSTER011")
"""Findings that doctor could not see something: true where a loaded machine's broker does not answer,
and no verdict on the cluster.
"""
BLIND = 100
"""At most one in so many looks may see less than all."""
MINUTES = float(os.environ.get("CONNECTCTL_TEST_MINUTES", "60"))
PAUSE = 3.0
"""Seconds between two looks."""


@pytest.fixture
def mixed(state_home: Path) -> Iterator[Sandbox]:
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    yield up(SandboxSpec(name="mixed", workers=2, support="enabled"))
    down("mixed")


def test_mixed_load_raises_no_alarm(mixed: Sandbox, tmp_path: Path) -> None:
    load = MixedLoad(mixed, tmp_path, drawn_by())
    load.start()
    looks, blind, alarms = 0, 0, []
    end = time.monotonic() + 60 * MINUTES
    with load.going_on():
        while time.monotonic() < end and not load.failed:
            ran = connectctl("--context", "sandbox-mixed", "doctor", "-o", "json")
            at = f"{datetime.now(UTC):%H:%M:%S}"
            assert ran.code in (0, 1), ran.err
            looks += 1
            found = [each for each in ran.json["findings"] if each["severity"] in ALARMS]
            for each in found:
                line = f"{at} {each['id']} {each['subject']}: {each['message']}"
                print(line, flush=True)
                if each["id"] not in NOT_SEEN:
                    alarms.append(line)
            blind += any(each["id"] in NOT_SEEN for each in found)
            time.sleep(PAUSE)
    for moment, what in load.done:
        print(f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S} {what}")
    print(f"{looks} looks, {len(load.done)} changes, {len(alarms)} alarms, {blind} not whole")
    print(Counter(each.split()[1] for each in alarms))
    assert load.failed == []
    assert alarms == []
    assert blind * BLIND <= looks
    load.break_something()
    eventually(lambda: "FAIL001" in doctor_ids())


def doctor_ids() -> set[str]:
    ran = connectctl("--context", "sandbox-mixed", "doctor", "-o", "json")
    return {each["id"] for each in ran.json["findings"]}
