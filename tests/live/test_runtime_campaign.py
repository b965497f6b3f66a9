"""Tasks under a campaign of faults: every record is there once and in its order, whatever was done to them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.campaign import SOURCES, Campaign

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SEED = "CONNECTCTL_CAMPAIGN_SEED"
"""The environment variable that takes the seed of an earlier campaign, to draw the same faults again."""


def withstand(bootstrap: str, directory: Path, faults: int) -> None:
    seed = int(os.environ.get(SEED, secrets.randbelow(1 << 30)))
    campaign = Campaign(bootstrap, seed, directory)
    print(f"campaign of seed {campaign.seed}")
    try:
        verdict = campaign.run(faults)
        print(campaign.table(verdict))
        assert not verdict.findings
        assert len(verdict.records) == SOURCES
        assert not campaign.failures()
    finally:
        campaign.close()


def test_a_short_campaign_leaves_every_record_once(cluster: Sandbox, tmp_path: Path) -> None:
    withstand(cluster.bootstrap_servers, tmp_path, 14)


@pytest.mark.campaign
def test_a_long_campaign_leaves_every_record_once(cluster: Sandbox, tmp_path: Path) -> None:
    withstand(cluster.bootstrap_servers, tmp_path, 200)
