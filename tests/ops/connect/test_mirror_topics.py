"""Which topics MirrorMaker replicates: one answer for all commands, whatever the workers'
release.
"""

from __future__ import annotations

import pytest
from connectctl.ops.connect.mirror_topics import replicates

MIRROR = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}


@pytest.mark.parametrize(
    ("more", "topic", "expected"),
    [
        ({}, "orders", True),
        ({"topics": "users"}, "orders", False),
        ({"topics": "users, ord.*"}, "orders", True),
        ({}, "__consumer_offsets", False),
        ({}, "mm2-configs.eu.internal", False),
        ({}, "orders.internal", None),
        ({}, "orders-internal", None),
        ({"topics.exclude": "__.*"}, "orders.internal", True),
        ({"connector.class": "TopicCopy"}, "orders.internal", False),
        ({"topics": "users", "topics.exclude": ""}, "us.heartbeats", True),
        ({"topics": "users", "heartbeats.replication.enabled": "false"}, "us.heartbeats", False),
        ({"topic.filter.class": "x.Own"}, "orders", None),
        ({"topics": "[a-z&&[^b]]+"}, "orders", None),
        ({"topics": "*"}, "orders", None),
    ],
)
def test_a_topic_is_replicated_by_the_filter_unless_releases_differ(
    more: dict[str, str], topic: str, expected: bool | None
) -> None:
    assert replicates(MIRROR | more, topic) is expected
