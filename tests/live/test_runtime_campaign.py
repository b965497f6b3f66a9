"""Tasks under a campaign of faults: every record is there once and in its order, whatever was done to them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.campaign import SOURCES, Campaign
from live.campaignbroker import Broker, own_broker

pytestmark = pytest.mark.live
SEED = "CONNECTCTL_CAMPAIGN_SEED"
"""The environment variable that takes the seed of an earlier campaign, to draw the same faults again."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with own_broker() as broker:
        yield broker


def withstand(broker: Broker, directory: Path, faults: int, broker_kills: int) -> None:
    seed = int(os.environ.get(SEED, secrets.randbelow(1 << 30)))
    campaign = Campaign(broker, seed, directory)
    print(f"campaign of seed {campaign.seed}")
    try:
        verdict = campaign.run(faults, broker_kills)
        print(campaign.table(verdict))
        assert not verdict.findings
        assert len(verdict.records) == SOURCES
        assert not campaign.failures()
    finally:
        campaign.close()


def test_a_short_campaign_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    withstand(broker, tmp_path, 15, 1)


@pytest.mark.campaign
def test_a_long_campaign_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    withstand(broker, tmp_path, 180, 20)
