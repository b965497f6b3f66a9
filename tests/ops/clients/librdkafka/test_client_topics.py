"""Topics that this principal may not see, asked for by name."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import NotAuthorized
from fakes.admin import FakeAdmin, FakeKafka


def test_one_that_may_not_be_seen_is_not_taken_for_one_that_is_not_there() -> None:
    found = FakeKafka(FakeAdmin(lambda asked, topic: "TOPIC_AUTHORIZATION_FAILED"))
    for ask in (found.partitions, lambda t: found.topics([t]), lambda t: found.extents([t])):
        with pytest.raises(NotAuthorized, match="Describe on Topic t is missing"):
            ask("t")
    (gap,) = found.existing(["t"]).gaps
    assert str(gap.right) == "Describe on Topic t"
