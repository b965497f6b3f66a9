"""``errors.*`` of a sink, as Connect reads it."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings, error_settings


def test_the_properties_of_connect() -> None:
    assert error_settings({}) == ErrorSettings(False, False, False, None, None, False)
    every = {
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.log.include.messages": "TRUE",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    assert error_settings(every) == ErrorSettings(True, True, True, "dead", 1, True)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"errors.tolerance": "some"},
            "Invalid value some for configuration errors.tolerance. Use none or all",
        ),
        (
            {"errors.log.enable": "yes"},
            "Invalid value yes for configuration errors.log.enable. Use true or false",
        ),
        ({"errors.deadletterqueue.topic.replication.factor": "x"}, "Use a number"),
        (
            {"topics": "a, dead", "errors.deadletterqueue.topic.name": "dead"},
            "The DLQ topic dead may not be included",
        ),
    ],
)
def test_what_connect_refuses(configs: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        error_settings(configs)
