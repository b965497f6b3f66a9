"""All kinds of tasks under faults of brokers, connections and processes: each record is there once,
and no driver ends.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from live import localrun
from live.campaignbroker import own_broker
from live.campaignseed import seed
from live.endurance import ALL, COPY, FRAME, POLLED, STREAM, Endurance, Pace
from live.sparkclusters import standalone

pytestmark = [
    pytest.mark.live,
    # PySpark leaves the socket of an answer to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
FAULTS = int(os.environ.get("CONNECTCTL_TEST_FAULTS", "30"))
"""How many a campaign of every day has: ``.ci/run`` has a hundred, a tenth of what shows that it
holds.
"""
DRIVERS = {
    "tasks that are polled and copied": (POLLED, COPY),
    "a stream of DataFrames": (STREAM,),
    "a DataFrame of a run": (FRAME,),
}
"""Each commit draws the tasks that are under faults; the long campaign has all of them at once."""
QUIET = Pace(
    trigger="6 seconds",
    pause="3",
    program=(localrun.__file__,),
    lease=15,
    cores=2,
    turns=max(3, FAULTS // 25),
)


def cores(kinds: Sequence[str]) -> tuple[int, int]:
    """Those of the Spark cluster's workers: four for each driver, and four for one that is started
    beside what is left of another. A driver's executors are on both, and so are the attempts of a
    task.
    """
    of_each = 2 * (len(kinds) + 1)
    return of_each, of_each


def withstand(directory: Path, faults: int, pace: Pace, kinds: Sequence[str] = ALL) -> None:
    """So many faults, of a seed that is printed; nothing is lost, twice, out of order or open."""
    with (
        own_broker(3, workers=2) as three,
        standalone(directory / "spark", cores(kinds)) as cluster,
    ):
        campaign = Endurance(three, cluster, seed(), directory, pace, kinds)
        try:
            campaign.run(faults)
            assert not campaign.still_open()
            assert not campaign.turns.findings()
            for name, verdict in campaign.verdicts().items():
                print(
                    f"{name}: {sum(verdict.records.values())} records of {len(verdict.records)} "
                    "source partitions"
                )
                assert not verdict.findings, f"{name}: {verdict.findings}\n{campaign.state()}"
                assert verdict.records
        finally:
            print(*campaign.rows, campaign.table(), sep="\n")
            campaign.close()


@pytest.mark.drawn
@pytest.mark.parametrize("drivers", DRIVERS)
def test_tasks_outlive_faults_of_all_kinds(drivers: str, tmp_path: Path) -> None:
    withstand(tmp_path, FAULTS, QUIET, DRIVERS[drivers])


@pytest.mark.campaign
def test_all_kinds_of_tasks_outlive_a_thousand_faults(tmp_path: Path) -> None:
    withstand(tmp_path, 1_000, Pace())
