from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.connect.worker import (
    NOT_ENABLED,
    Support,
    probe_config,
    probe_plugin,
    support_proven_by,
)


def answer(name: str, *errors: str) -> dict[str, Any]:
    return {
        "configs": [
            {"value": {"name": "other", "errors": []}},
            {"value": {"name": name, "errors": list(errors)}},
        ]
    }


@pytest.mark.parametrize(
    ("validation", "support"),
    [
        (answer("exactly.once.support"), Support.ENABLED),
        (
            answer("exactly.once.support", "The connector does not support exactly-once semantics"),
            Support.ENABLED,
        ),
        (answer("exactly.once.support", NOT_ENABLED), Support.NOT_ENABLED),
        (
            answer("exactly.once.support", NOT_ENABLED, "and the connector neither"),
            Support.NOT_ENABLED,
        ),
        (answer("tasks.max"), Support.NOT_SUPPORTED),
        ({}, Support.NOT_SUPPORTED),
    ],
)
def test_one_validation_tells_whether_exactly_once_is_enabled(
    validation: dict[str, Any], support: Support
) -> None:
    assert support_proven_by(validation) is support


def test_the_probe_prefers_connectors_that_touch_nothing() -> None:
    names = ["x.Sink", "x.BlockingSource", "org.apache.kafka.connect.mirror.MirrorSourceConnector"]
    plugins = [{"class": name, "type": "sink" if "Sink" in name else "source"} for name in names]
    assert probe_plugin(plugins) == names[2]
    assert probe_plugin(plugins[:2]) == "x.BlockingSource"
    assert probe_plugin(plugins[:1]) is None
    assert probe_config("x.Y")["exactly.once.support"] == "required"
