"""A short campaign of faults, and the seed it is drawn from."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from live.campaign import Campaign
from live.campaignkinds import SOURCES
from live.campaignspark import SparkCampaign
from live.oracle import Verdict

SEED = "CONNECTCTL_CAMPAIGN_SEED"
"""The environment variable that takes the seed of an earlier campaign, to draw the same faults
again.
"""


def seed() -> int:
    found = int(os.environ.get(SEED, secrets.randbelow(1 << 30)))
    print(f"campaign of seed {found}")
    return found


def withstand(campaign: Campaign | SparkCampaign, run: Callable[[], Verdict]) -> None:
    try:
        verdict = run()
        print(campaign.table(verdict))
        assert not verdict.findings, campaign.evidence()
        assert len(verdict.records) == SOURCES
        assert not campaign.failures(), campaign.evidence()
    finally:
        print(f"{len(campaign.rows)} faults", *campaign.failures(), sep="\n")
        campaign.close()
