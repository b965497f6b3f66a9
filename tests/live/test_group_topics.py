"""What becomes of a member's topics while it reads them: partitions that are added, a topic that is
made again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from live.groupslots import Slots, took
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.mark.drawn
@PROTOCOLS
def test_partitions_that_are_added_are_read(cluster: Sandbox, protocol: str) -> None:
    with Slots.new(cluster, 2, group_protocol=protocol, metadata_max_age_ms="1000") as slots:
        slots.write()
        slot = slots.slot(0)
        eventually(lambda: slots.seen() == slots.each_once)
        before = slots.each_once
        slots.add_partitions(4)
        began = time.monotonic()
        eventually(lambda: slot.assignment == slots.places)
        took("added partitions are assigned", began)
        slots.write()
        eventually(lambda: len(slots.seen()) == len(before) + 20)
        assert len(slot.read) == len(set(slot.read))


@pytest.mark.drawn
@PROTOCOLS
def test_a_topic_that_is_deleted_and_made_again_is_read_from_its_beginning(
    cluster: Sandbox, protocol: str
) -> None:
    with Slots.new(cluster, 2, group_protocol=protocol, metadata_max_age_ms="1000") as slots:
        slots.write()
        slot = slots.slot(0)
        eventually(lambda: slots.seen() == slots.each_once)
        first = slots.seen()
        slots.recreate_source()
        slots.write(3)
        eventually(lambda: slots.seen() == sorted([*first, *slots.each_once]))
        print(slot.task.stats.doubts)
        assert slot.error is None
