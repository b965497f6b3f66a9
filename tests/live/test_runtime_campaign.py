"""Tasks under a campaign of faults: every record is there once and in its order, whatever was done to them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live.campaign import Campaign
from live.campaignbroker import Broker, own_broker
from live.campaigndrivers import WORKERS
from live.campaignkinds import SOURCES, Transforms
from live.campaignspark import SparkCampaign
from live.oracle import Verdict
from live.sparkclusters import standalone

pytestmark = pytest.mark.live
SEED = "CONNECTCTL_CAMPAIGN_SEED"
"""The environment variable that takes the seed of an earlier campaign, to draw the same faults again."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with own_broker() as broker:
        yield broker


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


def test_a_short_campaign_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    campaign = Campaign(broker, seed(), tmp_path)
    withstand(campaign, lambda: campaign.run(15, broker_kills=1))


def test_a_short_campaign_against_transforms_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    campaign = Campaign(broker, seed(), tmp_path, Transforms)
    withstand(campaign, lambda: campaign.run(13, broker_kills=1))


@pytest.mark.campaign
def test_a_long_campaign_against_transforms_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    campaign = Campaign(broker, seed(), tmp_path, Transforms)
    withstand(campaign, lambda: campaign.run(200, broker_kills=15))


@pytest.mark.campaign
def test_a_long_campaign_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    campaign = Campaign(broker, seed(), tmp_path)
    withstand(campaign, lambda: campaign.run(180, broker_kills=20))


@pytest.mark.campaign
def test_a_campaign_on_spark_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    with standalone(tmp_path / "spark", WORKERS) as cluster:
        campaign = SparkCampaign(broker, cluster, seed(), tmp_path)
        withstand(campaign, lambda: campaign.run(24))
