"""Tasks under a campaign of faults: every record is there once and in its order, whatever was done
to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live.campaign import Campaign
from live.campaignbroker import Broker, own_broker
from live.campaigndrivers import WORKERS
from live.campaignkinds import Transforms
from live.campaignseed import seed, withstand
from live.campaignspark import SparkCampaign
from live.sparkclusters import standalone

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with own_broker() as broker:
        yield broker


SHORT = pytest.mark.drawn(matrix="short campaigns against a broker and drivers")
"""Each commit draws the tasks that are under faults, of sources or of transforms."""


@SHORT
def test_a_short_campaign_leaves_every_record_once(broker: Broker, tmp_path: Path) -> None:
    campaign = Campaign(broker, seed(), tmp_path)
    withstand(campaign, lambda: campaign.run(15, broker_kills=1))


@SHORT
def test_a_short_campaign_against_transforms_leaves_every_record_once(
    broker: Broker, tmp_path: Path
) -> None:
    campaign = Campaign(broker, seed(), tmp_path, Transforms)
    withstand(campaign, lambda: campaign.run(13, broker_kills=1))


@pytest.mark.campaign
def test_a_long_campaign_against_transforms_leaves_every_record_once(
    broker: Broker, tmp_path: Path
) -> None:
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
