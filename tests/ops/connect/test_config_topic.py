"""The config topic: what is kept of task configurations, of which a cluster has most."""

from __future__ import annotations

import pytest
from connectctl.ops.config import masking
from connectctl.ops.config.masking import MASK, masked
from connectctl.ops.connect import config_topic
from connectctl.ops.kafka.records import TopicImage
from fakes.kafkareads import records


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "seen_secrets", masking.SeenSecrets())


CONFIG = {"connector.class": "x.y.Source", "database.password": "Of-Connector-1", "name": "a"}


def test_task_configurations_are_read_when_somebody_looks_at_them() -> None:
    task = records(
        ("task-a-0", {"properties": {"n": "0"}}), ("task-a-1", {"properties": {"n": "1"}})
    )
    told = [*task, *records(("connector-a", {"properties": CONFIG}), ("commit-a", {"tasks": 1}))]
    found = config_topic.parse(told, "cfg").connectors["a"]
    assert found.task_records == {0: task[0].value}
    assert found.task_configs == {0: {"n": "0"}}


@pytest.mark.parametrize("order", [1, -1])
def test_secrets_of_tasks_are_hidden_as_those_of_their_connector(order: int) -> None:
    own = {"properties": CONFIG | {"token": "Of-Its-Task-1"}}
    pairs = [
        ("connector-a", {"properties": CONFIG}),
        ("task-a-0", own),
        ("task-a-1", {"properties": CONFIG}),
    ]
    config_topic.parse(records(*pairs[::order]), "cfg")
    assert masked("it is Of-Its-Task-1, Of-Connector-1") == f"it is {MASK}, {MASK}"


def test_what_a_task_repeats_of_its_connector_is_not_looked_through_again() -> None:
    tasks = [(f"task-a-{n}", {"properties": CONFIG | {"task.id": str(n)}}) for n in range(100)]
    config_topic.parse(records(("connector-a", {"properties": CONFIG}), *tasks), "cfg")
    assert sum(len(config) for config, _ in masking.seen_secrets._waiting) == len(CONFIG) + 100


def test_an_image_is_understood_once() -> None:
    image = TopicImage("cfg", 1, tuple(records(("connector-a", {"properties": CONFIG}))), {0: 1})
    assert config_topic.state_of(image) is config_topic.state_of(image)
